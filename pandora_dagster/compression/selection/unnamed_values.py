"""A last line of a shortened talk: values, codes and names that no kept unit has, each behind who said it or which tool gave it."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.compression.selection.term_weights import RECORDS, Term, is_tool
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.tokens import Token, TokenKind

OPENING = "Also named: "
_NEXT_WORD = re.compile(r"\s[^\W\d_]+")
_MOST = 60


@dataclass(frozen=True, slots=True)
class UnnamedValue:
    """A value that a talk has and its shortened form has not."""

    subject: str
    """Who says it, or the tool that gave it."""
    text: str
    terms: tuple[Term, ...]


def unnamed_values(reading: TextReading, kept: Collection[int], wanted: Mapping[Term, float]) -> list[UnnamedValue]:
    """The values of the units that are left out, those that are wanted most first."""
    stated = {(t.kind, t.key) for i in kept for t in reading.tokens[i]}
    words = {t.key for i in kept for t in reading.tokens[i]}
    found: dict[str, tuple[float, UnnamedValue]] = {}
    for unit, held in zip(reading.units, reading.tokens, strict=True):
        if unit.order in kept or unit.is_context:
            continue
        for value in _values(unit, held):
            if any(t not in stated and t[1] not in words for t in value.terms) and value.text not in found:
                found[value.text] = (max(wanted.get(t, 0.0) for t in value.terms), value)
    ranked = sorted(found.values(), key=lambda pair: -pair[0])
    return [value for weight, value in ranked if weight > 0][:_MOST]


def last_line(values: list[UnnamedValue], tokens: int, count: Callable[[str], int], *, is_whole: bool) -> str:
    """As many of the values as the tokens hold, in one line; "" for none, and where `is_whole` wants all of them and they do not fit."""
    shown = list(values)
    while shown:
        line = OPENING + "; ".join(f"{subject}: {', '.join(texts)}" for subject, texts in _by_subject(shown).items())
        if count(line) <= tokens:
            return line
        if is_whole:
            return ""
        shown.pop()
    return ""


def _by_subject(values: list[UnnamedValue]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        found.setdefault(value.subject, []).append(value.text)
    return found


def _values(unit: Unit, held: tuple[Token, ...]) -> Iterator[UnnamedValue]:
    """Names that follow each other are one; a number without a unit has the word behind it."""
    subject = unit.speaker.partition(" ")[2] if is_tool(unit) and " " in unit.speaker else unit.speaker
    hard = [t for t in held if t.kind is not TokenKind.WORD and (t.kind is not TokenKind.CODE or any(c.isdigit() for c in t.key))]
    at = 0
    while at < len(hard):
        last = at
        while last + 1 < len(hard) and _adjacent(unit.text, hard[last], hard[last + 1]):
            last += 1
        text = unit.text[hard[at].start : hard[last].end]
        if hard[last].kind is TokenKind.VALUE and text[-1:].isdigit() and unit.kind not in RECORDS:
            text += (_NEXT_WORD.match(unit.text, hard[last].end) or [""])[0]
        yield UnnamedValue(subject or unit.kind.value, " ".join(text.split()), tuple((t.kind, t.key) for t in hard[at : last + 1]))
        at = last + 1


def _adjacent(text: str, one: Token, other: Token) -> bool:
    return one.kind is other.kind is TokenKind.NAME and text[one.end : other.start] == " "


def has_tools(reading: TextReading) -> bool:
    """Whether the talk has calls or results of tools."""
    return any(u.kind is UnitKind.CALL or is_tool(u) for u in reading.units)
