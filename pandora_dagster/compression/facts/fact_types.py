"""The nouns of the ledger: a fact with its kind, span, subject and rank, and what became of it. Values only."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class FactKind(StrEnum):
    """What a fact is (001 section 2)."""

    QUERY = "query"
    MONEY = "money"
    QUANTITY = "quantity"
    PERCENTAGE = "percentage"
    DATE = "date"
    TIME = "time"
    NUMBER = "number"
    URL = "url"
    IDENTIFIER = "identifier"
    EVIDENCE = "evidence_link"
    QUOTE = "quote"
    NAME = "name"
    ERROR = "error"
    CLAIM = "claim"
    DECISION = "decision"
    CONSTRAINT = "constraint"
    ROW = "table_row"
    META = "meta_block"


NUMERIC = frozenset((FactKind.MONEY, FactKind.QUANTITY, FactKind.PERCENTAGE, FactKind.DATE, FactKind.TIME, FactKind.NUMBER))
LINES = frozenset((FactKind.QUERY, FactKind.ERROR, FactKind.CLAIM, FactKind.DECISION, FactKind.CONSTRAINT, FactKind.ROW, FactKind.META))
"""Kinds that span a whole line or more."""


class Rank(StrEnum):
    """Critical facts stay or the compression halts; important ones are put back while there is room; details may go."""

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
class Fact:
    """A fact of the original: characters `start` to `end`; `subject` is what it is about, as words."""

    kind: FactKind
    text: str
    start: int
    end: int
    key: str
    subject: tuple[str, ...] = ()
    rank: Rank = Rank.IMPORTANT
    rule: str = ""
    """The rule by which it may be dropped (DECISIONS 5), "" for none."""
    instead: str = ""
    """What has to stand where the rule drops it: the surer of two equal claims. "" for nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one fact; `fact` is None for something invented, `evidence` what stands in the text instead."""

    outcome: Outcome
    fact: Fact | None
    evidence: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        return self.fact.text if self.fact else self.evidence


@dataclass(frozen=True)
class Ledger:
    """The facts of an original, in order. The contract of every later generation is with this one."""

    facts: tuple[Fact, ...]
    speakers: frozenset[str] = frozenset()

    @cached_property
    def critical(self) -> tuple[Fact, ...]:
        return tuple(f for f in self.facts if f.rank is Rank.CRITICAL)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(f.key for f in self.facts)


def count_verdicts(verdicts: tuple[Verdict, ...]) -> dict[str, int]:
    """`total` facts of the ledger, and how many verdicts there are of each outcome."""
    counts = {"total": sum(v.fact is not None for v in verdicts)} | {outcome.value: 0 for outcome in Outcome}
    for verdict in verdicts:
        counts[verdict.outcome.value] += 1
    return counts
