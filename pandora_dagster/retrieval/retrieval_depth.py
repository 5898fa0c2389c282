"""How far back retrieval looks for one query: depth, threshold, other sessions (002 section 4). Rules without a model call."""

from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.turns import Candidate
from pandora_dagster.retrieval.retrieval_policy import OFFERED, Depth, RetrievalPolicy


@dataclass(frozen=True, slots=True)
class RetrievalScope:
    """How retrieval looks for one query, and why."""

    depth: Depth
    why: str
    threshold: float
    crosses: bool
    """Whether other sessions of the user are searched."""
    linked_weight: float

    @property
    def offered(self) -> int:
        return OFFERED[self.depth]


def retrieval_scope(policy: RetrievalPolicy, kind: str, reference: str, *, consents: bool) -> RetrievalScope:
    """How to look for a query of stage or intent `kind`. A reference to earlier conversation looks fully, except where the kind
    allows no recall at all; it lifts no consent."""
    depth, why = policy.depths.get(kind, policy.other_depth), kind
    if reference and depth != "none":
        depth, why = "full", f"the query refers back: {reference}"
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
