"""How far a turn looks back, and what the index offers it (002 section 4). Rules over the query and the policy: no call (DECISIONS 25)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.remembered import FactBook
from pandora_dagster.contracts.turns import Candidate, Turn
from pandora_dagster.phases.desk import Desk
from pandora_dagster.selection.depths import Looking, depth_policy, looking, narrowed
from pandora_dagster.selection.references import reference
from pandora_dagster.text.dates import moment
from pandora_dagster.text.pasted import own_words
from pandora_dagster.text.said_days import led_days, told_days

_POOL = 2
"""How many times what is offered is looked at where sessions weigh differently or a threshold narrows."""
SESSION_POOL = 200
"""Turns looked at where only this session's may be offered."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What the index offers, best first, and how it was looked for."""

    candidates: tuple[Candidate, ...]
    how: Looking

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a phase tells of it."""
        told: dict[str, Any] = {"retrieval_depth": self.how.depth, "depth_why": self.how.why, "candidates": len(self.candidates)}
        return told | ({} if self.how.crosses else {"other_sessions": "no consent"})


def how_to_look(desk: Desk) -> Looking:
    """Depth, threshold and sessions for this turn."""
    policy, referred = depth_policy(desk.kit.policy), reference(own_words(desk.query))
    return looking(policy, desk.kit.stage or desk.analysis().intent, referred, consents=crosses_sessions(desk))


def offered(desk: Desk, query: str) -> Offered:
    """The turns that the index offers RETRIEVAL for `query`."""
    how, key, session = how_to_look(desk), desk.turn.key, desk.turn.manifest.session_id
    if not how.offered:
        return Offered((), how)
    linked = frozenset(desk.kit.facts.session(key.user, SessionId(session)).linked_sessions) if how.crosses else frozenset[str]()
    limit = max(SESSION_POOL, how.offered) if not how.crosses else how.offered * (_POOL if linked or how.threshold else 1)
    found = desk.kit.index.candidates(key.user, query, limit=limit, before=key.number)
    return Offered(narrowed(found, how, session=session, linked=linked), how)


def named_days(desk: Desk) -> tuple[str, ...]:
    """The days that the query names by their distance from the turn's own or by their date, as `told_days` says them."""
    return told_days(led_days(own_words(desk.query), moment(desk.turn.manifest.created_at).date()))


def crosses_sessions(desk: Desk) -> bool:
    """Whether turns of the person's other sessions may be used in this turn."""
    return may_cross(desk.kit.policy, desk.kit.facts, desk.turn.key.user)


def may_cross(policy: str, facts: FactBook, user: UserId) -> bool:
    """Whether `policy` lets the person's sessions tell each other: always one's own assistant's, else once the person consents."""
    return depth_policy(policy).other_sessions == "own" or facts.profile(user) is not None


def may_load(desk: Desk, turn: Turn) -> bool:
    """Whether an earlier turn that RETRIEVAL names may be loaded."""
    return turn.manifest.session_id == desk.turn.manifest.session_id or crosses_sessions(desk)
