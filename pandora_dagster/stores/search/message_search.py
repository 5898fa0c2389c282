"""One search in the turn index: which messages match, their neighbours and their texts; `retrieval.messages` ranks them.

Steps: the postings of the question's terms are read; the best documents by BM25 become the pool; the pool and the turns around it are
ranked; the texts of the best are read. Every statement is limited to one user's documents. Outside the SQL a document is counted from the
user's first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import islice
from typing import Any, cast

import duckdb
import numpy as np
import numpy.typing as npt

from pandora_dagster.contracts.turns import FoundMessage, SearchFilters
from pandora_dagster.language.bm25 import idf
from pandora_dagster.language.relative_days import yearless_days
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, turn_number
from pandora_dagster.retrieval.messages.message_ranking import (
    K1,
    SCORE_DIGITS,
    WEIGHTS,
    B,
    IntArray,
    MessageUnits,
    ScoredMessage,
    TermMatches,
    rank_messages,
)
from pandora_dagster.retrieval.messages.search_question import SearchQuestion, read_question
from pandora_dagster.stores.search.turn_tables import (
    ALL_MESSAGES,
    ALL_POSTINGS,
    ALL_TURNS,
    ASKS,
    OWN_WORDS,
    POSTING_KEY_SQL,
    user_end,
)

POOL_SIZE = 200
"""Documents that are ranked with their neighbours; more do not change the first ten results."""
MAX_SIMILAR_MESSAGES = 100
"""Messages added to the pool because their vectors are most similar to the question's."""
_NEIGHBOUR_TURNS = 4
"""Turns on each side of a match that are ranked with it."""
_SELECT_HITS = f"""
    WITH asked AS MATERIALIZED (
        SELECT {POSTING_KEY_SQL.format(base="?::BIGINT", term="unnest(?::VARCHAR[])")} AS key, unnest(range(?)) AS place)
    SELECT a.place, p.doc, p.tf, p.length FROM {ALL_POSTINGS} p JOIN asked a USING (key) WHERE p.key >= ? AND p.key < ? AND p.doc < ?
"""  # noqa: S608 - constants
_SELECT_FILTERED_TURNS = f"""
    SELECT doc FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND (? IS NULL OR session_id = ?) AND (? IS NULL OR created_at >= ?)
    AND (? IS NULL OR created_at < ?) AND (? IS NULL OR intent = ?) AND (? IS NULL OR list_contains(topics, ?)) AND (? IS NULL OR state = ?)
"""  # noqa: S608
_SELECT_LATEST_DAY = f"""
    SELECT max(created_at[:?]) FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND created_at < ? AND substr(created_at, 6, ?) = ?
"""  # noqa: S608
_SELECT_OF_SPEAKERS = f"""
    SELECT doc FROM {ALL_MESSAGES}
    WHERE speaker IN (SELECT unnest(?::VARCHAR[])) AND doc >= ? AND doc < ? AND {{condition}} ORDER BY doc DESC LIMIT ?
"""  # noqa: S608
_SELECT_SIMILAR = f"""
    SELECT doc FROM {ALL_MESSAGES} JOIN (SELECT unnest(?::BIGINT[]) AS doc, unnest(?::DOUBLE[]) AS likeness) USING (doc)
    WHERE doc >= ? AND doc < ? AND {{condition}} ORDER BY likeness DESC, doc DESC LIMIT ?
"""  # noqa: S608
_TURN_DOC = f"(doc >> {PLACE_BITS} << {PLACE_BITS})"
_GIVEN_TURNS = "(SELECT unnest(?::BIGINT[]))"
_SELECT_UNITS = f"""
    SELECT doc, session_id, speaker, length, manner FROM {ALL_MESSAGES} WHERE {_TURN_DOC} IN {_GIVEN_TURNS} AND doc >= ? AND doc < ?
"""  # noqa: S608
_SELECT_SPEAKERS = (
    "SELECT speaker, sum(messages), sum(length) FROM speakers WHERE no = ? GROUP BY speaker HAVING sum(messages) > 0 ORDER BY 1"
)
_SELECT_TEXTS = f"""
    SELECT doc, message_id, role, speaker, created_at, text FROM {ALL_MESSAGES} WHERE doc IN (SELECT unnest(?::BIGINT[]))
"""  # noqa: S608


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
        docs, which = np.unique(self.docs[found], return_inverse=True)
        sums = np.round(np.bincount(which, scores[found], len(docs)), SCORE_DIGITS)
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
    """A search over one open connection, among the documents from `base` up to and without `end`, which are one user's."""

    db: duckdb.DuckDBPyConnection
    base: int
    end: int
    reader: TermReader
    filters: SearchFilters = field(default_factory=SearchFilters)
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
        if self.filters == SearchFilters():
            return scored
        return (message for message in scored if message.number in gathered.turns)

    def gather(self, query: str) -> GatheredUnits | None:
        """The question with the units to rank for it; None where there is nothing to look for."""
        speakers, messages, length = speakers_of(self.db, self.base)
        question = read_question(query, self.reader, speakers=speakers, today=self.today)
        question = replace(question, message_days=(*question.message_days, *self._latest_days(query)))
        terms = question.terms()
        if not messages or not (terms or question.named_speakers or self.likeness):
            return None
        hits = self._hits(terms)
        counts = np.bincount(hits.places, minlength=len(terms)).tolist()
        rarity = {term: idf(messages, count) for term, count in zip(terms, counts, strict=True) if count}
        weights = [rarity.get(term, 0.0) * _pool_weight(question, term) for term in terms]
        pool = self._pool(question, hits, weights, length / messages or 1.0)
        numbers = {turn_number(doc) for doc in pool}
        nearby = sorted({number + offset for number in numbers for offset in range(-_NEIGHBOUR_TURNS, _NEIGHBOUR_TURNS + 1)})
        units = self._units([number << PLACE_BITS for number in nearby])
        return GatheredUnits(question, units, hits.matches(terms, rarity, units), frozenset(numbers))

    def texts(self, scored: Sequence[ScoredMessage]) -> tuple[FoundMessage, ...]:
        """The texts of the messages, in the same order."""
        docs = [self.base + message.doc for message in scored]
        texts = {row[0] - self.base: row[1:] for row in self.db.execute(_SELECT_TEXTS, [docs]).fetchall()}
        return tuple(_found_message(message, *texts[message.doc]) for message in scored)

    def _latest_days(self, query: str) -> list[str]:
        """The date term of each day that the query names without a year: the latest one, up to today, on which the user has turns."""
        if self.today is None:
            return []
        rows = [
            self.db.execute(
                _SELECT_LATEST_DAY, [5 + len(day), self.base, self.end, f"{self.today + timedelta(1)}", len(day), day]
            ).fetchone()
            for day in yearless_days(query)
        ]
        return [f"@{row[0]}" for row in rows if row and row[0]]

    def _hits(self, terms: Sequence[str]) -> _Hits:
        """The postings of the terms in the user's documents."""
        parameters = [self.base, list(terms), len(terms), self.base, user_end(self.base), self.end]
        rows = self._columns(_SELECT_HITS, parameters)
        places, docs, counts, lengths = (rows[name].astype(np.int64) for name in ("place", "doc", "tf", "length"))
        return _Hits(places, docs - self.base, counts, lengths)

    def _pool(self, question: SearchQuestion, hits: _Hits, weights: Sequence[float], mean_length: float) -> list[int]:
        """The best documents by BM25, then, where those are few, the newest messages of the persons whom the question names; with vectors
        also the messages that are most similar to the question. `mean_length`: terms of a message on average."""
        condition, values = self._filter_condition()
        allowed = None
        if values:
            allowed = (self._columns(_SELECT_FILTERED_TURNS, values)["doc"] - self.base) >> PLACE_BITS
        docs = hits.best(weights, mean_length, allowed).tolist()
        rows: list[tuple[int]] = []
        if question.named_speakers and len(docs) < POOL_SIZE:
            parameters = [list(question.named_speakers), self.base, self.end, *values, POOL_SIZE - len(docs)]
            rows += self.db.execute(_SELECT_OF_SPEAKERS.format(condition=condition), parameters).fetchall()
        if self.likeness:
            similar = [self.base + doc for doc in self.likeness]
            parameters = [similar, list(self.likeness.values()), self.base, self.end, *values, MAX_SIMILAR_MESSAGES]
            rows += self.db.execute(_SELECT_SIMILAR.format(condition=condition), parameters).fetchall()
        return docs + [doc - self.base for (doc,) in rows]

    def _filter_condition(self) -> tuple[str, list[Any]]:
        """SQL that holds for the documents of turns that pass the filters, and its parameters."""
        if self.filters == SearchFilters():
            return "true", []
        filters = self.filters
        state = None if filters.state is None else str(filters.state)
        filter_values = (filters.session, filters.since, filters.until, filters.intent, filters.topic, state)
        return f"{_TURN_DOC} IN ({_SELECT_FILTERED_TURNS})", [self.base, self.end, *(value for value in filter_values for _ in range(2))]

    def _units(self, turns: Sequence[int]) -> MessageUnits:
        """The messages of these turns, which are numbered as documents."""
        rows = self._columns(_SELECT_UNITS, [[self.base + doc for doc in turns], self.base, self.end])
        order = np.argsort(rows["doc"])
        docs, sessions, speakers, lengths, manners = (rows[name][order] for name in ("doc", "session_id", "speaker", "length", "manner"))
        return MessageUnits(docs - self.base, sessions, speakers, lengths.astype(np.int64), manners & ASKS > 0, manners & OWN_WORDS > 0)

    def _columns(self, statement: str, parameters: Sequence[object]) -> dict[str, npt.NDArray[Any]]:
        """The columns of a result as arrays."""
        columns = self.db.execute(statement, parameters).fetchnumpy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return cast("dict[str, npt.NDArray[Any]]", columns)


def _pool_weight(question: SearchQuestion, term: str) -> float:
    """The weight of a term among those that choose the pool."""
    is_date = term in question.dates or term in question.message_days
    return question.words.get(term) or WEIGHTS["date" if is_date else "prefix"]


def speakers_of(db: duckdb.DuckDBPyConnection, base: int) -> tuple[list[str], int, int]:
    """The speakers in a user's messages, the number of messages, and the sum of their lengths."""
    rows = db.execute(_SELECT_SPEAKERS, [base >> (NUMBER_BITS + PLACE_BITS)]).fetchall()
    return [row[0] for row in rows if row[0]], sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)


def best_messages(scored: Iterable[ScoredMessage], limit: int) -> tuple[ScoredMessage, ...]:
    """The first `limit` messages among the scored documents, without the turns themselves."""
    return tuple(islice((message for message in scored if not message.is_turn), limit))


def _found_message(scored: ScoredMessage, message: str, role: str, speaker: str, created_at: str, text: str) -> FoundMessage:
    return FoundMessage(f"turn_{scored.number:06d}", created_at, message, speaker or role, text, scored.score, scored.doc)
