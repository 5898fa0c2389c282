"""The call index: call records as a table, built from the JSON lines beside the turns (specification 000, section 27).

The lines are the source of truth. The index stores how many bytes of each file were read: a file that grew is read from there on, one that
shrank is read again, and a call is stored once, by its id.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.record_storage import CallTotals, CompressionTotals, SumBy
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.column_table import ColumnTable
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

_TEXT_COLUMNS = ("call_id", "timestamp", "recipe", "recipe_version", "layer", "runtime", "model", "user_id", "session_id", "turn_id")
_TOKEN_COLUMNS = (
    *("prompt_tokens", "input_tokens", "output_tokens", "served_tokens", "cached_tokens", "used_tokens"),
    *("spent_prompt", "spent_output", "spent_cached", "total_tokens", "budget"),
)
_CALLS = ColumnTable(
    "calls",
    {
        **dict.fromkeys(_TEXT_COLUMNS, "VARCHAR"),
        **{"revision": "INTEGER", "phase": "VARCHAR"},
        **dict.fromkeys(_TOKEN_COLUMNS, "BIGINT"),
        **dict.fromkeys(("latency_ms", "queue_ms", "cost"), "DOUBLE"),
        **{"success": "BOOLEAN", "retries": "INTEGER", "error": "VARCHAR", "record": "VARCHAR"},
    },
)
_FILES_READ = ColumnTable("files_read", {"path": "VARCHAR", "bytes_read": "BIGINT"})
CALL_SCHEMA = Schema(2, (_CALLS.creation, _FILES_READ.creation))
_GROUP_COLUMNS: dict[SumBy, str] = {
    "layer": "layer",
    "recipe": "recipe",
    "day": "timestamp[:10]",
    "phase": "phase",
    "model": "model",
    "user": "user_id",
    "turn": "user_id || ':' || turn_id",
}
_SUMMED_COLUMNS = (
    *("prompt_tokens", "input_tokens", "output_tokens", "total_tokens", "retries"),
    *("latency_ms", "used_tokens", "cached_tokens", "queue_ms", "cost"),
)
_SPENT_COLUMNS = {"output_tokens": "output", "cached_tokens": "cached"}
"""Column -> the part of `spent_...` with its tokens over all attempts, as the server counted them. Without such counts the column itself is
summed, which has the last attempt alone."""
_SUM_EXPRESSIONS = {
    name: f"CASE WHEN spent_prompt + spent_output > 0 THEN spent_{_SPENT_COLUMNS[name]} ELSE {name} END" if name in _SPENT_COLUMNS else name
    for name in _SUMMED_COLUMNS
}
_TOTALS_SQL = "count(*), count(*) FILTER (NOT success), " + ", ".join(
    f"coalesce(sum({_SUM_EXPRESSIONS[name]}), 0)::{'DOUBLE' if _CALLS.columns[name] == 'DOUBLE' else 'BIGINT'}" for name in _SUMMED_COLUMNS
)
_SELECT_NEWEST = (
    "SELECT record, timestamp, call_id FROM calls WHERE recipe = ? AND (? = '' OR recipe_version = ?) "
    "AND (? = '' OR coalesce(nullif(regexp_extract(record, '\"recipe_layer\":\"(\\w+)\"', 1), ''), layer) = ?) "
    "AND (timestamp, call_id) < (?, ?) ORDER BY timestamp DESC, call_id DESC LIMIT ?"
)
_AFTER_ALL_TEXT = ("~", "~")
"""Sorts after the time and id of every call."""
_SELECT_BETWEEN = (
    "SELECT record, timestamp, call_id FROM calls WHERE (timestamp, call_id) > (?, ?) AND timestamp < ? ORDER BY timestamp, call_id LIMIT ?"
)
_TURN_CONDITION = "user_id = ? AND turn_id = ? AND (? IS NULL OR revision = ?)"


@dataclass(frozen=True, slots=True)
class DuckCallIndex:
    """The table `calls` in one DuckDB file. Each method opens and closes the file; raises StoreError."""

    file: DuckDBFile

    def index_files(self, paths: Iterable[Path], *, report: Callable[[str], None] | None = None) -> int:
        """Index the new lines of files; returns the number of added calls. A half-written last line is left for the next time.

        `report` receives each line that is no record, which is skipped; without `report` it raises StoreError.
        """
        existing = {str(path): path for path in paths if path.exists()}
        if not existing:
            return 0
        with self.file.writing() as db:  # one opening to read the positions and to write
            positions = dict(_read_positions(db, list(existing)))
            parts = [part for name, path in existing.items() if (part := _new_lines(path, positions.get(name, 0), report))]
            if not parts:
                return 0
            records = {record.call_id: record for part in parts for record in part.records}.values()
            count_before = _number(db.execute("SELECT count(*) FROM calls").fetchone())
            _CALLS.insert(db, map(_values, records), unique="call_id")
            _FILES_READ.delete(db, path=[part.path for part in parts])
            _FILES_READ.insert(db, [(part.path, part.end) for part in parts])
            return _number(db.execute("SELECT count(*) FROM calls").fetchone()) - count_before

    def totals(self, key: TurnKey | None = None, *, revision: int | None = None) -> CallTotals:
        """Sums over one turn's calls, or over all calls."""
        where, values = _condition(key, revision)
        with self.file.reading() as db:
            row = db.execute(
                f"SELECT {_TOTALS_SQL} FROM calls WHERE {where}",  # noqa: S608 - a fixed filter
                values,
            ).fetchone()
        return CallTotals(*row) if row else CallTotals(0, 0, 0, 0, 0, 0, 0, 0.0)

    def calls_by_model(self) -> dict[tuple[str, str], int]:
        """Layer and model -> number of successful calls."""
        with self.file.reading() as db:
            rows = db.execute("SELECT layer, model, count(*) FROM calls WHERE success GROUP BY ALL").fetchall()
        return {(layer, model): count for layer, model, count in rows}

    def sums(self, by: SumBy, *, user: str = "", since: str = "") -> tuple[tuple[str, CallTotals], ...]:
        """Sums of the calls since an ISO date, grouped and ordered by one property; of all users without `user`."""
        with self.file.reading() as db:
            rows = db.execute(
                f"SELECT {_GROUP_COLUMNS[by]} AS group_value, {_TOTALS_SQL} FROM calls "  # noqa: S608 - fixed words
                "WHERE (? = '' OR user_id = ?) AND timestamp >= ? GROUP BY group_value ORDER BY group_value",
                [user, user, since],
            ).fetchall()
        return tuple((str(group), CallTotals(*sums)) for group, *sums in rows)

    def compressions(self) -> CompressionTotals:
        """The sums of compressions over all users and completed turns."""
        # `facts_preserved` is in records of version 0.1.0
        is_compression = "(contains(record, '\"no_fact_changed\":') OR contains(record, '\"facts_preserved\":'))"
        count_where = "count(*) FILTER (WHERE {})"
        saved_tokens = "CAST(regexp_extract(record, '\"compression_savings\":(\\d+)', 1) AS BIGINT)"
        over_budget = 'contains(record, \'"gates":{"within_budget":false}\')'
        columns = [count_where.format(is_compression), count_where.format(f"{is_compression} AND NOT success")]
        for value in (saved_tokens, "latency_ms"):
            columns += [f"coalesce({function}({value}) FILTER (WHERE {is_compression}), 0)" for function in ("sum", "max")]
        columns.append(count_where.format(over_budget))
        with self.file.reading() as db:
            row = db.execute(f"SELECT {', '.join(columns)} FROM calls").fetchone()  # noqa: S608 - fixed words
        return CompressionTotals(*row) if row else CompressionTotals()

    def read_positions(self) -> dict[str, int]:
        """Path -> bytes of the file that were read."""
        with self.file.reading() as db:
            return dict(db.execute("SELECT path, bytes_read FROM files_read").fetchall())

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int, page: int = 500) -> Iterator[CallRecord]:
        """At most `limit` calls of a recipe, newest first, of one version or layer where given; read page by page."""
        before, remaining = _AFTER_ALL_TEXT, limit
        while remaining > 0:
            with self.file.reading() as db:
                rows = db.execute(_SELECT_NEWEST, [recipe, version, version, layer, layer, *before, min(page, remaining)]).fetchall()
            yield from (CallRecord.model_validate_json(text) for text, _, _ in rows)
            remaining -= len(rows)
            if len(rows) < page:
                return
            before = rows[-1][1], rows[-1][2]

    def between(self, begin: str, end: str, *, page: int = 1_000) -> Iterator[CallRecord]:
        """The calls that began at or after `begin` and before `end` (in the time format of records), oldest first, read page by page."""
        after = (begin, "")
        while True:
            with self.file.reading() as db:
                rows = db.execute(_SELECT_BETWEEN, [*after, end, page]).fetchall()
            yield from (CallRecord.model_validate_json(text) for text, _, _ in rows)
            if len(rows) < page:
                return
            after = rows[-1][1], rows[-1][2]

    def records(self, key: TurnKey | None = None, *, revision: int | None = None) -> tuple[CallRecord, ...]:
        """The records of one turn's calls, or of all calls, oldest first."""
        where, values = _condition(key, revision)
        with self.file.reading() as db:
            rows = db.execute(f"SELECT record FROM calls WHERE {where} ORDER BY timestamp, call_id", values).fetchall()  # noqa: S608
        return tuple(CallRecord.model_validate_json(text) for (text,) in rows)


