"""How far a turn looks back, and what the index offers it (002 section 4). Rules over the query and the policy: no call (DECISIONS 25)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.user_storage import FactStore
from pandora_dagster.contracts.turns import Candidate, Turn
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.documents.timestamps import parse_timestamp
from pandora_dagster.language.relative_days import day_ranges, query_day_terms
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.retrieval.retrieval_depth import RetrievalScope, depth_policy, filter_candidates, find_reference, retrieval_scope

_LINKED_FACTOR = 2
"""How many times what is offered is looked at where sessions weigh differently or a threshold narrows."""
SESSION_POOL = 200
"""Turns looked at where only this session's may be offered."""


@dataclass(frozen=True, slots=True)
class TurnCandidates:
    """What the index offers, best first, and how it was looked for."""

    candidates: tuple[Candidate, ...]
    how: RetrievalScope

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a phase tells of it."""
        told: dict[str, Any] = {"retrieval_depth": self.how.depth, "depth_why": self.how.why, "candidates": len(self.candidates)}
        return told | ({} if self.how.crosses else {"other_sessions": "no consent"})


def scope_of_turn(ctx: PhaseContext) -> RetrievalScope:
    """Depth, threshold and sessions for this turn."""
    policy, referred = depth_policy(ctx.deps.policy), find_reference(own_words(ctx.query))
    return retrieval_scope(policy, ctx.deps.stage or ctx.analysis().intent, referred, consents=crosses_sessions(ctx))


def candidate_turns(ctx: PhaseContext, query: str) -> TurnCandidates:
    """The turns that the index offers RETRIEVAL for `query`."""
    how, key, session = scope_of_turn(ctx), ctx.turn.key, ctx.turn.manifest.session_id
    if not how.offered:
        return TurnCandidates((), how)
    linked = frozenset(ctx.deps.facts.session(key.user, SessionId(session)).linked_sessions) if how.crosses else frozenset[str]()
    limit = max(SESSION_POOL, how.offered) if not how.crosses else how.offered * (_LINKED_FACTOR if linked or how.threshold else 1)
    found = ctx.deps.index.candidates(key.user, query, limit=limit, before=key.number)
    return TurnCandidates(filter_candidates(found, how, session=session, linked=linked), how)


def named_days(ctx: PhaseContext) -> tuple[str, ...]:
    """The days that the query names by their distance from the turn's own or by their date, as `told_days` says them."""
    return day_ranges(query_day_terms(own_words(ctx.query), parse_timestamp(ctx.turn.manifest.created_at).date()))


def crosses_sessions(ctx: PhaseContext) -> bool:
    """Whether turns of the person's other sessions may be used in this turn."""
    return may_cross_sessions(ctx.deps.policy, ctx.deps.facts, ctx.turn.key.user)


def may_cross_sessions(policy: str, facts: FactStore, user: UserId) -> bool:
    """Whether `policy` lets the person's sessions tell each other: always one's own assistant's, else once the person consents."""
    return depth_policy(policy).other_sessions == "own" or facts.profile(user) is not None


def may_load(ctx: PhaseContext, turn: Turn) -> bool:
    """Whether an earlier turn that RETRIEVAL names may be loaded."""
    return turn.manifest.session_id == ctx.turn.manifest.session_id or crosses_sessions(ctx)
