"""One search in the index: which messages match, their neighbours and their texts; `retrieval.messages` orders them.

Every statement is limited to one user's documents, and keys of postings are made of the user's number. Outside the SQL a document
is counted from the user's first, so that nothing of another user shows.
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
    KEY,
    OWN_WORDS,
    STATES_DATE,
    TIERS,
    end_of,
)

POOL = 200
"""Documents that are scored with their neighbours; more do not change the first ten results."""
ALIKE = 100
"""Messages taken besides because their vectors are most like the question's."""
_AROUND = 4
"""Turns on each side of a match that are looked at."""
_HITS = f"""
    CREATE OR REPLACE TEMP TABLE hits AS
    WITH asked AS MATERIALIZED (SELECT {KEY.format(base="?::BIGINT", term="unnest(?::VARCHAR[])")} AS key, unnest(range(?)) AS place)
    SELECT p.doc, a.place::USMALLINT AS place, p.tf, p.length FROM {ALL_POSTINGS} p JOIN asked a USING (key)
    WHERE p.key >= ? AND p.key < ? AND p.doc < ?
"""  # noqa: S608 - constants
_PASSING = f"""
    SELECT doc FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND (? IS NULL OR session_id = ?) AND (? IS NULL OR created_at >= ?)
    AND (? IS NULL OR created_at < ?) AND (? IS NULL OR intent = ?) AND (? IS NULL OR list_contains(topics, ?)) AND (? IS NULL OR state = ?)
"""  # noqa: S608
_LATEST = f"""
    SELECT max(created_at[:?]) FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND created_at < ? AND substr(created_at, 6, ?) = ?
"""  # noqa: S608
_POOL = f"""
    SELECT doc FROM hits JOIN (SELECT unnest(range(?)) AS place, unnest(?::DOUBLE[]) AS weight) USING (place)
    WHERE {{passing}} GROUP BY doc
    ORDER BY sum(weight * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * length / ?))) DESC, doc DESC LIMIT ?
"""  # noqa: S608
_OF_SPEAKERS = f"""
    SELECT doc FROM {ALL_MESSAGES}
    WHERE speaker IN (SELECT unnest(?::VARCHAR[])) AND doc >= ? AND doc < ? AND {{passing}} ORDER BY doc DESC LIMIT ?
"""  # noqa: S608
_ALIKE = f"""
    SELECT doc FROM {ALL_MESSAGES} JOIN (SELECT unnest(?::BIGINT[]) AS doc, unnest(?::DOUBLE[]) AS likeness) USING (doc)
    WHERE doc >= ? AND doc < ? AND {{passing}} ORDER BY likeness DESC, doc DESC LIMIT ?
"""  # noqa: S608
_TURN_OF = f"(doc >> {PLACE_BITS} << {PLACE_BITS})"
_NEAR = "(SELECT unnest(?::BIGINT[]))"
_UNITS = f"""
    SELECT doc, session_id, speaker, length, manner FROM {ALL_MESSAGES} WHERE {_TURN_OF} IN {_NEAR} AND doc >= ? AND doc < ?
"""  # noqa: S608
_SPEAKERS = "SELECT speaker, sum(messages), sum(length) FROM speakers WHERE no = ? GROUP BY speaker HAVING sum(messages) > 0 ORDER BY 1"
_MATCHES = f"SELECT place, doc, tf FROM hits WHERE {_TURN_OF} IN {_NEAR}"  # noqa: S608
_TEXTS = """
    SELECT doc, message_id, role, speaker, created_at, text FROM {table}
    WHERE rowid IN (SELECT rowid FROM {table} WHERE doc IN (SELECT unnest(?::BIGINT[])))
"""


