"""The SourceStore port: research and visit records as JSON files of their user, and the research index over them.

A file is named by a digest of its record's id, so that no text from outside becomes a path. Only the index says which file a logical id
such as `research_cache/commerce.laptop.json` names.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.user.sources import Claim, Research, ResearchRow, Visit, VisitRow, research_logical_id, visit_logical_id
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, read_text, sha, write_atomic
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids

RowType = TypeVar("RowType", bound=ResearchRow | VisitRow)
# The research index: rows of cached research and of visits in one DuckDB file (specification 004, section 3).

_TABLES: dict[type[ResearchRow] | type[VisitRow], ColumnTable] = {
    ResearchRow: ColumnTable("research", columns_of(ResearchRow)),
    VisitRow: ColumnTable("visits", columns_of(VisitRow)),
}
_NEWEST_FIRST: dict[type, str] = {ResearchRow: "created_at DESC, cache_key", VisitRow: "visited_at DESC, visit_id"}
RESEARCH_SCHEMA = Schema(1, tuple(table.creation for table in _TABLES.values()))


@dataclass(frozen=True, slots=True)
class DuckResearchIndex:
    """The rows of all users. Each method opens and closes the file; raises StoreError."""

    file: DuckDBFile

    def put(self, rows: Sequence[ResearchRow | VisitRow]) -> None:
        """Store rows, each over an older one of the same file; all of them or none."""
        with self.file.writing() as db:
            for row_type, table in _TABLES.items():
                new_rows = {(row.user_id, row.file): row for row in rows if isinstance(row, row_type)}.values()
                table.delete(db, user_id=[row.user_id for row in new_rows], file=[row.file for row in new_rows])
                table.insert(db, map(astuple, new_rows))

    def rows(self, row_type: type[RowType], user: str | None = None) -> tuple[RowType, ...]:
        """The rows of one type, newest first, of all users where `user` is None; none where there is no index."""
        if not self.file.path.exists():
            return ()
        where = f"WHERE (? IS NULL OR user_id = ?) ORDER BY user_id, {_NEWEST_FIRST[row_type]}"
        with self.file.reading() as db:
            rows = db.execute(f"SELECT * FROM {_TABLES[row_type].name} {where}", [user, user]).fetchall()  # noqa: S608 - fixed names
        return tuple(row_type(*map(_row_value, values)) for values in rows)


def _row_value(value: Any) -> Any:  # what DuckDB gives: str, int, float, None or a list of str
    """The value for a field of a row: a list becomes a tuple."""
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value


# Research and visit records as JSON text: read strictly, with all faults at once; verified by reading before they are written.

RecordType = TypeVar("RecordType", bound=Research | Visit)
_MAX_FAULTS = 12
_STORE_FIELDS = frozenset({"provenance", "page"})
"""The fields that the store fills in; messages do not offer them to users."""


def read_record(text: str, record_type: type[RecordType], *, where: str) -> RecordType:
    """The record in `text`; raises DocumentError with one line for each fault: `FILE: claims.0.confidence: what: expected`."""
    expected = f"expected one object with {_required_fields(record_type)}"
    try:
        value = parse_json(text)
    except PlainDataError as error:
        location = f"{where}:{error.line}" if error.line else where
        raise DocumentError(f"{location}: {error.reason}: {expected}") from error
    try:
        return record_type.model_validate(value)
    except ValidationError as error:
        faults = [f"{where}: {_field_path(fault['loc'])}{_fault_sentence(fault, record_type)}" for fault in error.errors(include_url=False)]
        raise DocumentError("\n".join(faults[:_MAX_FAULTS])) from error


def render_record(record: Research | Visit) -> str:
    """The record as JSON for a file; raises DocumentError where `read_record` would refuse it."""
    where = record.logical_id
    try:
        text = json.dumps(record.model_dump(mode="json", exclude_none=True), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: {error}: expected values that JSON can hold") from error
    read_record(text, type(record), where=where)
    return text


def _fault_sentence(fault: ErrorDetails, record_type: type[RecordType]) -> str:
    """What is wrong with a field, and what was expected there."""
    message, path = fault["msg"].removeprefix("Value error, "), fault["loc"]
    if "expected" in message:
        return message
    owner: type[BaseModel] = Claim if path[:1] == ("claims",) and len(path) > 2 else record_type
    name = str(path[0 if owner is record_type else 2]) if path else ""
    if fault["type"] == "extra_forbidden":
        return f"no field of a record: expected {', '.join(field for field in owner.model_fields if field not in _STORE_FIELDS)}"
    field = owner.model_fields.get(name)
    expected = (field.description if field else None) or f"one object with {_required_fields(record_type)}"
    return f"{'missing' if fault['type'] == 'missing' else message}: expected {expected}"


def _required_fields(record_type: type[RecordType]) -> str:
    """The required fields, for messages."""
    return ", ".join(name for name, field in record_type.model_fields.items() if field.is_required())


def _field_path(path: Sequence[int | str]) -> str:
    """`claims.0.confidence: ` for messages; "" for the record itself."""
    return ".".join(map(str, path)) + ": " if path else ""


_MAX_TITLE_CHARACTERS, _MAX_NAME_CHARACTERS, _MAX_NAMES = 200, 60, 20
"""What the row of a visit has of the page's title and of the names of its data."""
MAX_RECORD_BYTES = 4 * 1024 * 1024
"""The record of a visited page has some kilobytes."""
_MISSING_HINT = "put the file back, or add the record again (`pandora research add`, `pandora visit add`), or run `pandora index rebuild`"
_UNKNOWN_HINT = "add the record (`pandora research add`, `pandora visit add`), or where its file is there: `pandora index rebuild`"
_DAMAGED_HINT = "correct the file that is named, or add the record again (`pandora research add`, `pandora visit add`)"
Row = ResearchRow | VisitRow
StoredType = TypeVar("StoredType", Research, Visit)


