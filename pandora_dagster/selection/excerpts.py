"""A turn over its per-item limit, as whole pieces chosen by a query (001 section 5). Never a piece of a piece."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.selection.turn_row import told_sections
from pandora_dagster.text.meta import subsections
from pandora_dagster.text.sections import ContextDocument

PER_TURN_LIMIT = 1_500
"""Tokens of one loaded turn (004 section 4.2)."""
_PARAGRAPH = re.compile(r"\n{2,}")
_OFTEN_ASKED = {0: 2.0, 5: 1.0}
"""Section -> bonus: the words of the person and the answer say what the turn was about."""

Scores = Callable[[str, Sequence[str]], Sequence[float]]
"""(query, texts) -> one score a text; higher matters more, scores lie in 0..1 or so."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The chosen pieces, in order, and the names of what was left out."""

    text: str
    tokens: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    name: str
    text: str
    section: int


def excerpt(turn: Turn, query: str, *, limit: int, counter: CountsTokens, scores: Scores) -> Excerpt:
    """Whole pieces of what a turn tells within `limit` tokens: all of it where it fits, else the best for `query`."""
    pieces = _pieces(ContextDocument.parse(turn.context), told_sections(turn.manifest))
    costs = [counter.count(p.text) + 1 for p in pieces]
    if sum(costs) <= limit:
        return Excerpt("\n\n".join(p.text for p in pieces), sum(costs), ())
    values = [s + _OFTEN_ASKED.get(p.section, 0.0) for s, p in zip(scores(query, [p.text for p in pieces]), pieces, strict=True)]
    chosen = _within(limit, values, costs)
    left = tuple(p.name for place, p in enumerate(pieces) if place not in chosen)
    return Excerpt("\n\n".join(pieces[i].text for i in sorted(chosen)), sum(costs[i] for i in chosen), left)


def _within(limit: int, values: Sequence[float], costs: Sequence[int]) -> set[int]:
    room, chosen = limit, set[int]()
    for place in sorted(range(len(values)), key=lambda i: -values[i]):
        if costs[place] <= room:
            room -= costs[place]
            chosen.add(place)
    return chosen


def _pieces(document: ContextDocument, told: Collection[int]) -> list[_Piece]:
    found: list[_Piece] = []
    for section in (s for s in document.sections if s.number in told):
        title = section.heading.strip("# \n")
        body = document.body(section.number)
        for place, text in enumerate(_split(section.number, body), 1):
            found.append(_Piece(f"{title}, piece {place}", f"{title}: {text}" if place == 1 else text, section.number))
    return found


def _split(number: int, body: str) -> list[str]:
    if number in (2, 4) and (parts := subsections(body)):
        return [f"{title}\n{text}" for title, text in parts.items() if text and title != "Source References"]
    return [text for text in _PARAGRAPH.split(body) if text.strip()]
