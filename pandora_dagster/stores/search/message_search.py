"""One search in the turn index: which messages match, their neighbours and their texts; `retrieval.messages` ranks them.

Steps: the postings of the question's terms become a temporary table of hits; the best documents by BM25 become the pool; the pool and the
turns around it are ranked; the texts of the best are read. Every statement is limited to one user's documents. Outside the SQL a document
is counted from the user's first.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import duckdb

from pandora_dagster.contracts.turns import FoundMessage, SearchFilters
from pandora_dagster.language.bm25 import idf
from pandora_dagster.language.relative_days import yearless_days
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, is_turn, turn_number
from pandora_dagster.retrieval.messages.message_ranking import (
    K1,
    WEIGHTS,
    B,
    MessageUnit,
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
    TIERS,
    user_end,
)

POOL_SIZE = 200
"""Documents that are ranked with their neighbours; more do not change the first ten results."""
MAX_SIMILAR_MESSAGES = 100
"""Messages added to the pool because their vectors are most similar to the question's."""
_NEIGHBOUR_TURNS = 4
"""Turns on each side of a match that are ranked with it."""
_CREATE_HITS = f"""
    CREATE OR REPLACE TEMP TABLE hits AS
    WITH asked AS MATERIALIZED (
        SELECT {POSTING_KEY_SQL.format(base="?::BIGINT", term="unnest(?::VARCHAR[])")} AS key, unnest(range(?)) AS place)
    SELECT p.doc, a.place::USMALLINT AS place, p.tf, p.length FROM {ALL_POSTINGS} p JOIN asked a USING (key)
    WHERE p.key >= ? AND p.key < ? AND p.doc < ?
"""  # noqa: S608 - constants
_SELECT_FILTERED_TURNS = f"""
    SELECT doc FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND (? IS NULL OR session_id = ?) AND (? IS NULL OR created_at >= ?)
    AND (? IS NULL OR created_at < ?) AND (? IS NULL OR intent = ?) AND (? IS NULL OR list_contains(topics, ?)) AND (? IS NULL OR state = ?)
"""  # noqa: S608
_SELECT_LATEST_DAY = f"""
    SELECT max(created_at[:?]) FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND created_at < ? AND substr(created_at, 6, ?) = ?
"""  # noqa: S608
_SELECT_POOL = f"""
    SELECT doc FROM hits JOIN (SELECT unnest(range(?)) AS place, unnest(?::DOUBLE[]) AS weight) USING (place)
    WHERE {{condition}} GROUP BY doc
    ORDER BY sum(weight * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * length / ?))) DESC, doc DESC LIMIT ?
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
_SELECT_MATCHES = f"SELECT place, doc, tf FROM hits WHERE {_TURN_DOC} IN {_GIVEN_TURNS}"  # noqa: S608
_SELECT_TEXTS = """
    SELECT doc, message_id, role, speaker, created_at, text FROM {table}
    WHERE rowid IN (SELECT rowid FROM {table} WHERE doc IN (SELECT unnest(?::BIGINT[])))
