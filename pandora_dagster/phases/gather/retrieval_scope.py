"""The depth of retrieval for a turn, and the turns that the index offers it (specification 002, section 4).

Rules without a model call: decision 25 (docs/decisions/25-the-embedded-runtime.md).
"""

from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.user_storage import FactStore
from pandora_dagster.contracts.turns import MAX_SESSION_CANDIDATES, Candidate, Turn
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.language.relative_days import query_day_terms
from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.phases.core.day_ranges import day_ranges
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.retrieval.retrieval_depth import RetrievalScope, filter_candidates, retrieval_scope
from pandora_dagster.retrieval.retrieval_policy import retrieval_policy

_LINKED_FACTOR = 2
"""Factor on the number of candidates fetched where linked sessions or a threshold filter them."""


def scope_of_turn(ctx: PhaseContext) -> RetrievalScope:
    """Depth, threshold and sessions for this turn; phase 0 says whether the query refers back (specification 002, section 4, "Reference
    Detection")."""
    analysis = ctx.analysis()
    reference = "; ".join(analysis.reference_resolution.original_references) or ("recall" if analysis.intent == "recall" else "")
    return retrieval_scope(retrieval_policy(ctx.deps.policy), ctx.deps.stage or analysis.intent, reference, consents=crosses_sessions(ctx))


def candidate_turns(ctx: PhaseContext, query: str) -> tuple[tuple[Candidate, ...], dict[str, Any]]:
    """The turns that the index offers RETRIEVAL for `query`, best first, and what the phase report says of the search."""
    scope = scope_of_turn(ctx)
    candidates = _candidates(ctx, query, scope) if scope.offered else ()
    facts: dict[str, Any] = {"retrieval_depth": scope.depth, "depth_why": scope.why, "candidates": len(candidates)}
    return candidates, facts | ({} if scope.crosses else {"other_sessions": "no consent"})


def _candidates(ctx: PhaseContext, query: str, scope: RetrievalScope) -> tuple[Candidate, ...]:
    key, session = ctx.turn.key, ctx.turn.manifest.session_id
    linked_sessions = frozenset(ctx.deps.facts.session(key.user, SessionId(session)).linked_sessions) if scope.crosses else frozenset[str]()
    limit = (
        max(MAX_SESSION_CANDIDATES, scope.offered)
        if not scope.crosses
        else scope.offered * (_LINKED_FACTOR if linked_sessions or scope.threshold else 1)
    )
    candidates = ctx.deps.index.candidates(key.user, query, limit=limit, before=key.number)
    return filter_candidates(candidates, scope, session=session, linked=linked_sessions)


def named_days(ctx: PhaseContext) -> tuple[str, ...]:
    """The days that the query names by date or by their distance from the turn's day, as `day_ranges` writes them."""
    return day_ranges(query_day_terms(own_words(ctx.query), parse_timestamp(ctx.turn.manifest.created_at).date()))


def crosses_sessions(ctx: PhaseContext) -> bool:
    """Whether turns of the user's other sessions may be used in this turn."""
    return may_cross_sessions(ctx.deps.policy, ctx.deps.facts, ctx.turn.key.user)


def may_cross_sessions(policy: str, facts: FactStore, user: UserId) -> bool:
    """Whether `policy` shares turns between the user's sessions: always for the user's own assistant, else after the user consents."""
    return retrieval_policy(policy).other_sessions == "own" or facts.profile(user) is not None


def may_load(ctx: PhaseContext, turn: Turn) -> bool:
    """Whether an earlier turn that RETRIEVAL names may be loaded: not one that still runs."""
    is_own = turn.manifest.session_id == ctx.turn.manifest.session_id or crosses_sessions(ctx)
    return is_own and turn.manifest.state is not TurnState.OPEN
