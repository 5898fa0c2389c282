"""A last line of a shortened talk with tools: the codes that no kept unit has, each after the tool or speaker that gave it.

`Also named: get_user: card_9031, gift_4021; user: 59XX6W`
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.compression.selection.term_weights import Term, is_tool
from pandora_dagster.documents.units.unit import Unit
from pandora_dagster.language.tokens import TokenKind

_OPENING = "Also named: "
_MAX_CODES = 60


@dataclass(frozen=True, slots=True)
class UnnamedCode:
    """A code that a talk has and its shortened form has not, with who gave it."""

    subject: str
    text: str


def unnamed_codes(reading: TextReading, kept: Collection[int], mandatory: Mapping[Term, float]) -> list[UnnamedCode]:
    """The codes with digits of the units that are left out; first those of most weight in `mandatory`, the terms to keep first."""
    kept_keys = {t.key for order in kept for t in reading.tokens[order]}
    codes: dict[str, tuple[float, UnnamedCode]] = {}
    for unit, tokens in zip(reading.units, reading.tokens, strict=True):
        if unit.order in kept or unit.is_context:
            continue
        for token in tokens:
            if token.kind is TokenKind.CODE and token.key not in kept_keys and any(map(str.isdigit, token.key)):
                code = UnnamedCode(_subject(unit), unit.text[token.start : token.end])
                codes.setdefault(code.text, (mandatory.get((token.kind, token.key), 0.0), code))
    return [code for _, code in sorted(codes.values(), key=lambda pair: -pair[0])][:_MAX_CODES]


def _subject(unit: Unit) -> str:
    """The name of the tool, or the speaker."""
    return (unit.speaker.partition(" ")[2] if is_tool(unit) else "") or unit.speaker or unit.kind.value


def is_last_line(line: str) -> bool:
    """Whether a line is one that `last_line` writes, by its opening."""
    return line.startswith(_OPENING)


def last_line(codes: Sequence[UnnamedCode], max_tokens: int, count: Callable[[str], int]) -> str:
    """As many of the codes as the tokens hold, in one line; "" for none."""
    for shown in range(len(codes), 0, -1):
        by_subject: defaultdict[str, list[str]] = defaultdict(list)
        for code in codes[:shown]:
            by_subject[code.subject].append(code.text)
        line = _OPENING + "; ".join(f"{subject}: {', '.join(texts)}" for subject, texts in by_subject.items())
        if count(line) <= max_tokens:
            return line
    return ""
