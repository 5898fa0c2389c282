"""A fact of a text with its place and its subject, and what became of it in a shorter text. Values only."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pandora_dagster.documents.units.unit import Unit


class FactKind(StrEnum):
    """What a fact is (specification 001, section 2)."""

    MONEY = "money"
    QUANTITY = "quantity"
    PERCENTAGE = "percentage"
    DATE = "date"
    TIME = "time"
    NUMBER = "number"
    URL = "url"
    IDENTIFIER = "identifier"
    NAME = "name"
    ERROR = "error"
    DECISION = "decision"
    CONSTRAINT = "constraint"
    CLAIM = "claim"


STATEMENTS = frozenset((FactKind.ERROR, FactKind.DECISION, FactKind.CONSTRAINT, FactKind.CLAIM))
"""Kinds that are a whole unit; the others are values inside one."""
SELF_EVIDENT = frozenset((FactKind.URL, FactKind.IDENTIFIER, FactKind.NAME))
"""Kinds that need no words beside them to say what they are."""


class Rank(StrEnum):
    """How much a reader misses a fact: rules, decisions and errors first, then values and names, then what rows and listings hold."""

    CRITICAL = "critical"
    IMPORTANT = "important"
    DETAIL = "detail"


class Outcome(StrEnum):
    """What became of a fact."""

    KEPT = "kept"
    EQUAL = "equal"
    RECOVERABLE = "recoverable"
    DROPPED_BY_RULE = "dropped_by_rule"
    MUTATED = "mutated"
    MISSING = "missing"
    INVENTED = "invented"


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` of a text, and the line, from 1, on which they begin."""

    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of the original: characters `start` to `end`; `subject` has the stems of what it is a value of, the nearest first."""

    kind: FactKind
    text: str
    start: int
    end: int
    key: str
    """The value in the one spelling of all that are equal; of a statement its words."""
    subject: tuple[str, ...] = ()
    rank: Rank = Rank.IMPORTANT
    unit: int = 0
    """The order of the unit that holds it."""
    rule: str = ""
    """The rule by which it may be left out (decision 5, docs/decisions/05-dropped-by-rule.md), "" for none."""


def labelled(unit: Unit) -> str:
    """A unit's text with its speaker before it."""
    text = unit.text.strip()
    return f"{unit.speaker}: {text}" if unit.speaker and not text.startswith(unit.speaker) else text


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one fact. `fact` is None for what was added, and for a change that concerns no single fact; `evidence` is what the
    shortened text has instead, `here` its place there, `place` the place in the original."""

    outcome: Outcome
    fact: Fact | None
    evidence: str = ""
    reason: str = ""
    place: Place | None = None
    here: Place | None = None

    @property
    def text(self) -> str:
        return self.fact.text if self.fact else self.evidence


@dataclass(frozen=True, slots=True)
class Omission:
    """A unit of the original that is not in the shortened text."""

    text: str
    original: Place


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the shortened text that is not verbatim, beside the units that it was made from and the words that differ. Whether
    its meaning is theirs is for a model or a person to say."""

    text: str
    shortened: Place
    sources: tuple[Omission, ...]
    differences: tuple[str, ...] = ()


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """`total` facts, and the number of verdicts of each outcome."""
    listed = tuple(verdicts)
    counts = Counter(v.outcome for v in listed)
    return {"total": sum(v.fact is not None for v in listed)} | {outcome.value: counts[outcome] for outcome in Outcome}