class SourceFiles:
    """Research and visits of each user."""

    def __init__(self, root: Path, index: DuckResearchIndex, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._index = index
        self._lock_seconds = lock_seconds

    def put(self, user: UserId, record: Research | Visit) -> None:
        """Write the record, then its row; raises DocumentError for a record that could not be read back, StoreError."""
        text = render_record(record)
        folder = self._layout.research(user) if isinstance(record, Research) else self._layout.visits(user)
        data = encode_text(record.logical_id, text)
        if len(data) > MAX_RECORD_BYTES:
            raise DocumentError(f"{record.logical_id}: {len(data):,} bytes: expected at most {MAX_RECORD_BYTES:,}")
        path = path_inside(self._layout.root, folder / _file_name(record))
        with file_lock(self._layout.user(user) / ".sources.lock", what=f"the sources of {user}", seconds=self._lock_seconds):
            write_atomic(path, data)
            self._index.put([_row(user, record, text)])

    def research_rows(self, user: UserId) -> tuple[ResearchRow, ...]:
        return self._index.rows(ResearchRow, user)

    def visit_rows(self, user: UserId) -> tuple[VisitRow, ...]:
        return self._index.rows(VisitRow, user)

    def research(self, user: UserId, topic: str, *, cache_key: str = "") -> Research:
        """The newest record of a topic, or that of `cache_key`; raises DocumentError with its file and what is wrong."""
        row = next((r for r in self.research_rows(user) if r.topic == topic and cache_key in ("", r.cache_key)), None)
        if row is None:
            where = research_logical_id(topic)[:160]
            message = f"{where}: not among the cached research of {user}: expected a stored topic"
            raise DocumentError(message, missing=True, hint=_UNKNOWN_HINT)
        path = self._layout.research(user) / row.file
        record = self._read(path, Research)
        if (record.topic, record.cache_key) != (row.topic, row.cache_key):
            message = f"{path}: topic {record.topic}, cache_key {record.cache_key}: expected {row.topic}, {row.cache_key}"
            raise DocumentError(message, hint=_DAMAGED_HINT)
        return record

    def visit(self, user: UserId, visit_id: str) -> Visit:
        """A visit record; raises DocumentError with its file and what is wrong."""
        row = next((r for r in self.visit_rows(user) if r.visit_id == visit_id), None)
        if row is None:
            where = visit_logical_id(visit_id)[:160]
            raise DocumentError(
                f"{where}: not among the visited pages of {user}: expected a stored visit", missing=True, hint=_UNKNOWN_HINT
            )
        path = self._layout.visits(user) / row.file
        record = self._read(path, Visit)
        if record.visit_id != visit_id:
            raise DocumentError(f"{path}: visit_id {record.visit_id}: expected {visit_id}", hint=_DAMAGED_HINT)
        return record

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file of a logical id; None where the index has none."""
        for research in self.research_rows(user):
            if research_logical_id(research.topic) == logical_id:
                return str(self._layout.research(user) / research.file)
        for visit in self.visit_rows(user):
            if visit_logical_id(visit.visit_id) == logical_id:
                return str(self._layout.visits(user) / visit.file)
        return None

    def stored_rows(self, faults: list[str]) -> Iterator[Row]:
        """The rows that the index should have, from every record on the disk; records that cannot be read are reported in `faults`."""
        for user in user_ids(self._layout):
            for folder, record_type in ((self._layout.research(user), Research), (self._layout.visits(user), Visit)):
                for path in _record_paths(folder):
                    try:
                        text = self._text(path)
                        record = read_record(text, record_type, where=str(path))
                        if path.name != _file_name(record):
                            raise DocumentError(f"{path}: holds {record.logical_id}: expected it in {_file_name(record)}")
                        yield _row(user, record, text)
                    except DocumentError as error:
                        faults.append(str(error))

    def _read(self, path: Path, record_type: type[StoredType]) -> StoredType:
        """A record by its path; raises DocumentError with the remedy as its hint."""
        try:
            return read_record(self._text(path), record_type, where=str(path))
        except DocumentError as error:
            raise DocumentError(str(error), missing=error.missing, hint=error.hint or _DAMAGED_HINT) from error

    def _text(self, path: Path) -> str:
        """The text of a record's file; raises DocumentError."""
        try:
            return read_text(path_inside(self._layout.root, path), limit=MAX_RECORD_BYTES)
        except DocumentError as error:
            if not error.missing:
                raise
            raise DocumentError(f"{path}: missing: expected the record that the index names", missing=True, hint=_MISSING_HINT) from error


def _record_paths(folder: Path) -> list[Path]:
    with disk_errors(folder, "cannot list"):
        return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _file_name(record: Research | Visit) -> str:
    """The name of a record's file: a digest of its id."""
    identity = f"{record.topic}\n{record.cache_key}" if isinstance(record, Research) else record.visit_id
    return f"{sha(identity)[:24]}.json"


def _row(user: UserId, record: Research | Visit, text: str) -> Row:
    turn = record.provenance.source_turn if record.provenance else None
    file, digest = _file_name(record), sha(text)
    if isinstance(record, Research):
        return ResearchRow(
            user,
            record.topic,
            record.cache_key,
            record.created_at,
            record.expires_at,
            record.quality_score,
            record.summary,
            record.webpage_cache,
            turn,
            file,
            digest,
        )
    title = str(record.extracted_data.get("title") or "")[:_MAX_TITLE_CHARACTERS]
    names = tuple(str(name)[:_MAX_NAME_CHARACTERS] for name in record.extracted_data)[:_MAX_NAMES]
    return VisitRow(user, record.visit_id, record.url, record.visited_at, record.page_type, title, names, turn, file, digest)


# Rebuilds the research index from the records, and compares it with them. The records are the source of truth.


def rebuild_sources(files: SourceFiles, index: DuckResearchIndex, *, report: Callable[[str], None]) -> tuple[int, Path | None]:
    """Rebuild the index and return the number of its records and the new path of a damaged index file.

    `report` receives one sentence for each record that cannot be read. Raises StoreError.
    """
    faults: list[str] = []
    rows = list(files.stored_rows(faults))
    damaged_file = None
    if rows or index.file.exists():
        _, damaged_file = index.file.rebuild(lambda fresh: DuckResearchIndex(fresh).put(rows))
        indexed = {_key(row) for row in rows}
        index.put([row for row in files.stored_rows([]) if _key(row) not in indexed])  # what was stored meanwhile
    for fault in faults:
        report(fault)
    return len(rows), damaged_file


def verify_sources(files: SourceFiles, index: DuckResearchIndex) -> tuple[str, ...]:
    """Every difference between records and index, each as one sentence; empty where they agree. Raises StoreError."""
    faults: list[str] = []
    indexed = {_key(row): row for row in (*index.rows(ResearchRow), *index.rows(VisitRow))}
    for row in files.stored_rows(faults):
        indexed_row = indexed.pop(_key(row), None)
        if indexed_row is None:
            faults.append(f"{_row_name(row)}: missing from the index, expected a row")
        elif indexed_row != row:
            faults.append(f"{_row_name(row)}: changed since it was indexed: expected the row of the file as it is")
    return (*faults, *(f"{_row_name(row)}: in the index, but no readable record: expected no row" for row in indexed.values()))


def _key(row: Row) -> tuple[type, str, str]:
    return type(row), row.user_id, row.file


def _row_name(row: Row) -> str:
    return f"{row.user_id}: {f'research {row.topic}' if isinstance(row, ResearchRow) else row.visit_id}"