"""


@dataclass(frozen=True, slots=True)
class GatheredUnits:
    """A question with the units to rank for it; `turns`: numbers of the turns in the pool, without their neighbours."""

    question: SearchQuestion
    units: Sequence[MessageUnit] = ()
    matches: TermMatches = field(default_factory=lambda: TermMatches({}, {}))
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

    def rank(self, query: str) -> tuple[ScoredMessage, ...]:
        """Messages and turns that share something with the query or are beside one that does, best first."""
        gathered = self.gather(query)
        scored = rank_messages(gathered.question, gathered.units, gathered.matches, self.likeness)
        # With filters neighbours are left out: only the turns in the pool were filtered.
        if self.filters == SearchFilters():
            return scored
        return tuple(message for message in scored if message.unit.number in gathered.turns)

    def gather(self, query: str) -> GatheredUnits:
        """The question with the units to rank for it."""
        speakers, messages, length = speakers_of(self.db, self.base)
        question = read_question(query, self.reader, speakers=speakers, today=self.today)
        question = replace(question, message_days=(*question.message_days, *self._latest_days(query)))
        terms = question.terms()
        if not messages or not (terms or question.named_speakers or self.likeness):
            return GatheredUnits(question)
        self.db.execute(_CREATE_HITS, [self.base, list(terms), len(terms), self.base, user_end(self.base), self.end])
        rarity = self._rarity(terms, messages)
        pool = self._pool(question, terms, rarity, length / messages or 1.0)
        offsets = range(-_NEIGHBOUR_TURNS, _NEIGHBOUR_TURNS + 1)
        nearby_turns = sorted({(turn_number(doc) + offset) << PLACE_BITS for doc in pool for offset in offsets})
        matches = self._matches(terms, rarity, nearby_turns)
        return GatheredUnits(question, self._units(nearby_turns), matches, frozenset(map(turn_number, pool)))

    def texts(self, scored: Sequence[ScoredMessage]) -> tuple[FoundMessage, ...]:
        """The texts of the messages, in the same order."""
        docs = [self.base + message.unit.doc for message in scored]
        texts: dict[int, tuple[str, str, str, str, str]] = {}
        for table in (f"messages{tier}" for tier in TIERS):  # by row id, so that only the texts of these rows are read
            rows = self.db.execute(_SELECT_TEXTS.format(table=table), [docs]).fetchall()
            texts |= {row[0] - self.base: row[1:] for row in rows}
        return tuple(_found_message(message, *texts[message.unit.doc]) for message in scored)

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

    def _rarity(self, terms: tuple[str, ...], messages: int) -> dict[str, float]:
        """The inverse document frequency of each term that has a hit."""
        counts = dict(self.db.execute("SELECT place, count(*) FROM hits GROUP BY place").fetchall())
        return {term: idf(messages, counts[place]) for place, term in enumerate(terms) if place in counts}

    def _pool(self, question: SearchQuestion, terms: tuple[str, ...], rarity: dict[str, float], mean_length: float) -> list[int]:
        """The best documents by BM25, then, where those are few, the newest messages of the persons whom the question names; with vectors
        also the messages that are most similar to the question. `mean_length`: terms of a message on average."""
        dates = {*question.dates, *question.message_days}
        weights = [rarity.get(term, 0.0) * (question.words.get(term) or WEIGHTS["date" if term in dates else "prefix"]) for term in terms]
        condition, values = self._filter_condition()
        rows = self.db.execute(_SELECT_POOL.format(condition=condition), [len(terms), weights, *values, mean_length, POOL_SIZE]).fetchall()
        if question.named_speakers and len(rows) < POOL_SIZE:
            parameters = [list(question.named_speakers), self.base, self.end, *values, POOL_SIZE - len(rows)]
            rows += self.db.execute(_SELECT_OF_SPEAKERS.format(condition=condition), parameters).fetchall()
        if self.likeness:
            docs = [self.base + doc for doc in self.likeness]
            parameters = [docs, list(self.likeness.values()), self.base, self.end, *values, MAX_SIMILAR_MESSAGES]
            rows += self.db.execute(_SELECT_SIMILAR.format(condition=condition), parameters).fetchall()
        return [row[0] - self.base for row in rows]

    def _filter_condition(self) -> tuple[str, list[Any]]:
        """SQL that holds for the documents of turns that pass the filters, and its parameters."""
        if self.filters == SearchFilters():
            return "true", []
        filters = self.filters
        state = None if filters.state is None else str(filters.state)
        filter_values = (filters.session, filters.since, filters.until, filters.intent, filters.topic, state)
        return f"{_TURN_DOC} IN ({_SELECT_FILTERED_TURNS})", [self.base, self.end, *(value for value in filter_values for _ in range(2))]

    def _units(self, turns: Sequence[int]) -> list[MessageUnit]:
        """The messages of these turns, which are numbered as documents."""
        rows = self.db.execute(_SELECT_UNITS, [[self.base + doc for doc in turns], self.base, self.end]).fetchall()
        return [
            MessageUnit(doc - self.base, session, speaker, length, bool(manner & ASKS), bool(manner & OWN_WORDS))
            for doc, session, speaker, length, manner in rows
        ]

    def _matches(self, terms: tuple[str, ...], rarity: dict[str, float], turns: Sequence[int]) -> TermMatches:
        """The counts of the question's terms in the messages of these turns."""
        counts: dict[str, dict[int, int]] = defaultdict(dict)
        for place, doc, count in self.db.execute(_SELECT_MATCHES, [[self.base + doc for doc in turns]]).fetchall():
            counts[terms[place]][doc - self.base] = count
        return TermMatches(counts, rarity)


def speakers_of(db: duckdb.DuckDBPyConnection, base: int) -> tuple[list[str], int, int]:
    """The speakers in a user's messages, the number of messages, and the sum of their lengths."""
    rows = db.execute(_SELECT_SPEAKERS, [base >> (NUMBER_BITS + PLACE_BITS)]).fetchall()
    return [row[0] for row in rows if row[0]], sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)


def messages_only(scored: Sequence[ScoredMessage]) -> tuple[ScoredMessage, ...]:
    """The messages among the scored documents, without the turns themselves."""
    return tuple(message for message in scored if not is_turn(message.unit.doc))


def _found_message(scored: ScoredMessage, message: str, role: str, speaker: str, created_at: str, text: str) -> FoundMessage:
    return FoundMessage(f"turn_{scored.unit.number:06d}", created_at, message, speaker or role, text, scored.score, scored.unit.doc)
