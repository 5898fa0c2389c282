"""The privacy rule for the queries of a turn, from what is stored of its user."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId, session_id
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import FactStore, MemoryStore, SourceStore
from pandora_dagster.contracts.user.sources import visit_logical_id
from pandora_dagster.documents.citations import REFERENCES_TITLE, source_references
from pandora_dagster.documents.meta import subsections
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.tools.search.query_privacy import WEB, QueryPrivacy, private_terms

_MAX_EARLIER_TURNS = 50
"""Earlier turns in which a word of a query is looked for: those that match it best, and the newest that are open."""
_OWN_PARTS = frozenset((REFERENCES_TITLE, "Context Assessment"))
"""Parts of section 2 that are about the question and its sources: they are from no source."""


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
    context = ContextDocument.parse(stored_turn.context)
    profile = stores.facts.profile(user)
    session = stores.facts.session(user, session_id(stored_turn.manifest.session_id))
    entries = [entry for stored in stores.memory.entries(user) for entry in (stored, *stored.earlier)]
    texts = [str(entry.value) for entry in entries]
    texts += [fact.fact for ledger in (session, profile) if ledger for fact in ledger.facts]
    gathered = [text for title, text in subsections(context.body(2)).items() if title not in _OWN_PARTS]
    given = _terms((*gathered, *(entry.key for entry in entries)))
    return QueryPrivacy(
        context.query(),
        _terms(texts),
        lambda word, terms: not terms.isdisjoint(given) or any(terms & private_terms(text) for text in _words_said(stores, turn, word)),
        {*_terms(_page_texts(stores.sources, user, context))},
    )


def _terms(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(term for text in texts for term in private_terms(text))


def _page_texts(sources: SourceStore, user: UserId, context: ContextDocument) -> Iterator[str]:
    """The titles of the pages of the web that the user's turns visited, and what section 2 could show of its own."""
    shown = {source.path for source in source_references(context.body(2))}
    for row in sources.visit_rows(user):
        if row.url.startswith(WEB):
            yield row.title
            if visit_logical_id(row.visit_id) in shown:
                yield json.dumps(sources.visit(user, row.visit_id).extracted_data, ensure_ascii=False, default=str)


def _words_said(stores: UserStores, turn: TurnKey, word: str) -> Iterator[str]:
    """The user's words in the earlier turns that match `word`, and in those that are not ended: no search finds these."""
    found = stores.index.candidates(turn.user, word, limit=_MAX_EARLIER_TURNS, before=turn.number)
    newest = stores.index.rows(turn.user, before=turn.number, limit=_MAX_EARLIER_TURNS)
    rows = chain((candidate.row for candidate in found), (row for row in newest if row.state is TurnState.OPEN))
    for row in rows:
        yield ContextDocument.parse(stores.turns.load(TurnKey(turn.user, row.number), only=()).context).query()
