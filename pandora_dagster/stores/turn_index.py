"""The turn index: rows of turns and the postings of their terms, in one DuckDB file (004 section 3.3).

Knows how rows and postings are stored and asked for; the order of what was found is `selection.ranking`'s. A posting carries
its turn's length, so that scoring needs no join, and adding a turn touches nothing but its own row and postings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from pandora_dagster.contracts.turns import Candidate, TurnRow
from pandora_dagster.selection.ranking import Found, Ranked, ranked
from pandora_dagster.stores.duck import DuckFile, Schema
from pandora_dagster.text.dates import MONTHS, asked_dates, date_terms
from pandora_dagster.text.words import MONEY, TermReader

_COLUMNS = {
    "user_id": "VARCHAR",
    "number": "BIGINT",
    "turn_id": "VARCHAR",
    "session_id": "VARCHAR",
    "state": "VARCHAR",
    "created_at": "VARCHAR",
    "last_activity": "VARCHAR",
    "summary": "VARCHAR",
    "topics": "VARCHAR[]",
    "intent": "VARCHAR",
    "has_research": "BOOLEAN",
    "research_topic": "VARCHAR",
    "tokens": "BIGINT",
    "revision": "BIGINT",
    "recorded": "BOOLEAN",
    "runtime": "VARCHAR",
    "context_sha": "VARCHAR",
    "text": "VARCHAR",
}
_NAMES = ", ".join(_COLUMNS)
SCHEMA = Schema(
    version=1,
    statements=(
        f"CREATE TABLE turns ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())}, length INTEGER)",
        "CREATE TABLE post (user_id VARCHAR, term VARCHAR, number BIGINT, tf INTEGER, length INTEGER)",
    ),
)
_GIVEN = "(SELECT unnest(?::VARCHAR[]) AS user_id, unnest(?::BIGINT[]) AS number)"
_INSERT_TURNS = f"INSERT INTO turns SELECT {', '.join(f'unnest(?::{kind}[])' for kind in _COLUMNS.values())}, unnest(?::INTEGER[])"
_INSERT_POSTINGS = """
    INSERT INTO post
    SELECT user_id, bag[2 * i + 1], number, bag[2 * i + 2]::INTEGER, length FROM (
        SELECT *, unnest(range(len(bag) // 2)) AS i FROM (
            SELECT unnest(?::VARCHAR[]) AS user_id, unnest(?::BIGINT[]) AS number, unnest(?::INTEGER[]) AS length,
                   string_split(unnest(?::VARCHAR[]), ' ') AS bag))
    ORDER BY user_id, bag[2 * i + 1], number
"""
K1, B = 1.2, 0.6
"""BM25's saturation and length weight, the values that did best on real conversations."""
_SCORES = f"""
    WITH asked AS MATERIALIZED (SELECT unnest(?::VARCHAR[]) AS term, unnest(?::DOUBLE[]) AS weight),
    mine AS (SELECT count(*) AS n, greatest(avg(length), 1) AS mean FROM turns WHERE user_id = ?),
    hits AS MATERIALIZED (
        SELECT p.number, p.term, p.tf, p.length, a.weight FROM post p JOIN asked a USING (term) WHERE p.user_id = ? AND p.number < ?),
    rarity AS (SELECT term, ln(1 + ((SELECT n FROM mine) - count(*) + 0.5) / (count(*) + 0.5)) AS idf FROM hits GROUP BY term)
    SELECT number,
        coalesce(sum(weight * idf * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * length / (SELECT mean FROM mine))))
            FILTER (NOT starts_with(term, '@')), 0) AS terms,
        coalesce(sum(weight * idf) FILTER (starts_with(term, '@')), 0) AS dates
    FROM hits JOIN rarity USING (term) GROUP BY number
    ORDER BY terms + dates DESC, number DESC LIMIT ?
"""  # noqa: S608 - constants of this module
_MONEY_WEIGHT = 0.5
_PRICE_WORDS = ("cost", "price", "pay", "paid", "spend", "spent", "amount", "expens", "cheap", "charg", "total", "fee", "refund")
_LAST = 2**62
_POOL = 200
"""Turns that are scored with their neighbours: four times as many changes no first ten."""


@dataclass(frozen=True, slots=True)
class DuckTurnIndex:
    """`TurnIndex` in one DuckDB file. Every method opens, works and closes; raises StoreError."""

    file: DuckFile
    reader: TermReader = field(default_factory=TermReader)

    @classmethod
    def at(cls, path: Path, *, wait_s: float = 30.0) -> "DuckTurnIndex":
        return cls(DuckFile(path, SCHEMA, wait_s))

    def put(self, rows: Sequence[TurnRow]) -> None:
        """Store rows, each in the place of an older one of the same turn; all of them or none."""
        newest = {(row.user_id, row.number): row for row in rows}
        if not newest:
            return
        bags = [self.reader.counts(_indexed(row)) for row in newest.values()]
        dates = [date_terms(row.created_at) for row in newest.values()]
        lengths = [sum(bag.values()) for bag in bags]
        flat = [" ".join([f"{t} {n}" for t, n in bag.items()] + [f"{d} 1" for d in day]) for bag, day in zip(bags, dates, strict=True)]
        users, numbers = [key[0] for key in newest], [key[1] for key in newest]
        with self.file.writing() as db:
            _drop(db, users, numbers)
            db.execute(_INSERT_TURNS, [*([_value(row, name) for row in newest.values()] for name in _COLUMNS), lengths])
            db.execute(_INSERT_POSTINGS, [users, numbers, lengths, flat])

    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        """Newest last, by time and number; turns numbered `before` or later stay out; `limit` keeps the newest."""
        last = _LAST if before is None else before
        with self.file.reading() as db:
            found = db.execute(
                f"SELECT {_NAMES} FROM turns WHERE (? IS NULL OR user_id = ?) AND (? IS NULL OR session_id = ?) AND number < ? "  # noqa: S608
                "ORDER BY created_at DESC, number DESC, user_id DESC LIMIT ?",
                [user, user, session, session, last, _LAST if limit is None else max(0, limit)],
            ).fetchall()
        return tuple(_row(values) for values in reversed(found))

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        """The user's own turns that share terms or dates with `query` or stand beside one that does, best first.

        Nothing matches, nothing comes back: recent turns are the caller's to add.
        """
        asked = self.asked(query)
        if not asked or limit <= 0:
            return ()
        last = _LAST if before is None else before
        with self.file.reading() as db:
            scored = db.execute(_SCORES, [list(asked), list(asked.values()), user, user, last, max(_POOL, limit)]).fetchall()
            best = _ranked(db, user, scored, last)[:limit]
            rows = _fetched(db, user, [r.number for r in best])
        return tuple(Candidate(rows[r.number], r.score) for r in best)

    def remove(self, user: str, numbers: Sequence[int]) -> None:
        """Take turns out of the index; those it does not hold are passed over."""
        with self.file.writing() as db:
            _drop(db, [user] * len(numbers), list(numbers))

    def asked(self, query: str) -> dict[str, float]:
        """What the index looks for: term -> weight."""
        weights = dict.fromkeys(self.reader.terms(query), 1.0)
        if any(word in weights for word in _PRICE_WORDS) or "how much" in query.lower():
            weights[MONEY] = _MONEY_WEIGHT
        dates = asked_dates(query)
        months = (self.reader.stem(date[1:]) for date in dates if date[1:] in MONTHS)
        return weights | dict.fromkeys(months, 1.0) | dict.fromkeys(dates, 1.0)


def _indexed(row: TurnRow) -> str:
    return "\n".join((row.summary, " ".join(row.topics), row.text))


def _drop(db: duckdb.DuckDBPyConnection, users: list[str], numbers: list[int]) -> None:
    """Postings are looked for only where a turn is known already: a new turn costs the same in an index of any size."""
    known = db.execute(f"SELECT user_id, number FROM turns SEMI JOIN {_GIVEN} USING (user_id, number)", [users, numbers]).fetchall()  # noqa: S608
    if known:
        old = [[user for user, _ in known], [number for _, number in known]]
        for table in ("post", "turns"):
            db.execute(f"DELETE FROM {table} WHERE (user_id, number) IN {_GIVEN}", old)  # noqa: S608 - two fixed names


def _ranked(db: duckdb.DuckDBPyConnection, user: str, scored: list[tuple[int, float, float]], last: int) -> tuple[Ranked, ...]:
    members = db.execute(
        "SELECT session_id, number FROM turns WHERE user_id = ? AND number < ? AND session_id IN "
        "(SELECT session_id FROM turns WHERE user_id = ? AND number IN (SELECT unnest(?::BIGINT[]))) ORDER BY number",
        [user, last, user, [number for number, _, _ in scored]],
    ).fetchall()
    sessions: dict[str, list[int]] = {}
    for session, number in members:
        sessions.setdefault(session, []).append(number)
    home = {number: session for session, number in members}
    return ranked([Found(n, home[n], terms, dates) for n, terms, dates in scored], sessions)


def _fetched(db: duckdb.DuckDBPyConnection, user: str, numbers: list[int]) -> dict[int, TurnRow]:
    found = db.execute(f"SELECT {_NAMES} FROM turns WHERE user_id = ? AND number IN (SELECT unnest(?::BIGINT[]))", [user, numbers])  # noqa: S608
    return {row.number: row for row in map(_row, found.fetchall())}


def _value(row: TurnRow, name: str) -> Any:  # a DuckDB parameter: str, int, bool, None or a list of str
    value = getattr(row, name)
    return list(value) if name == "topics" else str(value) if name == "state" else value


def _row(values: tuple[Any, ...]) -> TurnRow:
    return TurnRow.model_validate(dict(zip(_COLUMNS, values, strict=True)))
