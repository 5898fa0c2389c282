"""The privacy rule for the queries of a turn, from what is stored of its user."""

from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.contracts.ids import TurnKey, session_id
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import FactStore, MemoryStore, SourceStore
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.tools.search.query_privacy import QueryPrivacy, private_terms

_MAX_EARLIER_TURNS = 10
"""Earlier turns in which the words of a query are looked for."""


@dataclass(frozen=True, slots=True)
class UserStores:
    """What is stored of users that research reads and writes."""

    turns: TurnStore
    index: TurnIndex
    memory: MemoryStore
    facts: FactStore
    sources: SourceStore


def query_privacy(stores: UserStores, turn: TurnKey) -> QueryPrivacy:
    """The rule for the queries of a turn: consent is what the user's own words of the turn say. Raises UnknownTurnError, DocumentError."""
    user, stored_turn = turn.user, stores.turns.load(turn, only=())
    profile = stores.facts.profile(user)
    session = stores.facts.session(user, session_id(stored_turn.manifest.session_id))
    texts = [str(entry.value) for stored in stores.memory.entries(user) for entry in (stored, *stored.earlier)]
    texts += [fact.fact for ledger in (session, profile) if ledger for fact in ledger.facts]
    titles = " ".join(row.title for row in stores.sources.visit_rows(user))
    return QueryPrivacy(
        private_terms(ContextDocument.parse(stored_turn.context).query()),
        frozenset(term for text in texts for term in private_terms(text)),
        lambda words: _words_said(stores, turn, words),
        private_terms(titles),
    )


def _words_said(stores: UserStores, turn: TurnKey, words: str) -> Iterator[str]:
    """The user's words in the earlier turns that match `words`."""
    for candidate in stores.index.candidates(turn.user, words, limit=_MAX_EARLIER_TURNS, before=turn.number):
        context = stores.turns.load(TurnKey(turn.user, candidate.row.number), only=()).context
        yield ContextDocument.parse(context).query()
