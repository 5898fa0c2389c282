"""The tables of the turn index and how rows go in and out of them. Knows SQL and tiers; knows nothing of ranking.

What is new goes into small tables. Full ones are appended to the larger ones, postings sorted by user, term and document: first
as short runs in a middle table, then as long runs in the large one, of which a search reads only the blocks that can hold its
terms. So one turn's arrival touches small tables only, in an index of any size, and no merge touches what was merged before.
A posting carries its document's length, so that a first score needs no join.
"""

from collections.abc import Sequence
from typing import Any

import duckdb

from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.selection.message_ranking import PLACE_BITS
from pandora_dagster.stores.duck import Schema
from pandora_dagster.stores.postings import Posted

TURN_COLUMNS = {
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
MESSAGE_COLUMNS = {
    "user_id": "VARCHAR",
    "doc": "BIGINT",
    "number": "BIGINT",
    "session_id": "VARCHAR",
    "message_id": "VARCHAR",
    "role": "VARCHAR",
    "speaker": "VARCHAR",
    "created_at": "VARCHAR",
    "length": "INTEGER",
    "asks": "BOOLEAN",
    "own_words": "BOOLEAN",
    "text": "VARCHAR",
}
TURN_NAMES, MESSAGE_NAMES = ", ".join(TURN_COLUMNS), ", ".join(MESSAGE_COLUMNS)
_POSTING = "user_id VARCHAR, term UBIGINT, doc BIGINT, tf USMALLINT, length USMALLINT"
_MOST = 65_535


def _made(name: str, columns: dict[str, str]) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in columns.items())})"


SCHEMA = Schema(
    version=2,
    statements=(
        *(_made(f"turns{tier}", TURN_COLUMNS) for tier in ("", "_new")),
        *(_made(f"messages{tier}", MESSAGE_COLUMNS) for tier in ("", "_new")),
        *(f"CREATE TABLE post{tier} ({_POSTING})" for tier in ("", "_mid", "_new")),
        "CREATE TABLE speakers (user_id VARCHAR, speaker VARCHAR, messages BIGINT, length BIGINT)",
    ),
)
ALL_TURNS = "(SELECT * FROM turns UNION ALL SELECT * FROM turns_new)"
ALL_MESSAGES = "(SELECT * FROM messages UNION ALL SELECT * FROM messages_new)"
ALL_POSTINGS = "(SELECT * FROM post UNION ALL SELECT * FROM post_mid UNION ALL SELECT * FROM post_new)"
NEW_MESSAGES, MIDDLE_POSTINGS = 8_192, 4_000_000
"""Messages that the small tables take, and postings that the middle one takes, before they are merged."""
_GIVEN = "(SELECT unnest(?::VARCHAR[]) AS user_id, unnest(?::BIGINT[]) AS number)"
_TIERS = {"turns_new": ("turns_new", "messages_new", "post_new"), "turns": ("turns", "messages", "post", "post_mid")}
_INSERT_POSTINGS = f"""
    INSERT INTO post_new
    SELECT user_id, md5_number_lower(bag[2 * i + 1]), doc, least(bag[2 * i + 2]::INTEGER, {_MOST}), least(length, {_MOST}) FROM (
        SELECT *, unnest(range(len(bag) // 2)) AS i FROM (
            SELECT unnest(?::VARCHAR[]) AS user_id, unnest(?::BIGINT[]) AS doc, unnest(?::INTEGER[]) AS length,
                   string_split(unnest(?::VARCHAR[]), ' ') AS bag))
"""  # noqa: S608 - constants of this module
_COUNT_SPEAKERS = """
    INSERT INTO speakers SELECT user_id, speaker, {sign} * count(*), {sign} * sum(length) FROM {table} WHERE {where} GROUP BY ALL
"""