@dataclass(frozen=True, slots=True)
class GatheredUnits:
    """A question with the units that it is matched against; `turns` numbers those that match themselves."""

    question: SearchQuestion
    units: Sequence[MessageUnit] = ()
    matches: TermMatches = field(default_factory=lambda: TermMatches({}, {}))
    turns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """A search over one open connection, for the user whose documents are counted from `base`, up to and without `end`."""

    db: duckdb.DuckDBPyConnection
    base: int
    end: int
    reader: TermReader
    filters: SearchFilters = field(default_factory=SearchFilters)
    likeness: Mapping[int, float] = field(default_factory=dict[int, float])
    """The user's own document -> cosine of its vector with the query's; empty where there are no vectors."""
    today: date | None = None
    """The day on which the question is asked; None: `yesterday` and the like stay words."""

    def ranked(self, query: str) -> tuple[ScoredMessage, ...]:
        """Messages and turns that share something with the query or are beside one that does, best first."""
        found = self.gathered(query)
        scored = rank_messages(found.question, found.units, found.matches, self.likeness)
        # Where a filter narrows the search, what is beside a match must pass it too: only the matched turns did.
        return scored if self.filters == SearchFilters() else tuple(s for s in scored if s.unit.number in found.turns)

    def gathered(self, query: str) -> GatheredUnits:
        """What a ranking of the query needs to know."""
        speakers, messages, length = speakers_of(self.db, self.base)
        question = read_question(query, self.reader, speakers=speakers, today=self.today)
        question = replace(question, said_on=(*question.said_on, *self._latest(query)))
        terms = question.terms()
        if not messages or not (terms or question.named or self.likeness):
            return GatheredUnits(question)
        self.db.execute(_HITS, [self.base, list(terms), len(terms), self.base, end_of(self.base), self.end])
        rarity = self._rarity(terms, messages)
        pool = self._pool(question, terms, rarity, length / messages or 1.0)
        near = sorted({(turn_number(doc) + away) << PLACE_BITS for doc in pool for away in range(-_AROUND, _AROUND + 1)})
        return GatheredUnits(question, self._units(near), self._matches(terms, rarity, near), frozenset(map(turn_number, pool)))

    def texts(self, scored: Sequence[ScoredMessage]) -> tuple[FoundMessage, ...]:
        """The texts of the messages, in the same order."""
        docs = [self.base + s.unit.doc for s in scored]
        texts: dict[int, tuple[str, str, str, str, str]] = {}
        for table in (f"messages{tier}" for tier in TIERS):  # by row: a text is read only where it is
            rows = self.db.execute(_TEXTS.format(table=table), [docs]).fetchall()
            texts |= {row[0] - self.base: row[1:] for row in rows}
        return tuple(_found_message(s, *texts[s.unit.doc]) for s in scored)

    def _latest(self, query: str) -> list[str]:
        """The date terms of the latest days on which the user has turns, not after today, that the query names without a year."""
        if self.today is None:
            return []
        named = [
            self.db.execute(_LATEST, [5 + len(day), self.base, self.end, f"{self.today + timedelta(1)}", len(day), day]).fetchone()
            for day in yearless_days(query)
        ]
        return [f"@{found[0]}" for found in named if found and found[0]]

    def _rarity(self, terms: tuple[str, ...], messages: int) -> dict[str, float]:
        counts = dict(self.db.execute("SELECT place, count(*) FROM hits GROUP BY place").fetchall())
        return {term: idf(messages, counts[place]) for place, term in enumerate(terms) if place in counts}

    def _pool(self, question: SearchQuestion, terms: tuple[str, ...], rarity: dict[str, float], mean: float) -> list[int]:
        """The best documents by their own words; where those are few, the newest of the persons whom the question names besides.
        With them those whose vectors are most like the question's."""
        dates = {*question.dates, *question.said_on}
        weights = [rarity.get(t, 0.0) * (question.words.get(t) or WEIGHTS["date" if t in dates else "prefix"]) for t in terms]
        passing, given = self._passing()
        rows = self.db.execute(_POOL.format(passing=passing), [len(terms), weights, *given, mean, POOL]).fetchall()
        if question.named and len(rows) < POOL:
            of_speakers = [list(question.named), self.base, self.end, *given, POOL - len(rows)]
            rows += self.db.execute(_OF_SPEAKERS.format(passing=passing), of_speakers).fetchall()
        if self.likeness:
            docs = [self.base + doc for doc in self.likeness]
            alike = [docs, list(self.likeness.values()), self.base, self.end, *given, ALIKE]
            rows += self.db.execute(_ALIKE.format(passing=passing), alike).fetchall()
        return [row[0] - self.base for row in rows]

    def _passing(self) -> tuple[str, list[Any]]:
        """SQL that lets a document of a fitting turn pass, and its parameters."""
        if self.filters == SearchFilters():
            return "true", []
        given = self.filters
        state = None if given.state is None else str(given.state)
        narrowed = (given.session, given.since, given.until, given.intent, given.topic, state)
        return f"{_TURN_OF} IN ({_PASSING})", [self.base, self.end, *(value for value in narrowed for _ in range(2))]

    def _units(self, near: Sequence[int]) -> list[MessageUnit]:
        rows = self.db.execute(_UNITS, [[self.base + doc for doc in near], self.base, self.end]).fetchall()
        return [
            MessageUnit(
                doc - self.base, session, speaker, length, bool(manner & ASKS), bool(manner & OWN_WORDS), bool(manner & STATES_DATE)
            )
            for doc, session, speaker, length, manner in rows
        ]

    def _matches(self, terms: tuple[str, ...], rarity: dict[str, float], near: Sequence[int]) -> TermMatches:
        places: dict[str, dict[int, int]] = defaultdict(dict)
        for place, doc, count in self.db.execute(_MATCHES, [[self.base + doc for doc in near]]).fetchall():
            places[terms[place]][doc - self.base] = count
        return TermMatches(places, rarity)


def speakers_of(db: duckdb.DuckDBPyConnection, base: int) -> tuple[list[str], int, int]:
    """Who speaks in the messages of the user whose documents are counted from `base`, how many these are, and their terms."""
    rows = db.execute(_SPEAKERS, [base >> (NUMBER_BITS + PLACE_BITS)]).fetchall()
    return [row[0] for row in rows if row[0]], sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)


def messages_only(scored: Sequence[ScoredMessage]) -> tuple[ScoredMessage, ...]:
    """Without the turns themselves, which say nothing of their own."""
    return tuple(s for s in scored if not is_turn(s.unit.doc))


def _found_message(scored: ScoredMessage, message: str, role: str, speaker: str, created_at: str, text: str) -> FoundMessage:
    return FoundMessage(f"turn_{scored.unit.number:06d}", created_at, message, speaker or role, text, scored.score, scored.unit.doc)
