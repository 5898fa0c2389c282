"""One search in the turn index: which messages match, their neighbours and their texts; `retrieval.messages` ranks them.

Steps: the postings of the question's terms are read; the best documents by BM25 become the pool; the pool and the turns around it are
ranked; the texts of the best are read. Every statement is limited to one user's documents. Outside the SQL a document is counted from the
user's first.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import islice

import numpy as np

from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.language.bm25 import idf
from pandora_dagster.language.relative_days import yearless_days
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.messages.document_numbers import PLACE_BITS
from pandora_dagster.retrieval.messages.message_ranking import (
    K1,
    SCORE_DIGITS,
    WEIGHTS,
    B,
    BoolArray,
    IntArray,
    MessageUnits,
    ScoredMessage,
    TermMatches,
    rank_messages,
)
from pandora_dagster.retrieval.messages.search_question import SearchQuestion, read_question
from pandora_dagster.stores.search.search_documents import ASKS, OWN_WORDS
from pandora_dagster.stores.search.search_tables import (
    POSTING,
    USER_BITS,
    columns_of_turns,
    latest_day,
    newest_columns,
    postings_of,
    speakers_of,
    texts_of,
)

POOL_SIZE = 200
"""Documents that are ranked with their neighbours; more do not change the first ten results."""
MAX_SIMILAR_MESSAGES = 100
"""Messages added to the pool because their vectors are most similar to the question's."""
_NEIGHBOUR_TURNS = 4
"""Turns on each side of a match that are ranked with it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Hits:
    """Postings of the question's terms: the place of the term among them, the document, the count there, the document's length."""

    places: IntArray
    docs: IntArray
    counts: IntArray
    lengths: IntArray

    def best(self, weights: Sequence[float], mean_length: float, allowed: IntArray | None) -> IntArray:
        """The `POOL_SIZE` best documents by BM25, the newest of equals first. `allowed`: the turns whose documents count; None: all."""
        norms = K1 * (1 - B + B * self.lengths / mean_length)
        scores = np.array(weights)[self.places] * self.counts * (K1 + 1) / (self.counts + norms)
        found = slice(None) if allowed is None else np.isin(self.docs >> PLACE_BITS, allowed)
        docs, scores = self.docs[found], scores[found]
        order = np.argsort(docs, kind="stable")  # a merge of sorted runs: a term's documents are nearly in order
        docs, scores = docs[order], scores[order]
        firsts = np.flatnonzero(np.diff(docs, prepend=-1))
        docs, sums = docs[firsts], np.round(np.add.reduceat(scores, firsts), SCORE_DIGITS) if len(docs) else scores
        if len(docs) > POOL_SIZE:
            least = np.partition(sums, -POOL_SIZE)[-POOL_SIZE]
            docs, sums = docs[sums >= least], sums[sums >= least]
        return docs[np.lexsort((-docs, -sums))[:POOL_SIZE]]

    def matches(self, terms: Sequence[str], rarity: Mapping[str, float], units: MessageUnits) -> TermMatches:
        """How often each term is in each unit."""
        counts = np.zeros((len(terms), len(units.docs)))
        columns = np.searchsorted(units.docs, self.docs)
        inside = np.append(units.docs, -1)[columns] == self.docs
        counts[self.places[inside], columns[inside]] = self.counts[inside]
        return TermMatches(terms, counts, rarity)


@dataclass(frozen=True, slots=True)
class GatheredUnits:
    """A question with the units to rank for it; `turns`: numbers of the turns in the pool, without their neighbours."""

    question: SearchQuestion
    units: MessageUnits
    matches: TermMatches
    turns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """A search over one open connection, among the documents of the user whose documents count from `base`."""

    db: sqlite3.Connection
    base: int
    reader: TermReader
    end: int = 1 << USER_BITS
    """The first document of the user that does not count."""
    allowed: IntArray | None = None
    """The numbers of the turns that pass the filters; None without filters."""
    likeness: Mapping[int, float] = field(default_factory=dict[int, float])
    """The number of a message among the user's -> cosine of its vector with the query's; empty where there are no vectors."""
    today: date | None = None
    """The day on which the question is asked; None: `yesterday` and the like stay words."""

    def rank(self, query: str) -> Iterator[ScoredMessage]:
        """Messages and turns that share something with the query or are beside one that does, best first."""
        gathered = self.gather(query)
        if gathered is None:
            return iter(())
        scored = rank_messages(gathered.question, gathered.units, gathered.matches, self.likeness)
        # With filters neighbours are left out: only the turns in the pool were filtered.
        if self.allowed is None:
            return scored
        return (message for message in scored if message.number in gathered.turns)

    def gather(self, query: str) -> GatheredUnits | None:
        """The question with the units to rank for it; None where there is nothing to look for."""
        speakers, messages, length = speakers_of(self.db, self.base)
        question = read_question(query, self.reader, speakers=sorted(filter(None, speakers.values())), today=self.today)
        question = replace(question, message_days=(*question.message_days, *self._latest_days(query)))
        terms = question.terms()
        if not messages or not (terms or question.named_speakers or self.likeness):
            return None
        hits = self._hits(terms)
        counts = np.bincount(hits.places, minlength=len(terms)).tolist()
        rarity = {term: idf(messages, count) for term, count in zip(terms, counts, strict=True) if count}
        weights = [rarity.get(term, 0.0) * _pool_weight(question, term) for term in terms]
        pool = hits.best(weights, length / messages or 1.0, self.allowed).tolist()
        named = [number for number, speaker in speakers.items() if speaker in question.named_speakers]
        if named and len(pool) < POOL_SIZE:
            pool += islice(self._documents_of(named), POOL_SIZE - len(pool))
        pool += islice(self._similar_documents(), MAX_SIMILAR_MESSAGES)
        turns = np.unique(np.array(pool, dtype=np.int64) >> PLACE_BITS)
        units = self._units(turns, speakers)
        return GatheredUnits(question, units, hits.matches(terms, rarity, units), frozenset(turns.tolist()))

    def texts(self, scored: Sequence[ScoredMessage]) -> tuple[FoundMessage, ...]:
        """The texts of the messages, in the same order."""
        texts = texts_of(self.db, self.base, [message.doc for message in scored])
        return tuple(_found_message(message, *texts[message.doc]) for message in scored)

    def _latest_days(self, query: str) -> list[str]:
        """The date term of each day that the query names without a year: the latest one, up to today, on which the user has turns."""
        if self.today is None:
            return []
        until = f"{self.today + timedelta(1)}"
        found = (latest_day(self.db, self.base, day, end=self.end, until=until) for day in yearless_days(query))
        return [f"@{day}" for day in found if day]

    def _hits(self, terms: Sequence[str]) -> _Hits:
        """The postings of the terms in the user's documents."""
        found = [postings_of(self.db, self.base, term) for term in terms]
        places = np.repeat(np.arange(len(found), dtype=np.int64), [len(docs) for docs, _ in found])
        docs = np.concatenate([docs for docs, _ in found] or [np.zeros(0, dtype=np.int64)])
        postings = np.concatenate([rows for _, rows in found] or [np.zeros(0, dtype=POSTING)])
        inside = slice(None) if self.end >= 1 << USER_BITS else docs < self.end
        return _Hits(places[inside], docs[inside], postings["count"][inside], postings["length"][inside])

    def _is_allowed(self, docs: IntArray) -> BoolArray:
        """Which documents count."""
        inside = docs < self.end
        return inside if self.allowed is None else inside & np.isin(docs >> PLACE_BITS, self.allowed)

    def _documents_of(self, speakers: Sequence[int]) -> Iterator[int]:
        """The documents of these speakers, the newest first."""
        for docs, columns in newest_columns(self.db, self.base):
            yield from docs[np.isin(columns["speaker"], speakers) & self._is_allowed(docs)].tolist()

    def _similar_documents(self) -> Iterator[int]:
        """The documents whose vectors are similar to the question's, the most similar first, the newest of equals."""
        docs = np.array(sorted(self.likeness, key=lambda doc: (-self.likeness[doc], -doc)), dtype=np.int64)
        return iter(docs[self._is_allowed(docs)].tolist())

    def _units(self, turns: IntArray, speakers: Mapping[int, str]) -> MessageUnits:
        """The documents of these turns and of those around them."""
        nearby = np.unique(turns[:, np.newaxis] + np.arange(-_NEIGHBOUR_TURNS, _NEIGHBOUR_TURNS + 1))
        docs, found = columns_of_turns(self.db, self.base, nearby[nearby >= 0])
        inside = docs < self.end
        docs, found = docs[inside], found[inside]
        numbers = np.array([*speakers, 0], dtype=np.int64)
        order = np.argsort(numbers)
        names = np.array([*speakers.values(), ""], dtype=np.object_)[order][np.searchsorted(numbers[order], found["speaker"])]
        lengths, manners = found["length"].astype(np.int64), found["manner"]
        return MessageUnits(docs, found["session"], names, lengths, manners & ASKS > 0, manners & OWN_WORDS > 0)


def _pool_weight(question: SearchQuestion, term: str) -> float:
    """The weight of a term among those that choose the pool."""
    is_date = term in question.dates or term in question.message_days
    return question.words.get(term) or WEIGHTS["date" if is_date else "prefix"]


def best_messages(scored: Iterable[ScoredMessage], limit: int) -> tuple[ScoredMessage, ...]:
    """The first `limit` messages among the scored documents, without the turns themselves."""
    return tuple(islice((message for message in scored if not message.is_turn), limit))


def _found_message(scored: ScoredMessage, message: str, role: str, speaker: str, created_at: str, text: str) -> FoundMessage:
    return FoundMessage(f"turn_{scored.number:06d}", created_at, message, speaker or role, text, scored.score, scored.doc)