def insert(db: duckdb.DuckDBPyConnection, rows: Sequence[TurnRow], posted: Sequence[Posted]) -> None:
    """Add turns that are not there, with their messages and postings."""
    db.execute(_insertion("turns_new", TURN_COLUMNS), [[_value(row, name) for row in rows] for name in TURN_COLUMNS])
    users, docs, lengths = [p.user_id for p in posted], [p.doc for p in posted], [p.length for p in posted]
    db.execute(_insertion("messages_new", MESSAGE_COLUMNS), [[getattr(p, name) for p in posted] for name in MESSAGE_COLUMNS])
    db.execute(_INSERT_POSTINGS, [users, docs, lengths, [p.bag for p in posted]])
    totals: dict[tuple[str, str], list[int]] = {}
    for item in posted:
        total = totals.setdefault((item.user_id, item.speaker), [0, 0])
        total[0] += 1
        total[1] += item.length
    said = [(user, speaker, count, length) for (user, speaker), (count, length) in totals.items()]
    if said:
        db.execute(
            "INSERT INTO speakers SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[])",
            [list(column) for column in zip(*said, strict=True)],
        )


def drop(db: duckdb.DuckDBPyConnection, users: list[str], numbers: list[int]) -> None:
    """Take turns out. Messages and postings are looked for only in the tables where a turn is known to stand."""
    for turns, tables in _TIERS.items():
        known = db.execute(f"SELECT user_id, number FROM {turns} SEMI JOIN {_GIVEN} USING (user_id, number)", [users, numbers]).fetchall()  # noqa: S608
        if not known:
            continue
        old = [[user for user, _ in known], [number for _, number in known]]
        where = f"(user_id, number) IN {_GIVEN}"
        db.execute(_COUNT_SPEAKERS.format(sign=-1, table=tables[1], where=where), old)
        for table in tables:
            number = f"doc >> {PLACE_BITS}" if table.startswith("post") else "number"
            db.execute(f"DELETE FROM {table} WHERE (user_id, {number}) IN {_GIVEN}", old)  # noqa: S608 - fixed names


def merge_full(db: duckdb.DuckDBPyConnection) -> None:
    """Merge the small tables where they are full, then the middle one where it is."""
    if _count(db, "messages_new") < NEW_MESSAGES:
        return
    for name in ("turns", "messages"):
        db.execute(f"INSERT INTO {name} SELECT * FROM {name}_new")  # noqa: S608 - fixed names
        db.execute(f"TRUNCATE {name}_new")
    _merge_postings(db, "post_new", "post_mid")
    if _count(db, "post_mid") >= MIDDLE_POSTINGS:
        _merge_postings(db, "post_mid", "post")
    db.execute(
        "CREATE OR REPLACE TABLE speakers AS SELECT user_id, speaker, sum(messages)::BIGINT AS messages, sum(length)::BIGINT AS length "
        "FROM speakers GROUP BY ALL HAVING sum(messages) > 0"
    )


def _merge_postings(db: duckdb.DuckDBPyConnection, small: str, large: str) -> None:
    """Append the small table as one sorted run: no merge costs more than the small table, however large the index is."""
    db.execute(f"INSERT INTO {large} SELECT * FROM {small} ORDER BY user_id, term, doc")  # noqa: S608 - fixed names
    db.execute(f"TRUNCATE {small}")


def _count(db: duckdb.DuckDBPyConnection, table: str) -> int:
    found = db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - fixed names
    return found[0] if found else 0


def _insertion(table: str, columns: dict[str, str]) -> str:
    return f"INSERT INTO {table} SELECT {', '.join(f'unnest(?::{kind}[])' for kind in columns.values())}"


def _value(row: TurnRow, name: str) -> Any:  # a DuckDB parameter: str, int, bool, None or a list of str
    value = getattr(row, name)
    return list(value) if name == "topics" else str(value) if name == "state" else value


def row_from(values: tuple[Any, ...]) -> TurnRow:
    """A row as `TURN_NAMES` selects it."""
    return TurnRow.model_validate(dict(zip(TURN_COLUMNS, values, strict=True)))
