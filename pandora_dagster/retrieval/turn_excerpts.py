"""A turn over its per-item limit, as whole pieces chosen by a query (001 section 5). Never a piece of a piece."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.enums import SECTION_TITLES
from pandora_dagster.contracts.ports.measurement import TextScorer, TokenMeasure
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.conversation_messages import read_message_lines
from pandora_dagster.documents.markdown import escape_pack_lines
from pandora_dagster.documents.meta import subsections
from pandora_dagster.documents.recorded_context import attributed_text, message_speaker
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.retrieval.turn_row import informative_sections

# Who said what in a recorded turn whose messages carry names. Knows messages and sections; invents no name.

MESSAGES = "messages.jsonl"


def speakers(turn: Turn) -> tuple[str, ...]:
    """The names under which messages of a recorded turn stand, in order, each once."""
    return tuple(dict.fromkeys(name for m in _messages(turn) if (name := message_speaker(m))))


def with_speaker_names(turn: Turn, bodies: Mapping[int, str]) -> dict[int, str]:
    """`bodies` of a turn's sections, with `Name: ` before each paragraph of prose in 0 and 5 whose message has a name."""
    messages = _messages(turn)
    if not any(message_speaker(m) for m in messages):
        return dict(bodies)
    said = {0: _attributed_messages(messages[:1]), 5: _attributed_messages([m for m in messages if m["role"] == "assistant"])}
    return {n: said.get(n) or body for n, body in bodies.items()}


def _messages(turn: Turn) -> tuple[Message, ...]:
    lines = turn.files.get(MESSAGES, "") if turn.manifest.recorded else ""
    return read_message_lines(lines, where=f"{turn.key}: {MESSAGES}") if '"name"' in lines else ()


def _attributed_messages(messages: Sequence[Message]) -> str:
    return "\n\n".join(text for m in messages if (text := attributed_text(m)))


PER_TURN_LIMIT = 1_500
"""Tokens of one loaded turn (004 section 4.2)."""
_PARAGRAPH = re.compile(r"\n{2,}")
_OFTEN_ASKED = {0: 2.0, 5: 1.0}
"""Section -> bonus: the words of the person and the answer say what the turn was about."""


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

    @property
    def lead(self) -> str:
        return f"{self.section}. {SECTION_TITLES[self.section]}: "


def full_excerpt(turn: Turn) -> str:
    """All that a turn tells, as an excerpt without limit."""
    return _head(turn) + _joined(_told(turn))


def excerpt(turn: Turn, query: str, *, limit: int, counter: TokenMeasure, scores: TextScorer) -> Excerpt:
    """Whole pieces of what a turn tells within `limit` tokens: all of it where it fits, else the best for `query`.

    Where its messages carry names, the first line is `Speakers: Ann, Ben`, and `Ann: ` stands before what Ann said. Lines of what was
    said that look like the pack's own are quoted.
    """
    head, pieces = _head(turn), _told(turn)
    costs = [counter.count(p.lead + p.text) + 1 for p in pieces]
    limit -= counter.count(head)
    if sum(costs) <= limit:
        return Excerpt(head + _joined(pieces), sum(costs) + counter.count(head), ())
    values = [s + _OFTEN_ASKED.get(p.section, 0.0) for s, p in zip(scores(query, [p.text for p in pieces]), pieces, strict=True)]
    chosen = _within(limit, values, costs)
    left = tuple(p.name for place, p in enumerate(pieces) if place not in chosen)
    if not chosen:
        return Excerpt("", 0, left)
    text = head + _joined([pieces[i] for i in sorted(chosen)])
    return Excerpt(text, sum(costs[i] for i in chosen) + counter.count(head), left)


def _head(turn: Turn) -> str:
    return f"Speakers: {', '.join(names)}\n\n" if (names := speakers(turn)) else ""


def _joined(pieces: Sequence[_Piece]) -> str:
    """Pieces in order; the first of each section stands under its title, so that it is known who said it."""
    before = (None, *(p.section for p in pieces))
    return "\n\n".join(p.text if p.section == last else p.lead + p.text for p, last in zip(pieces, before, strict=False))


def _told(turn: Turn) -> list[_Piece]:
    return _pieces(with_speaker_names(turn, informative_sections(turn.manifest, ContextDocument.parse(turn.context), turn.files)))


def _within(limit: int, values: Sequence[float], costs: Sequence[int]) -> set[int]:
    room, chosen = limit, set[int]()
    for place in sorted(range(len(values)), key=lambda i: -values[i]):
        if costs[place] <= room:
            room -= costs[place]
            chosen.add(place)
    return chosen


def _pieces(sections: Mapping[int, str]) -> list[_Piece]:
    found: list[_Piece] = []
    for number, body in sections.items():
        title = f"{number}. {SECTION_TITLES[number]}"
        for place, text in enumerate(_split(number, body), 1):
            found.append(_Piece(f"{title}, piece {place}", escape_pack_lines(text), number))
    return found


def _split(number: int, body: str) -> list[str]:
    if number in (2, 4) and (parts := subsections(body)):
        return [f"{title}\n{text}" for title, text in parts.items() if text and title != "Source References"]
    return [text for text in _PARAGRAPH.split(body) if text.strip()]
