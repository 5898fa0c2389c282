"""The depth of retrieval for a turn, and the turns that the index offers it (specification 002, section 4).

Rules without a model call: decision 25 (docs/decisions/25-the-embedded-runtime.md).
"""

from typing import Any

from pandora_dagster.contracts.ids import SessionId
from pandora_dagster.contracts.turns import Candidate
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.language.relative_days import query_day_terms
from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.phases.core.day_ranges import day_ranges
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.retrieval.retrieval_depth import RetrievalScope, best_candidates, retrieval_scope

_LINKED_FACTOR = 2
"""Factor on the number of candidates fetched where linked sessions change their order."""


def scope_of_turn(ctx: PhaseContext) -> RetrievalScope:
    """The depth for this turn; phase 0 says whether the query refers back (specification 002, section 4, "Reference
    Detection")."""
    analysis = ctx.analysis()
    reference = "; ".join(analysis.reference_resolution.original_references) or ("recall" if analysis.intent == "recall" else "")
    return retrieval_scope(analysis.intent, reference)


def candidate_turns(ctx: PhaseContext, query: str) -> tuple[tuple[Candidate, ...], dict[str, Any]]:
    """The turns that the index offers RETRIEVAL for `query`, best first, and what the phase report says of the search."""
    scope = scope_of_turn(ctx)
    candidates = _candidates(ctx, query, scope) if scope.max_candidates else ()
    return candidates, {"retrieval_depth": scope.depth, "depth_why": scope.why, "candidates": len(candidates)}


def _candidates(ctx: PhaseContext, query: str, scope: RetrievalScope) -> tuple[Candidate, ...]:
    key, session = ctx.turn.key, ctx.turn.manifest.session_id
    linked_sessions = frozenset(ctx.deps.facts.session(key.user, SessionId(session)).linked_sessions)
    limit = scope.max_candidates * (_LINKED_FACTOR if linked_sessions else 1)
    return best_candidates(ctx.deps.index.candidates(key.user, query, limit=limit, before=key.number), scope, linked=linked_sessions)


def named_days(ctx: PhaseContext) -> tuple[str, ...]:
    """The days that the query names by date or by their distance from the turn's day, as `day_ranges` writes them."""
    return day_ranges(query_day_terms(own_words(ctx.query), parse_timestamp(ctx.turn.manifest.created_at).date()))
