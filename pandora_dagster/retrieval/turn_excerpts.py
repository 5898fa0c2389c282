"""Excerpts of turns over their limit: whole units chosen by a query (specification 001, section 5). No unit is cut."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.enums import SECTION_TITLES
from pandora_dagster.contracts.ports.measurement import TextScorer, TokenMeasure
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.citations import REFERENCES_TITLE
from pandora_dagster.documents.conversation_messages import read_message_lines
from pandora_dagster.documents.markdown import escape_pack_lines
from pandora_dagster.documents.meta import subsections
from pandora_dagster.documents.recorded_context import attributed_text, message_speaker
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import ANSWER_SECTION, informative_sections
from pandora_dagster.documents.units.unit_reader import read_units

# Who said what in a recorded turn whose messages have names.

MESSAGES = "messages.jsonl"


def speakers(turn: Turn) -> tuple[str, ...]:
    """The names under which messages of a recorded turn are stored, in order, each once."""
    return tuple(dict.fromkeys(name for m in _messages(turn) if (name := message_speaker(m))))


def with_speaker_names(turn: Turn, bodies: Mapping[int, str]) -> dict[int, str]:
    """`bodies` of a turn's sections, with `Name: ` before each paragraph of prose in 0 and 5 whose message has a name."""
    messages = _messages(turn)
    if not any(message_speaker(m) for m in messages):
        return dict(bodies)
    attributed = {
        0: _attributed_messages(messages[:1]),
        ANSWER_SECTION: _attributed_messages([m for m in messages if m["role"] == "assistant"]),
    }
    return {n: attributed.get(n) or body for n, body in bodies.items()}


def _messages(turn: Turn) -> tuple[Message, ...]:
    lines = turn.files.get(MESSAGES, "") if turn.manifest.recorded else ""
    return read_message_lines(lines, where=f"{turn.key}: {MESSAGES}") if '"name"' in lines else ()


def _attributed_messages(messages: Sequence[Message]) -> str:
    return "\n\n".join(text for m in messages if (text := attributed_text(m)))


PER_TURN_LIMIT = 1_500
"""Tokens of one loaded turn (specification 004, section 4.2)."""
_SECTIONS_WITH_PARTS = (2, 4)
"""Gathered context and tool results have a subsection for each source or tool."""
_PARAGRAPH = re.compile(r"\n{2,}")
_SECTION_BONUS = {0: 2.0, ANSWER_SECTION: 1.0}
"""Section -> bonus: the query and the answer show what the turn was about."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The chosen pieces, in order, and the names of what was left out."""

    text: str
    tokens: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    section: int
    block: int
    needs: tuple[int, ...] = ()
    """Pieces without which its meaning changes."""

    @property
    def lead(self) -> str:
        return f"{self.section}. {SECTION_TITLES[self.section]}: "


def full_excerpt(turn: Turn) -> str:
    """The whole content of a turn, in the form of an excerpt."""
    return _speaker_line(turn) + _join_pieces(_paragraphs(turn))


def excerpt(turn: Turn, query: str, *, limit: int, counter: TokenMeasure, scores: TextScorer) -> Excerpt:
    """The content of a turn within `limit` tokens: all of it where it fits, else the best whole units for `query`.

    Where its messages have names, the first line is `Speakers: Ann, Ben`, and `Ann: ` precedes what Ann said. Lines that look like the
    pack's own are quoted.
    """
    head, whole = _speaker_line(turn), _join_pieces(_paragraphs(turn))
    limit -= counter.count(head)
    if (tokens := sum(counter.count(part) + 1 for part in whole.split("\n\n"))) <= limit:
        return Excerpt(head + whole, tokens + counter.count(head), ())
    units = _units(turn)
    costs = [counter.count(unit.lead + unit.text) + 1 for unit in units]
    values = [s + _SECTION_BONUS.get(u.section, 0.0) for s, u in zip(scores(query, [u.text for u in units]), units, strict=True)]
    remaining_tokens, chosen = limit, set[int]()
    for index in sorted(range(len(units)), key=lambda i: -values[i]):
        added = {index, *units[index].needs} - chosen
        if (cost := sum(costs[i] for i in added)) <= remaining_tokens:
            remaining_tokens -= cost
            chosen |= added
    section_units = Counter(unit.section for unit in units)
    omitted_units = Counter(unit.section for index, unit in enumerate(units) if index not in chosen)
    left_out = tuple(f"{n}. {SECTION_TITLES[n]}, {count} of {section_units[n]} units" for n, count in omitted_units.items())
    text = head + _join_pieces([units[i] for i in sorted(chosen)]) if chosen else ""
    return Excerpt(text, counter.count(head) + sum(costs[i] for i in chosen) if chosen else 0, left_out)


def _speaker_line(turn: Turn) -> str:
    return f"Speakers: {', '.join(names)}\n\n" if (names := speakers(turn)) else ""


def _join_pieces(pieces: Sequence[_Piece]) -> str:
    """Pieces in order; the first of each section is under its title, so that it is known who said it."""
    parts: list[str] = []
    previous: _Piece | None = None
    for piece in pieces:
        is_same_section = previous is not None and previous.section == piece.section
        is_same_block = is_same_section and previous is not None and previous.block == piece.block
        parts.append("\n" if is_same_block else "\n\n" if previous else "")
        parts.append(piece.text if is_same_section else piece.lead + piece.text)
        previous = piece
    return "".join(parts)


def _sections(turn: Turn) -> dict[int, str]:
    return with_speaker_names(turn, informative_sections(turn.manifest, ContextDocument.parse(turn.context), turn.files))


def _paragraphs(turn: Turn) -> list[_Piece]:
    return [_Piece(escape_pack_lines(t), n, at) for n, body in _sections(turn).items() for at, t in enumerate(_split_section(n, body))]


def _split_section(number: int, body: str) -> list[str]:
    if number in _SECTIONS_WITH_PARTS and (parts := subsections(body)):
        return [f"{title}\n{text}" for title, text in parts.items() if text and title != REFERENCES_TITLE]
    return [text for text in _PARAGRAPH.split(body) if text.strip()]


def _units(turn: Turn) -> list[_Piece]:
    pieces: list[_Piece] = []
    for number, body in _sections(turn).items():
        first = len(pieces)
        units = read_units("\n\n".join(_split_section(number, body)))
        pieces += [_Piece(escape_pack_lines(u.text), number, u.block, tuple(first + n for n in u.needs)) for u in units]
    return pieces
