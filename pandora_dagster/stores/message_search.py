"""One search in the index: what matches, what stands around it, what it says. Knows SQL; the order is `selection`'s.

Every statement is held to one user in its WHERE clause.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import duckdb

from pandora_dagster.contracts.turns import FoundMessage, SearchFilters
from pandora_dagster.selection.message_ranking import (
    DATE_WEIGHT,
    K1,
    PLACE_BITS,
    PREFIX_WEIGHT,
    B,
    Matches,
    Scored,
    Unit,
    idf,
    ranked_messages,
)
from pandora_dagster.selection.question import Question, asked
from pandora_dagster.stores.turn_tables import ALL_MESSAGES, ALL_POSTINGS, ALL_TURNS
from pandora_dagster.text.words import TermReader

POOL = 150
"""Documents that are scored with what stands around them; more change no first ten."""
_AROUND = 4
"""Turns on each side of a match that are looked at."""
_HITS = f"""
    CREATE OR REPLACE TEMP TABLE hits AS
    WITH asked AS MATERIALIZED (SELECT md5_number_lower(unnest(?::VARCHAR[])) AS term, unnest(range(?)) AS place)
    SELECT p.doc, a.place, p.tf, p.length FROM {ALL_POSTINGS} p JOIN asked a USING (term) WHERE p.user_id = ? AND p.doc < ?
"""  # noqa: S608 - constants
_POOL = f"""
    SELECT doc FROM hits JOIN (SELECT unnest(range(?)) AS place, unnest(?::DOUBLE[]) AS weight) USING (place)
    WHERE ? OR doc >> {PLACE_BITS} IN (SELECT number FROM {ALL_TURNS} WHERE user_id = ?
        AND (? IS NULL OR session_id = ?) AND (? IS NULL OR created_at >= ?) AND (? IS NULL OR created_at < ?)
        AND (? IS NULL OR intent = ?) AND (? IS NULL OR list_contains(topics, ?)) AND (? IS NULL OR state = ?))
    GROUP BY doc
    ORDER BY sum(weight * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * length / ?))) DESC, doc DESC LIMIT ?
"""  # noqa: S608 - constants
_NEAR = "(SELECT unnest(?::BIGINT[]))"
_UNITS = f"SELECT doc, session_id, speaker, length, asks, own_words FROM {ALL_MESSAGES} WHERE user_id = ? AND number IN {_NEAR} AND doc < ?"  # noqa: S608
_MATCHES = f"SELECT place, doc, tf FROM hits WHERE doc >> {PLACE_BITS} IN {_NEAR}"  # noqa: S608
_TEXTS = f"SELECT doc, session_id, message_id, role, speaker, created_at, text FROM {ALL_MESSAGES} WHERE user_id = ? AND doc IN {_NEAR}"  # noqa: S608


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """A search over one open connection, for one user."""

    db: duckdb.DuckDBPyConnection
    user: str
    reader: TermReader
    last: int
    """Documents from this number on stay out."""
    filters: SearchFilters = field(default_factory=SearchFilters)

    def ranked(self, query: str) -> tuple[Scored, ...]:
        """Messages and turns that share something with the query or stand beside one that does, best first."""
        speakers, messages, length = self._totals()
        question = asked(query, self.reader, speakers=speakers)
        terms = question.terms()
        if not terms or not messages:
            return ()
        self.db.execute(_HITS, [list(terms), len(terms), self.user, self.last])
        rarity = self._rarity(terms, messages)
        pool = self._pool(question, terms, rarity, length / messages or 1.0)
        near = sorted({(doc >> PLACE_BITS) + away for doc in pool for away in range(-_AROUND, _AROUND + 1)})
        found = self.db.execute(_UNITS, [self.user, near, self.last]).fetchall()
        scored = ranked_messages(question, [Unit(*values) for values in found], self._matches(terms, rarity, near))
        return self._within(scored, {doc >> PLACE_BITS for doc in pool})

    def texts(self, scored: tuple[Scored, ...]) -> tuple[FoundMessage, ...]:
        """What the messages say, in the same order."""
        rows = self.db.execute(_TEXTS, [self.user, [s.unit.doc for s in scored]]).fetchall()
        told = {row[0]: row[1:] for row in rows}
        return tuple(_found(s, *told[s.unit.doc]) for s in scored)

    def _totals(self) -> tuple[list[str], int, int]:
        rows = self.db.execute(
            "SELECT speaker, sum(messages), sum(length) FROM speakers WHERE user_id = ? "
            "GROUP BY speaker HAVING sum(messages) > 0 ORDER BY 1",
            [self.user],
        ).fetchall()
        return [row[0] for row in rows if row[0]], sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)

    def _rarity(self, terms: tuple[str, ...], messages: int) -> dict[str, float]:
        counts = dict(self.db.execute("SELECT place, count(*) FROM hits GROUP BY place").fetchall())
        return {term: idf(messages, counts[place]) for place, term in enumerate(terms) if place in counts}

    def _pool(self, question: Question, terms: tuple[str, ...], rarity: dict[str, float], mean: float) -> list[int]:
        dates, given = set(question.dates), self.filters
        weights = [rarity.get(t, 0.0) * (question.words.get(t) or (DATE_WEIGHT if t in dates else PREFIX_WEIGHT)) for t in terms]
        state = None if given.state is None else str(given.state)
        narrowed = (given.session, given.since, given.until, given.intent, given.topic, state)
        twice = [value for value in narrowed for _ in range(2)]
        free = all(value is None for value in narrowed)
        rows = self.db.execute(_POOL, [len(terms), weights, free, self.user, *twice, mean, POOL]).fetchall()
        return [row[0] for row in rows]

    def _matches(self, terms: tuple[str, ...], rarity: dict[str, float], near: list[int]) -> Matches:
        places: dict[str, dict[int, int]] = defaultdict(dict)
        for place, doc, count in self.db.execute(_MATCHES, [near]).fetchall():
            places[terms[place]][doc] = count
        return Matches(places, rarity)

    def _within(self, scored: tuple[Scored, ...], matched: set[int]) -> tuple[Scored, ...]:
        """Where a filter narrows the search, what stands beside a match must pass it too: only the matched turns did."""
        return scored if self.filters == SearchFilters() else tuple(s for s in scored if s.unit.number in matched)


def _found(scored: Scored, session: str, message: str, role: str, speaker: str, created_at: str, text: str) -> FoundMessage:
    number = scored.unit.number
    return FoundMessage(f"turn_{number:06d}", session, created_at, message, speaker or role, text, scored.score, scored.unit.doc)