@dataclass(frozen=True, slots=True)
class _NewLines:
    """The lines of a file that were not indexed, as records, and the byte after them."""

    path: str
    end: int
    records: tuple[CallRecord, ...]


def _read_positions(db: duckdb.DuckDBPyConnection, paths: list[str]) -> list[tuple[str, int]]:
    """Path and read bytes of each of these files."""
    return db.execute("SELECT path, bytes_read FROM files_read WHERE path IN (SELECT unnest(?::VARCHAR[]))", [paths]).fetchall()


def _new_lines(path: Path, start: int, report: Callable[[str], None] | None) -> _NewLines | None:
    """The whole lines of `path` after byte `start`; None where there are none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            offset = file.seek(start if size >= start else 0)
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot read call records: {error.strerror}") from error
    whole_lines = data[: data.rfind(b"\n") + 1]
    if not whole_lines:
        return None
    return _NewLines(str(path), offset + len(whole_lines), tuple(_parse_records(whole_lines, path, report)))


def _parse_records(lines: bytes, path: Path, report: Callable[[str], None] | None) -> Iterator[CallRecord]:
    for line in lines.splitlines():
        try:
            if line.strip():
                yield _parse_record(line, path)
        except StoreError as error:
            if report is None:
                raise
            report(str(error))


def _parse_record(line: bytes, path: Path) -> CallRecord:
    """The record in a line; raises StoreError."""
    try:
        return CallRecord.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, fault["loc"])) or "line"
        raise StoreError(f"{path}: call record: {field}: {fault['msg']}: expected a call record") from error


def _values(record: CallRecord) -> tuple[object, ...]:
    """The values of a record's columns."""
    derived = {"layer": record.model_layer.value, "budget": record.tokens.budget, "record": record.model_dump_json()}
    tokens = {f"{name}_tokens": count for name, count in record.tokens.model_dump().items()}
    spent = {f"spent_{name}": count for name, count in record.spent.model_dump().items()}
    fields = record.model_dump() | tokens | spent | derived | {"used_tokens": record.used_tokens}
    return tuple(fields[name] for name in _CALLS.columns)


def _condition(key: TurnKey | None, revision: int | None) -> tuple[str, list[object]]:
    """SQL that holds for the calls of a turn, or for all, and its parameters."""
    return ("TRUE", []) if key is None else (_TURN_CONDITION, [key.user, key.turn_id, revision, revision])


def _number(row: tuple[int, ...] | None) -> int:
    """The one number that was selected."""
    return row[0] if row else 0
