"""Call records as a table: the index over the JSON lines beside the turns (000 section 27).

The index stores how many bytes of each file were read. The lines are the truth: a file that grew is read from that position on, a file
that shrank or was replaced is read again, and no call counts twice.
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

_TEXTS = ("call_id", "timestamp", "recipe", "recipe_version", "layer", "runtime", "model", "user_id", "session_id", "turn_id")
_COUNTED_TOKENS = (
    *("prompt_tokens", "input_tokens", "output_tokens", "served_tokens", "cached_tokens", "used_tokens"),
    *("spent_prompt", "spent_output", "spent_cached", "total_tokens", "budget"),
)
_CALLS = ColumnTable(
    "calls",
    {
        **dict.fromkeys(_TEXTS, "VARCHAR"),
        **{"revision": "INTEGER", "phase": "VARCHAR"},
        **dict.fromkeys(_COUNTED_TOKENS, "BIGINT"),
        **dict.fromkeys(("latency_ms", "queue_ms", "cost"), "DOUBLE"),
        **{"success": "BOOLEAN", "retries": "INTEGER", "error": "VARCHAR", "record": "VARCHAR"},
    },
)
_FILES_READ = ColumnTable("files_read", {"path": "VARCHAR", "bytes_read": "BIGINT"})
CALL_SCHEMA = Schema(2, (_CALLS.creation, _FILES_READ.creation))
_SUMMED_BY: dict[SumBy, str] = {
    "layer": "layer",
    "recipe": "recipe",
    "day": "timestamp[:10]",
    "phase": "phase",
    "model": "model",
    "user": "user_id",
    "turn": "user_id || ':' || turn_id",
}
_SUMS = (
    *("prompt_tokens", "input_tokens", "output_tokens", "total_tokens", "retries"),
    *("latency_ms", "used_tokens", "cached_tokens", "queue_ms", "cost"),
)
_COUNTED = {"output_tokens": "output", "cached_tokens": "cached"}
"""Summed over all attempts as the server counted them; where no server counted, those of the last attempt."""
_SUMMED = {
    name: f"CASE WHEN spent_prompt + spent_output > 0 THEN spent_{_COUNTED[name]} ELSE {name} END" if name in _COUNTED else name
    for name in _SUMS
}
_TOTALS = "count(*), count(*) FILTER (NOT success), " + ", ".join(
    f"coalesce(sum({_SUMMED[name]}), 0)::{'DOUBLE' if _CALLS.columns[name] == 'DOUBLE' else 'BIGINT'}" for name in _SUMS
)
_NEWEST = (
    "SELECT record, timestamp, call_id FROM calls WHERE recipe = ? AND (? = '' OR recipe_version = ?) "
    "AND (? = '' OR coalesce(nullif(regexp_extract(record, '\"recipe_layer\":\"(\\w+)\"', 1), ''), layer) = ?) "
    "AND (timestamp, call_id) < (?, ?) ORDER BY timestamp DESC, call_id DESC LIMIT ?"
)
_BETWEEN = (
    "SELECT record, timestamp, call_id FROM calls WHERE (timestamp, call_id) > (?, ?) AND timestamp < ? ORDER BY timestamp, call_id LIMIT ?"
)
_OF_TURN = "user_id = ? AND turn_id = ? AND (? IS NULL OR revision = ?)"


@dataclass(frozen=True, slots=True)
class DuckCallIndex:
    """The `calls` table in one DuckDB file. Every method opens, works and closes; raises StoreError."""

    file: DuckDBFile

    def index_files(self, paths: Iterable[Path], *, report: Callable[[str], None] | None = None) -> int:
        """Read what is new in files of call records; returns the calls added. A half-written last line waits for its end.

        `report` receives each line that is no record, which is skipped; without `report` it raises StoreError.
        """
        given = {str(path): path for path in paths if path.exists()}
        if not given:
            return 0
        with self.file.writing() as db:  # one opening for both
            before = dict(_read_positions(db, list(given)))
            news = [new for name, path in given.items() if (new := _new_lines(path, before.get(name, 0), report))]
            if not news:
                return 0
            records = {record.call_id: record for new in news for record in new.records}.values()
            count = _number(db.execute("SELECT count(*) FROM calls").fetchone())
            _CALLS.insert(db, map(_values, records), unique="call_id")
            _FILES_READ.delete(db, path=[new.path for new in news])
            _FILES_READ.insert(db, [(new.path, new.read) for new in news])
            return _number(db.execute("SELECT count(*) FROM calls").fetchone()) - count

    def totals(self, key: TurnKey | None = None, *, revision: int | None = None) -> CallTotals:
        """Sums over one turn's calls, or over all calls."""
        where, given = _filter(key, revision)
        with self.file.reading() as db:
            found = db.execute(
                f"SELECT {_TOTALS} FROM calls WHERE {where}",  # noqa: S608 - a fixed filter
                given,
            ).fetchone()
        return CallTotals(*found) if found else CallTotals(0, 0, 0, 0, 0, 0, 0, 0.0)

    def calls_by_model(self) -> dict[tuple[str, str], int]:
        """Layer and model -> how many calls it answered; raises StoreError."""
        with self.file.reading() as db:
            found = db.execute("SELECT layer, model, count(*) FROM calls WHERE success GROUP BY ALL").fetchall()
        return {(layer, model): count for layer, model, count in found}

    def sums(self, by: SumBy, *, user: str = "", since: str = "") -> tuple[tuple[str, CallTotals], ...]:
        """Sums by one property of the calls, in its order; `since`: an ISO date. All users' without `user`; raises StoreError."""
        with self.file.reading() as db:
            found = db.execute(
                f"SELECT {_SUMMED_BY[by]} AS what, {_TOTALS} FROM calls "  # noqa: S608 - fixed words
                "WHERE (? = '' OR user_id = ?) AND timestamp >= ? GROUP BY what ORDER BY what",
                [user, user, since],
            ).fetchall()
        return tuple((str(what), CallTotals(*sums)) for what, *sums in found)

    def compressions(self) -> CompressionTotals:
        """The sums of compressions over all users and completed turns; raises StoreError."""
        done = "(contains(record, '\"no_fact_changed\":') OR contains(record, '\"facts_preserved\":'))"  # the latter by version 0.1.0
        whole = "count(*) FILTER (WHERE {})"
        saved = "CAST(regexp_extract(record, '\"compression_savings\":(\\d+)', 1) AS BIGINT)"
        over = 'contains(record, \'"gates":{"within_budget":false}\')'
        columns = [whole.format(done), whole.format(f"{done} AND NOT success")]
        columns += [f"coalesce({kind}({value}) FILTER (WHERE {done}), 0)" for value in (saved, "latency_ms") for kind in ("sum", "max")]
        with self.file.reading() as db:
            found = db.execute(f"SELECT {', '.join([*columns, whole.format(over)])} FROM calls").fetchone()  # noqa: S608 - fixed words
        return CompressionTotals(*found) if found else CompressionTotals()

    def read_positions(self) -> dict[str, int]:
        """How far each file was read: path -> bytes."""
        with self.file.reading() as db:
            return dict(db.execute("SELECT path, bytes_read FROM files_read").fetchall())

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int, page: int = 500) -> Iterator[CallRecord]:
        """The newest calls of a recipe (of one version, on one layer of its own or assigned to it), newest first.

        Read page by page: memory does not grow with the log."""
        before, left = ("~", "~"), limit
        while left > 0:
            with self.file.reading() as db:
                found = db.execute(_NEWEST, [recipe, version, version, layer, layer, *before, min(page, left)]).fetchall()
            yield from (CallRecord.model_validate_json(text) for text, _, _ in found)
            left -= len(found)
            if len(found) < page:
                return
            before = found[-1][1], found[-1][2]

    def between(self, begin: str, end: str, *, page: int = 1_000) -> Iterator[CallRecord]:
        """The calls that began at or after `begin` and before `end` (in the time format of records), oldest first, read page by page."""
        after = (begin, "")
        while True:
            with self.file.reading() as db:
                found = db.execute(_BETWEEN, [*after, end, page]).fetchall()
            yield from (CallRecord.model_validate_json(text) for text, _, _ in found)
            if len(found) < page:
                return
            after = found[-1][1], found[-1][2]

    def records(self, key: TurnKey | None = None, *, revision: int | None = None) -> tuple[CallRecord, ...]:
        """The records themselves, oldest first."""
        where, given = _filter(key, revision)
        with self.file.reading() as db:
            found = db.execute(f"SELECT record FROM calls WHERE {where} ORDER BY timestamp, call_id", given).fetchall()  # noqa: S608
        return tuple(CallRecord.model_validate_json(text) for (text,) in found)


