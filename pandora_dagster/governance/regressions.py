"""Comparison of a version and layer with the ones before: whether any share of its calls got worse by more than chance.

The test is Fisher's exact test, one-sided, at 0.01 for each recipe and comparison, divided by the number of compared shares (Bonferroni). A
share is compared from 20 calls on each side; fewer give no verdict. There is no correction over recipes and days.
"""

from dataclasses import dataclass
from math import comb
from typing import Literal

from pandora_dagster.governance.call_metrics import SHARES, CallMetrics


def fisher_lower_tail(before_good: int, before: int, after_good: int, after: int) -> float:
    """Probability that `after` calls of equal quality have at most `after_good` good ones (hypergeometric lower tail), 0 to 1.

    Exact for small and uneven samples, such as the first calls of a new version. 1.0 where a side is empty.
    """
    good, every = before_good + after_good, before + after
    if not before or not after:
        return 1.0
    fewer = range(max(0, good - before), after_good + 1)
    return sum(comb(good, k) * comb(every - good, after - k) for k in fewer) / comb(every, after)


ALPHA = 0.01
"""The probability to report any share of an equal version as worse, in one comparison."""
LEAST = 20
"""Calls on each side."""
WINDOW = 500
"""The newest calls of a version that are compared."""
Verdict = Literal["worse", "not worse", "not enough data", "no predecessor"]


@dataclass(frozen=True, slots=True)
class ShareComparison:
    """One share of both versions. `chance`: probability of so few good calls if the version were no worse."""

    share: str
    before_good: int
    before: int
    after_good: int
    after: int
    chance: float
    worse: bool


@dataclass(frozen=True, slots=True)
class VersionComparison:
    """The comparison of a recipe's version and layer with the ones before; `version` and `predecessor` name both, as `3fd9c2 on MIND`."""

    recipe: str
    version: str
    predecessor: str
    verdict: Verdict
    rows: tuple[ShareComparison, ...] = ()

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        head = f"{self.recipe}@{self.version}"
        if self.verdict == "worse":
            worse_shares = "; ".join(
                f"{r.share} {r.after_good} of {r.after}, before {r.before_good} of {r.before} (chance {r.chance:.2g})"
                for r in self.rows
                if r.worse
            )
            return f"{head} is worse than {self.predecessor}: {worse_shares}"
        if self.verdict == "not worse":
            return f"{head} is not worse than {self.predecessor}"
        return f"{head}: {self.verdict}: expected {LEAST} calls of it and of {self.predecessor or 'a version before it'}"


def compare_versions(recipe: str, version: str, after: CallMetrics, predecessor: str, before: CallMetrics) -> VersionComparison:
    """Compare a version with its predecessor by the metrics of both."""
    if not predecessor:
        return VersionComparison(recipe, version, "", "no predecessor")
    names = [name for name in SHARES if min(before.shares[name].of, after.shares[name].of) >= LEAST]
    rows = tuple(_compare_share(name, before, after, ALPHA / len(names)) for name in names)
    verdict: Verdict = "not enough data" if not rows else "worse" if any(row.worse for row in rows) else "not worse"
    return VersionComparison(recipe, version, predecessor, verdict, rows)


def _compare_share(name: str, before: CallMetrics, after: CallMetrics, alpha: float) -> ShareComparison:
    was, now = before.shares[name], after.shares[name]
    chance = fisher_lower_tail(was.good, was.of, now.good, now.of)
    return ShareComparison(name, was.good, was.of, now.good, now.of, chance, chance < alpha)
