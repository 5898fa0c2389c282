"""How far back retrieval looks for one query, and which candidates it offers (specification 002, section 4). Rules without a model call."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pandora_dagster.contracts.turns import Candidate
from pandora_dagster.retrieval.retrieval_policy import DEPTHS, LINKED_WEIGHT, MAX_CANDIDATES, OTHER_DEPTH, Depth


@dataclass(frozen=True, slots=True)
class RetrievalScope:
    """How far back to look, and why."""

    depth: Depth
    why: str

    @property
    def max_candidates(self) -> int:
        return MAX_CANDIDATES[self.depth]


def retrieval_scope(intent: str, reference: str) -> RetrievalScope:
    """How far back to look for a query of this intent. With a reference to an earlier conversation the depth is full, except where
    the intent allows no recall at all."""
    depth = DEPTHS.get(intent, OTHER_DEPTH)
    if reference and depth != "none":
        return RetrievalScope("full", f"the query refers back: {reference}")
    return RetrievalScope(depth, intent)


def best_candidates(candidates: Sequence[Candidate], scope: RetrievalScope, *, linked: frozenset[str]) -> tuple[Candidate, ...]:
    """The best candidates, as many as `scope` allows; those of `linked` sessions count more."""
    weighted = [replace(c, score=c.score * LINKED_WEIGHT) if c.row.session_id in linked else c for c in candidates]
    return tuple(sorted(weighted, key=lambda c: -c.score)[: scope.max_candidates])