@dataclass(frozen=True, slots=True)
class _NewLines:
    path: str
    read: int
    records: tuple[CallRecord, ...]


def _read_positions(db: duckdb.DuckDBPyConnection, paths: list[str]) -> list[tuple[str, int]]:
    """How far each of these files was read."""
    return db.execute("SELECT path, bytes_read FROM files_read WHERE path IN (SELECT unnest(?::VARCHAR[]))", [paths]).fetchall()


def _new_lines(path: Path, start: int, report: Callable[[str], None] | None) -> _NewLines | None:
    """The whole lines of `path` after byte `start`; None where there are none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = file.seek(start if size >= start else 0)
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot read call records: {error.strerror}") from error
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return None
    return _NewLines(str(path), begin + len(whole), tuple(_parsed_records(whole, path, report)))


def _parsed_records(whole: bytes, path: Path, report: Callable[[str], None] | None) -> Iterator[CallRecord]:
    for line in whole.splitlines():
        try:
            if line.strip():
                yield _record(line, path)
        except StoreError as error:
            if report is None:
                raise
            report(str(error))


def _record(line: bytes, path: Path) -> CallRecord:
    try:
        return CallRecord.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "line"
        raise StoreError(f"{path}: call record: {field}: {first['msg']}, expected a call record") from error


def _values(record: CallRecord) -> tuple[object, ...]:
    plain = {"layer": record.model_layer.value, "budget": record.tokens.budget, "record": record.model_dump_json()}
    tokens = {f"{name}_tokens": count for name, count in record.tokens.model_dump().items()}
    spent = {f"spent_{name}": count for name, count in record.spent.model_dump().items()}
    fields = record.model_dump() | tokens | spent | plain | {"used_tokens": record.used_tokens}
    return tuple(fields[name] for name in _CALLS.columns)


def _filter(key: TurnKey | None, revision: int | None) -> tuple[str, list[object]]:
    return ("TRUE", []) if key is None else (_OF_TURN, [key.user, key.turn_id, revision, revision])


def _number(row: tuple[int, ...] | None) -> int:
    return row[0] if row else 0
