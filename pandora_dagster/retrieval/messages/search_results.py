"""Found messages packed into a token budget. Knows pieces and budgets; knows nothing of how messages are found.

A message goes in whole or stays out. Messages of one session stand under its date once, whether they are shown best first
(`results`) or in the order in which they were written (`text`); both stay within the budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.language.dates import display_date

# Whole pieces into a token budget, best first, shown in their own order. Knows sizes; knows nothing of what a piece says. A piece
# goes in whole or stays out (nothing is cut), the same text goes in once, and the packed text never exceeds its budget.

_ENOUGH = 0.98
"""A pack that is this full is full: later pieces are smaller and matter less."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One choosable text. `place` orders the result; pieces of one `group` stand under its header once."""

    name: str
    text: str
    score: float
    place: tuple[int, ...]
    group: str = ""
    """The header line, e.g. the date of a session; "" for none."""


@dataclass(frozen=True, slots=True)
class PieceSelection:
    """What went in, in reading order; `left_out` names the rest, best first."""

    text: str
    tokens: int
    pieces: tuple[Piece, ...]
    left_out: tuple[str, ...]


def pack_pieces(pieces: Sequence[Piece], *, budget: int, count: Callable[[str], int]) -> PieceSelection:
    """As many whole pieces as `budget` tokens hold, by score; `count` gives the tokens of a text."""
    by_score = sorted(pieces, key=lambda p: (-p.score, p.place))
    chosen = _chosen(by_score, budget, count)
    while chosen and count(rendered(chosen)) > budget:
        chosen.pop()
    inside = {p.name for p in chosen}
    in_order = tuple(sorted(chosen, key=lambda p: p.place))
    text = rendered(chosen)
    return PieceSelection(text, count(text), in_order, tuple(p.name for p in by_score if p.name not in inside))


def rendered(pieces: Sequence[Piece]) -> str:
    """Pieces in reading order, a header where the group changes."""
    lines: list[str] = []
    group = ""
    for piece in sorted(pieces, key=lambda p: p.place):
        if piece.group and piece.group != group:
            lines.append(piece.group)
        group = piece.group
        lines.append(piece.text)
    return "\n".join(lines)


def _chosen(by_score: Sequence[Piece], budget: int, count: Callable[[str], int]) -> list[Piece]:
    chosen: list[Piece] = []
    texts: set[str] = set()
    groups: set[str] = set()
    used = 0
    for piece in by_score:
        if used >= budget * _ENOUGH:
            break
        if piece.text in texts:
            continue
        header = count(piece.group + "\n") if piece.group and piece.group not in groups else 0
        cost = count(piece.text + "\n") + header
        if used + cost > budget:
            continue
        used += cost
        chosen.append(piece)
        texts.add(piece.text)
        groups.add(piece.group)
    return chosen


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One message that was chosen; the best of its session carries the session's date as its first line."""

    turn_id: str
    message_ids: tuple[str, ...]
    created_at: str
    tokens: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search gives: best first in `results`, in time order in `text`. `tokens` are those of all result texts together."""

    query: str
    tokens: int
    results: tuple[SearchResult, ...]
    text: str
    least_tokens: int = 0
    """Where something was found and nothing had room: the budget that the best message needs; else 0."""


def search_results(
    query: str, found: Sequence[FoundMessage], *, budget: int, count: Callable[[str], int], beside: Sequence[FoundMessage] = ()
) -> SearchResults:
    """As many of the found messages as `budget` tokens hold, by score, none of them twice; where some are left, of those `beside` them."""
    ranks = {m.place: rank for rank, m in enumerate((*found, *beside))}
    every = sorted((*found, *beside), key=lambda m: -m.score)
    pieces = [_piece(m, -ranks[m.place]) for m in every if m.text.strip()]
    chosen = pack_pieces(pieces, budget=budget, count=count)
    results = _listed(chosen, every, count)
    while results and _together(results, count) > budget:
        worst = min(chosen.pieces, key=lambda p: p.score)
        inside = {piece.name for piece in chosen.pieces} - {worst.name}
        chosen = pack_pieces([piece for piece in pieces if piece.name in inside], budget=budget, count=count)
        results = _listed(chosen, every, count)
    least = 0 if results or not pieces else _least(max(pieces, key=lambda p: p.score), count)
    return SearchResults(query, _together(results, count), results, chosen.text, least)


def _piece(message: FoundMessage, score: float) -> Piece:
    text = f"{message.speaker}: {message.text.strip()}"
    return Piece(str(message.place), text, score, (message.place,), display_date(message.created_at))


def _least(piece: Piece, count: Callable[[str], int]) -> int:
    """The smallest budget in which a piece surely goes: as it is packed, header and text by themselves, and as it is shown."""
    return max(count(piece.group + "\n") + count(piece.text + "\n"), count(_dated(piece)))


def _dated(piece: Piece) -> str:
    return f"{piece.group}\n{piece.text}"


def _kept(chosen: PieceSelection, found: Sequence[FoundMessage]) -> list[FoundMessage]:
    names = {piece.name for piece in chosen.pieces}
    return [m for m in found if str(m.place) in names]


def _listed(chosen: PieceSelection, found: Sequence[FoundMessage], count: Callable[[str], int]) -> tuple[SearchResult, ...]:
    texts = {piece.name: piece for piece in chosen.pieces}
    dated: set[str] = set()
    results: list[SearchResult] = []
    for message in _kept(chosen, found):
        piece = texts[str(message.place)]
        text = piece.text if piece.group in dated else _dated(piece)
        dated.add(piece.group)
        results.append(SearchResult(message.turn_id, (message.message_id,), message.created_at, count(text), round(message.score, 4), text))
    return tuple(results)


def _together(results: Sequence[SearchResult], count: Callable[[str], int]) -> int:
    return max(count("\n".join(r.text for r in results)), sum(r.tokens for r in results)) if results else 0
