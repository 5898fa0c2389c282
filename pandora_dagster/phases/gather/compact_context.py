"""The compact context (specification 002, section 6): facts that the user stated in the session and, with consent, in other sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.ids import SessionId, TurnKey
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.user.user_memory import NotableFact
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.phases.gather.fact_lines import FACTS_HEADING, PREFERENCES_HEADING, facts_block, shown_line
from pandora_dagster.phases.gather.section2 import Background, next_label

FACTS_DOCUMENT, MEMORY_DOCUMENT = "conversation_context", "session_memory"
MEMORY_HEADING = "===== SESSION MEMORY - USER PREFERENCES ====="
"""Heading of the session's facts (specification 004, section 13.1)."""
MAX_SHOWN_FACTS = 5
"""Current facts of the session, and of the user, that one call gets (specification 002, section 6)."""
_PRIORITY = 5e5
"""Priority of the facts: above older history and retrieved turns, below the newest turns, which are never dropped."""
_FACT_FRAME_TOKENS = 24
"""Tokens around a fact: category, date, turn, label."""


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The facts that a query gets as background: of the user from other sessions, and of this session.

    The rolling summary, a block of specification 002, section 6, is among the prior turns that it summarizes.
    """

    ctx: PhaseContext
    turn_count: int
    """The number of the turn in its session."""
    user: tuple[NotableFact, ...] = ()
    session: tuple[NotableFact, ...] = ()

    @classmethod
    def of(cls, ctx: PhaseContext, turn_count: int) -> "KnownFacts":
        """The facts of this session, and with consent those of the user, that match the query best; of equals the newest.

        Raises DocumentError for a damaged ledger.
        """
        user, session = ctx.turn.key.user, ctx.turn.manifest.session_id
        session_facts = tuple(f for f in ctx.deps.facts.session(user, SessionId(session)).facts if f.turn < ctx.turn.key.number)
        profile = ctx.deps.facts.profile(user)
        stated = {f.fact for f in session_facts}
        user_facts = [f for f in profile.facts if not f.origin.startswith(f"{session}/") and f.fact not in stated] if profile else []
        return cls(ctx, turn_count, _relevant_facts(ctx, user_facts), _relevant_facts(ctx, session_facts))

    @property
    def tokens(self) -> int:
        """Tokens of the pack that the facts take whatever else is loaded."""
        return sum(self.ctx.deps.counter.count(fact.fact) + _FACT_FRAME_TOKENS for fact in (*self.user, *self.session))

    def background(self, cited: Sequence[Source]) -> Background:
        """A fact is cited as the turn in which it was stated; new labels follow those of `cited`. A document without facts is empty."""
        labels, first = {s.turn_id: s.label for s in cited if s.turn_id}, next_label(cited)
        added: dict[str, Source] = {}
        for fact in (*self.user, *self.session):
            turn_id = TurnKey(self.ctx.turn.key.user, fact.turn).turn_id
            if turn_id not in labels:
                label = labels[turn_id] = str(first + len(added))
                added[turn_id] = Source(label, f"turns/{turn_id}/context.md", f"turn of {fact.stated_at[:10]}", turn_id)
        user = facts_block(PREFERENCES_HEADING, _fact_lines(self.user, labels))
        session = facts_block(FACTS_HEADING, _fact_lines(self.session, labels))
        items = _fact_item(user, "what is known of the user", _PRIORITY), _fact_item(session, "notable facts", _PRIORITY - 1)
        return Background(
            documents=(
                InputDocument(FACTS_DOCUMENT, items=items[0], header=f"Turn {self.turn_count}" if user else ""),
                InputDocument(MEMORY_DOCUMENT, items=items[1], header=MEMORY_HEADING if session else ""),
            ),
            cited=tuple(added.values()),
        )


def _fact_item(text: str, name: str, priority: float) -> tuple[Item, ...]:
    return (Item(text, priority, name),) if text else ()


def _fact_lines(facts: Sequence[NotableFact], labels: Mapping[str, str]) -> list[str]:
    return [shown_line(f, labels[f"turn_{f.turn:06d}"]) for f in facts]


def _relevant_facts(ctx: PhaseContext, facts: Sequence[NotableFact]) -> tuple[NotableFact, ...]:
    """At most `MAX_SHOWN_FACTS` current facts, each with the fact that it replaced, in the order in which they were stated."""
    current = [f for f in facts if f.is_current]
    if len(current) > MAX_SHOWN_FACTS:
        scores = ctx.deps.scores(ctx.analysis().resolved_query, [f.fact for f in current])
        ranked = sorted(zip(scores, current, strict=True), key=lambda pair: (-pair[0], -pair[1].turn))
        current = [fact for _, fact in ranked[:MAX_SHOWN_FACTS]]
    shown = {f.id for f in current}
    return tuple(f for f in facts if f.id in shown or f.superseded_by in shown)
