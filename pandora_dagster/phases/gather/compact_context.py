"""The compact context of 002 section 6: what is known of the session (004's session memory) and, with consent, of the person.

Knows which facts a query is given and how they are cited; where the document goes is the gatherer's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.ids import SessionId, TurnKey, user_id
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.user.user_memory import NotableFact
from pandora_dagster.documents.fact_lines import FACTS_HEADING, PREFERENCES_HEADING, facts_block, shown_line
from pandora_dagster.phases.core.phase_context import PhaseContext

NAME, MEMORY = "conversation_context", "session_memory"
SESSION = "===== SESSION MEMORY - USER PREFERENCES ====="
"""Stands before the facts of the session (004 section 13.1)."""
MOST_SHOWN = 5
"""Items of one kind (002 section 6)."""
_WORTH = 5e5
"""Above older history and what was retrieved, below the newest turns, which are never dropped."""


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """What a query is given: of the person from other sessions, and of this session."""

    person: tuple[NotableFact, ...] = ()
    session: tuple[NotableFact, ...] = ()

    @property
    def all_facts(self) -> tuple[NotableFact, ...]:
        return (*self.person, *self.session)


def known_facts(ctx: PhaseContext) -> KnownFacts:
    """The facts of this session, and with consent those of the person, that say most about the query; of equals the newest.

    Raises DocumentError for a damaged ledger.
    """
    user, session = ctx.turn.key.user, ctx.turn.manifest.session_id
    own = tuple(f for f in ctx.deps.facts.session(user, SessionId(session)).facts if f.turn < ctx.turn.key.number)
    profile = ctx.deps.facts.profile(user)
    said = {f.fact for f in own}
    others = [f for f in profile.facts if not f.origin.startswith(f"{session}/") and f.fact not in said] if profile else []
    return KnownFacts(_relevant_facts(ctx, others), _relevant_facts(ctx, own))


def conversation_context(
    known: KnownFacts, sources: Sequence[Source], *, user: str, turn_count: int
) -> tuple[tuple[InputDocument, ...], tuple[Source, ...]]:
    """The two documents, and the sources of their facts that `sources` do not hold yet: a fact is cited as the turn in which it was said.

    `turn_count`: the place of the turn in its session. A document without items says nothing. The rolling summary, a block of 002
    section 6, goes among the prior turns, for which it speaks.
    """
    labels = {s.turn_id: s.label for s in sources if s.turn_id}
    first = max((int(s.label) for s in sources), default=0) + 1
    added: dict[str, Source] = {}
    for fact in known.all_facts:
        turn_id = TurnKey(user_id(user), fact.turn).turn_id
        if turn_id not in labels:
            label = labels[turn_id] = str(first + len(added))
            added[turn_id] = Source(label, f"turns/{turn_id}/context.md", f"turn of {fact.stated_at[:10]}", turn_id)
    person, session = (
        facts_block(PREFERENCES_HEADING, _fact_lines(known.person, labels)),
        facts_block(FACTS_HEADING, _fact_lines(known.session, labels)),
    )
    documents = (
        InputDocument(NAME, items=_fact_item(person, "what is known of the person", _WORTH), header=f"Turn {turn_count}" if person else ""),
        InputDocument(MEMORY, items=_fact_item(session, "notable facts", _WORTH - 1), header=SESSION if session else ""),
    )
    return documents, tuple(added.values())


def _fact_item(text: str, name: str, worth: float) -> tuple[Item, ...]:
    return (Item(text, worth, name),) if text else ()


def _fact_lines(facts: Sequence[NotableFact], labels: Mapping[str, str]) -> list[str]:
    return [shown_line(f, labels[f"turn_{f.turn:06d}"]) for f in facts]


def _relevant_facts(ctx: PhaseContext, facts: Sequence[NotableFact]) -> tuple[NotableFact, ...]:
    """At most `MOST_SHOWN` that hold, each with what held before it, in the order in which they were stated."""
    holding = [f for f in facts if f.current]
    if len(holding) > MOST_SHOWN:
        scores = ctx.deps.scores(ctx.analysis().resolved_query, [f.fact for f in holding])
        ranked = sorted(zip(scores, holding, strict=True), key=lambda pair: (-pair[0], -pair[1].turn))
        holding = [fact for _, fact in ranked[:MOST_SHOWN]]
    shown = {f.id for f in holding}
    return tuple(f for f in facts if f.id in shown or f.superseded_by in shown)
