"""Compares a recipe's version and layer with the ones before: whether any share of its calls got worse by more than chance.

Each share, such as `passed`, is compared by Fisher's exact test, one-sided. The level of significance is 0.01 for one comparison of a
recipe, divided by the number of its compared shares (Bonferroni). A share is compared from 20 calls on each side; fewer give no verdict.
There is no correction over recipes and days.
"""

from dataclasses import dataclass
from math import comb
from typing import Literal

from pandora_dagster.governance.call_metrics import SHARES, CallMetrics


def fisher_lower_tail(before_good: int, before: int, after_good: int, after: int) -> float:
    """Probability that `after` calls of equal quality have at most `after_good` good ones (hypergeometric lower tail), 0 to 1.

    Exact for small and uneven samples, such as the first calls of a new version. 1.0 where a side is empty.
    """
    all_good, all_calls = before_good + after_good, before + after
    if not before or not after:
        return 1.0
    good_counts = range(max(0, all_good - before), after_good + 1)
    return sum(comb(all_good, good) * comb(all_calls - all_good, after - good) for good in good_counts) / comb(all_calls, after)


ALPHA = 0.01
"""Level of significance of one comparison: the probability that it reports an equal version as worse."""
MIN_CALLS = 20
"""Calls that a share needs on each side."""
WINDOW_CALLS = 500
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
        return f"{head}: {self.verdict}: expected {MIN_CALLS} calls of it and of {self.predecessor or 'a version before it'}"


def compare_versions(recipe: str, version: str, after: CallMetrics, predecessor: str, before: CallMetrics) -> VersionComparison:
    """Compare a version with its predecessor by the metrics of both."""
    if not predecessor:
        return VersionComparison(recipe, version, "", "no predecessor")
    names = [name for name in SHARES if min(before.shares[name].total, after.shares[name].total) >= MIN_CALLS]
    rows = tuple(_compare_share(name, before, after, ALPHA / len(names)) for name in names)
    verdict: Verdict = "not enough data" if not rows else "worse" if any(row.worse for row in rows) else "not worse"
    return VersionComparison(recipe, version, predecessor, verdict, rows)


def _compare_share(name: str, before: CallMetrics, after: CallMetrics, alpha: float) -> ShareComparison:
    share_before, share_after = before.shares[name], after.shares[name]
    chance = fisher_lower_tail(share_before.good, share_before.total, share_after.good, share_after.total)
    return ShareComparison(name, share_before.good, share_before.total, share_after.good, share_after.total, chance, chance < alpha)
