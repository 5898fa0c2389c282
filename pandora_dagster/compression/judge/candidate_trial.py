"""A condensed text with what was found about it, and how it compares with another. Pure."""

from dataclasses import dataclass

from pandora_dagster.compression.facts.fact_types import Outcome, Verdict
from pandora_dagster.compression.judge.summary_check import SummaryCheck
from pandora_dagster.compression.judge.verification import Verification

_FEW_FACTS = 5
"""Of a source with fewer facts a text may keep none."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate, with what was found about it."""

    text: str
    verification: Verification
    check: SummaryCheck

    @property
    def changed(self) -> tuple[Verdict, ...]:
        return self.verification.of(Outcome.MUTATED, Outcome.INVENTED)

    @property
    def keeps_nothing(self) -> bool:
        """Whether the source has facts, and the text has none of them."""
        counts = self.verification.counts
        return counts["total"] >= _FEW_FACTS and not counts["kept"] + counts["equal"] + counts["recoverable"]

    @property
    def is_sound(self) -> bool:
        return self.check.ok and self.verification.facts_preserved and not self.keeps_nothing

    @property
    def loss(self) -> tuple[int, bool, int, int]:
        found = self.verification
        return len(found.lost_critical) + len(self.changed), not self.check.ok or self.keeps_nothing, len(self.changed), len(found.lost)
