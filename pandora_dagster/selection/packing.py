"""Whole pieces into a token budget, best first, shown in their own order. Knows sizes; knows nothing of what a piece says.

A piece goes in whole or stays out (nothing is cut), the same text goes in once, and the packed text never exceeds its budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
