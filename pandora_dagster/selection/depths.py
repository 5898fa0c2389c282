"""How far back retrieval looks (002 section 4, "Retrieval Depth by Stage"): depth, threshold, other sessions. Pure numbers and rules.

Thresholds are quantiles of the ranker in use (DECISIONS 27): 0.6 leaves the best 40 % of what it found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pandora_dagster.contracts.turns import Candidate
from pandora_dagster.errors import InputError
from pandora_dagster.selection.references import Reference

Depth = Literal["none", "minimal", "light", "full"]
OFFERED: Mapping[Depth, int] = MappingProxyType({"none": 0, "minimal": 5, "light": 20, "full": 40})
"""Depth -> turns that the index offers; light is 004 section 4.1's twenty."""
_ASSISTANT: dict[str, Depth] = {"greeting": "none", "navigation": "minimal"}
_MEDIATION: dict[str, Depth] = {
    "onboarding": "minimal",
    "witnessing": "light",
    "perspective": "light",
    "need_mapping": "full",
    "repair": "full",
    "high_distress": "none",
    "avoid_recall": "none",
    "stage_enforcement": "minimal",
}
_STAGE_THRESHOLDS = {"onboarding": 0.60, "witnessing": 0.65, "perspective": 0.55, "need_mapping": 0.50, "repair": 0.50}


@dataclass(frozen=True, slots=True)
class DepthPolicy:
    """One policy's table, keyed by stage or intent as its windows are."""

    name: str
    depths: Mapping[str, Depth] = field(default_factory=lambda: MappingProxyType(_ASSISTANT))
    other_depth: Depth = "light"
    thresholds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict[str, float]()))
    """Stage or intent -> quantile under which what was found is left out; absent: nothing is, RETRIEVAL judges."""
    other_sessions: Literal["own", "consented"] = "own"
    """`own`: the person's other sessions are searched; `consented`: only once the person consents."""
    linked_weight: float = 1.3
    """How much more a turn of a linked session counts (002 section 4: a 30 % boost)."""


DEPTH_POLICIES: Mapping[str, DepthPolicy] = MappingProxyType(
    {
        "assistant": DepthPolicy("assistant"),
        "mediation": DepthPolicy(
            "mediation",
            depths=MappingProxyType(_MEDIATION),
            other_depth="minimal",
            thresholds=MappingProxyType(_STAGE_THRESHOLDS),
            other_sessions="consented",
        ),
    }
)
"""The shipped policies. Two people meet in a mediation: what one session heard reaches another only with consent."""


def depth_policy(name: str) -> DepthPolicy:
    """A shipped policy; raises InputError."""
    try:
        return DEPTH_POLICIES[name]
    except KeyError:
        raise InputError(f"policy {name!r}: expected one of {', '.join(DEPTH_POLICIES)}") from None


@dataclass(frozen=True, slots=True)
class RetrievalScope:
    """How retrieval looks for one query, and why."""

    depth: Depth
    why: str
    threshold: float
    crosses: bool
    """Whether other sessions of the person are searched."""
    linked_weight: float

    @property
    def offered(self) -> int:
        return OFFERED[self.depth]


def retrieval_scope(policy: DepthPolicy, kind: str, referred: Reference | None, *, consents: bool) -> RetrievalScope:
    """How to look for a query of stage or intent `kind`. A reference to earlier conversation looks fully, except where the kind
    allows no recall at all; it lifts no consent."""
    depth, why = policy.depths.get(kind, policy.other_depth), kind
    if referred and depth != "none":
        depth, why = "full", f"the query refers back: {referred.words}"
    crosses = policy.other_sessions == "own" or consents
    return RetrievalScope(depth, why, policy.thresholds.get(kind, 0.0), crosses, policy.linked_weight)


def filter_candidates(found: Sequence[Candidate], how: RetrievalScope, *, session: str, linked: frozenset[str]) -> tuple[Candidate, ...]:
    """The candidates that are offered, best first: of allowed sessions, linked ones weighted, over the threshold, as deep as `how`."""
    allowed = [c for c in found if how.crosses or c.row.session_id == session]
    weighted = [Candidate(c.row, c.score * (how.linked_weight if c.row.session_id in linked else 1.0)) for c in allowed]
    least = quantile([c.score for c in weighted], how.threshold)
    kept = [c for c in weighted if c.score >= least]
    return tuple(sorted(kept, key=lambda c: -c.score)[: how.offered])


def quantile(values: Sequence[float], share: float) -> float:
    """The value that at least `share` of the values do not exceed, the smallest for 0; 0.0 where there is none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
