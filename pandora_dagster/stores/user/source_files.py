"""The SourceStore port: research and visit records as JSON files of their user, the research index over them.

A file is named by a digest of its record's own id, so that no text from outside becomes a path;
which file a logical id leads to is known from the index alone.
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
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, read_text, sha, write_atomic
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids

Shape = TypeVar("Shape", bound=ResearchRow | VisitRow)
# The research index: rows of cached research and of visits in one DuckDB file (004 section 3).

_TABLES: dict[type[ResearchRow] | type[VisitRow], ColumnTable] = {
    ResearchRow: ColumnTable("research", columns_of(ResearchRow)),
    VisitRow: ColumnTable("visits", columns_of(VisitRow)),
}
_NEWEST: dict[type, str] = {ResearchRow: "created_at DESC, cache_key", VisitRow: "visited_at DESC, visit_id"}
RESEARCH_SCHEMA = Schema(1, tuple(table.creation for table in _TABLES.values()))


@dataclass(frozen=True, slots=True)
class DuckResearchIndex:
    """Rows by user and file. Every method opens, works and closes; raises StoreError."""

    file: DuckDBFile

    def put(self, rows: Sequence[ResearchRow | VisitRow]) -> None:
        """Store rows, each in the place of an older one of the same file; all of them or none."""
        with self.file.writing() as db:
            for shape, table in _TABLES.items():
                given = {(row.user_id, row.file): row for row in rows if isinstance(row, shape)}.values()
                table.delete(db, user_id=[row.user_id for row in given], file=[row.file for row in given])
                table.insert(db, map(astuple, given))

    def rows(self, shape: type[Shape], user: str | None = None) -> tuple[Shape, ...]:
        """The newest first; all users' where `user` is None; none where no index was made yet."""
        if not self.file.path.exists():
            return ()
        where = f"WHERE (? IS NULL OR user_id = ?) ORDER BY user_id, {_NEWEST[shape]}"
        with self.file.reading() as db:
            found = db.execute(f"SELECT * FROM {_TABLES[shape].name} {where}", [user, user]).fetchall()  # noqa: S608 - fixed names
        return tuple(shape(*map(_plain, values)) for values in found)


def _plain(value: Any) -> Any:  # what DuckDB gives: str, int, float, None or a list of str
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value


# Research and visit records as JSON text: read strictly, with all faults at once; written so that they read back.

Record = TypeVar("Record", bound=Research | Visit)
_MOST_FAULTS = 12
_KEPT_BY_THE_STORE = "provenance"


def read_record(text: str, shape: type[Record], *, where: str) -> Record:
    """The record that `text` is; raises DocumentError, one line a fault: `FILE: claims.0.confidence: what: expected`."""
    expected = f"expected one object with {_required(shape)}"
    try:
        value: object = json.loads(text, parse_constant=_no_number, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        raise DocumentError(f"{where}:{error.lineno}: not JSON: {error.msg}: {expected}") from error
    except RecursionError as error:
        raise DocumentError(f"{where}: nested too deeply: {expected}") from error
    except ValueError as error:
        raise DocumentError(f"{where}: {error}: {expected}") from error
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        faults = [f"{where}: {_place(f['loc'])}{_fault_sentence(f, shape)}" for f in error.errors(include_url=False)]
        raise DocumentError("\n".join(faults[:_MOST_FAULTS])) from error


def render_record(record: Research | Visit) -> str:
    """The record as JSON for a file; raises DocumentError where it could not be read back as it is."""
    where = record.logical_id
    try:
        text = json.dumps(record.model_dump(mode="json", exclude_none=True), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: {error}: expected values that JSON can hold") from error
    read_record(text, type(record), where=where)
    return text


def _fault_sentence(fault: ErrorDetails, shape: type[Record]) -> str:
    """What is wrong with a field, and what was expected there."""
    message, path = fault["msg"].removeprefix("Value error, "), fault["loc"]
    if "expected" in message:
        return message
    owner: type[BaseModel] = Claim if path[:1] == ("claims",) and len(path) > 2 else shape
    name = str(path[0 if owner is shape else 2]) if path else ""
    if fault["type"] == "extra_forbidden":
        return f"no field of a record: expected {', '.join(n for n in owner.model_fields if n != _KEPT_BY_THE_STORE)}"
    field = owner.model_fields.get(name)
    expected = (field.description if field else None) or f"one object with {_required(shape)}"
    return f"{'missing' if fault['type'] == 'missing' else message}: expected {expected}"


def _required(shape: type[Record]) -> str:
    return ", ".join(name for name, field in shape.model_fields.items() if field.is_required())


def _place(path: Sequence[int | str]) -> str:
    return ".".join(map(str, path)) + ": " if path else ""


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if key in dict(pairs[:n]))
        raise ValueError(f"duplicate key {twice[:60]!r}")
    return made


MAX_RECORD_BYTES = 4 * 1024 * 1024
"""A visited page's extraction takes some kilobytes."""
_GONE = "put the file back, or add the record again (`pandora research add`, `pandora visit add`), or run `pandora index rebuild`"
_NEVER_STORED = "add the record (`pandora research add`, `pandora visit add`), or where its file is there: `pandora index rebuild`"
_DAMAGED = "correct the file that is named, or add the record again (`pandora research add`, `pandora visit add`)"
Row = ResearchRow | VisitRow
Stored = TypeVar("Stored", Research, Visit)


class SourceFiles:
    """Research and visits of each user."""

    def __init__(self, root: Path, index: DuckResearchIndex, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._index = index
        self._lock_seconds = lock_seconds

    def put(self, user: UserId, record: Research | Visit) -> None:
        """Write the record, then its row; raises DocumentError where it would not read back, StoreError for the disk."""
        text = render_record(record)
        folder = self._layout.research(user) if isinstance(record, Research) else self._layout.visits(user)
        data = encode_text(record.logical_id, text)
        if len(data) > MAX_RECORD_BYTES:
            raise DocumentError(f"{record.logical_id}: {len(data):,} bytes: expected at most {MAX_RECORD_BYTES:,}")
        path = path_inside(self._layout.root, folder / _file(record))
        with file_lock(self._layout.user(user) / ".sources.lock", what=f"the sources of {user}", seconds=self._lock_seconds):
            write_atomic(path, data)
            self._index.put([_row(user, record, text)])

    def research_rows(self, user: UserId) -> tuple[ResearchRow, ...]:
        return self._index.rows(ResearchRow, user)

    def visit_rows(self, user: UserId) -> tuple[VisitRow, ...]:
        return self._index.rows(VisitRow, user)

    def research(self, user: UserId, topic: str) -> Research:
        """The newest record of a topic; raises DocumentError with its file and what is wrong."""
        row = next((r for r in self.research_rows(user) if r.topic == topic), None)
        if row is None:
            where = research_logical_id(topic)[:160]
            message = f"{where}: not among the cached research of {user}: expected a stored topic"
            raise DocumentError(message, missing=True, hint=_NEVER_STORED)
        path = self._layout.research(user) / row.file
        found = self._read(path, Research)
        if (found.topic, found.cache_key) != (row.topic, row.cache_key):
            message = f"{path}: topic {found.topic}, cache_key {found.cache_key}: expected {row.topic}, {row.cache_key}"
            raise DocumentError(message, hint=_DAMAGED)
        return found

    def visit(self, user: UserId, visit_id: str) -> Visit:
        """A visit record; raises DocumentError with its file and what is wrong."""
        row = next((r for r in self.visit_rows(user) if r.visit_id == visit_id), None)
        if row is None:
            where = visit_logical_id(visit_id)[:160]
            raise DocumentError(
                f"{where}: not among the visited pages of {user}: expected a stored visit", missing=True, hint=_NEVER_STORED
            )
        path = self._layout.visits(user) / row.file
        found = self._read(path, Visit)
        if found.visit_id != visit_id:
            raise DocumentError(f"{path}: visit_id {found.visit_id}: expected {visit_id}", hint=_DAMAGED)
        return found

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file that a logical id leads to; None where the index knows none."""
        for research in self.research_rows(user):
            if research_logical_id(research.topic) == logical_id:
                return str(self._layout.research(user) / research.file)
        for visit in self.visit_rows(user):
            if visit_logical_id(visit.visit_id) == logical_id:
                return str(self._layout.visits(user) / visit.file)
        return None

    def stored_rows(self, faults: list[str]) -> Iterator[Row]:
        """Rows of every record on the disk, as the index should hold them; what cannot be read is named in `faults`."""
        for user in user_ids(self._layout):
            for folder, shape in ((self._layout.research(user), Research), (self._layout.visits(user), Visit)):
                for path in _records(folder):
                    try:
                        text = self._text(path)
                        record = read_record(text, shape, where=str(path))
                        if path.name != _file(record):
                            raise DocumentError(f"{path}: holds {record.logical_id}: expected it in {_file(record)}")
                        yield _row(user, record, text)
                    except DocumentError as error:
                        faults.append(str(error))

    def _read(self, path: Path, shape: type[Stored]) -> Stored:
        """A record by its path; raises DocumentError with the remedy as its hint."""
        try:
            return read_record(self._text(path), shape, where=str(path))
        except DocumentError as error:
            raise DocumentError(str(error), missing=error.missing, hint=error.hint or _DAMAGED) from error

    def _text(self, path: Path) -> str:
        try:
            return read_text(path_inside(self._layout.root, path), limit=MAX_RECORD_BYTES)
        except DocumentError as error:
            if not error.missing:
                raise
            raise DocumentError(f"{path}: missing: expected the record that the index names", missing=True, hint=_GONE) from error


def _records(folder: Path) -> list[Path]:
    with disk_errors(folder, "cannot list"):
        return sorted(folder.glob("*.json")) if folder.is_dir() else []


def _file(record: Research | Visit) -> str:
    own = f"{record.topic}\n{record.cache_key}" if isinstance(record, Research) else record.visit_id
    return f"{sha(own)[:24]}.json"


def _row(user: UserId, record: Research | Visit, text: str) -> Row:
    turn = record.provenance.source_turn if record.provenance else None
    file, digest = _file(record), sha(text)
    if isinstance(record, Research):
        r = record
        return ResearchRow(
            user, r.topic, r.cache_key, r.created_at, r.expires_at, r.quality_score, r.summary, r.webpage_cache, turn, file, digest
        )
    title = str(record.extracted_data.get("title") or "")[:200]
    names = tuple(str(name)[:60] for name in record.extracted_data)[:20]
    return VisitRow(user, record.visit_id, record.url, record.visited_at, record.page_type, title, names, turn, file, digest)


# The research index made again from the records, and compared with them. The records are the truth.


def rebuild_sources(files: SourceFiles, index: DuckResearchIndex, *, report: Callable[[str], None]) -> tuple[int, Path | None]:
    """Make the index again beside the old one, then put it in its place: the records in it, and where a damaged one is kept.

    `report` receives each record that cannot be read. Raises StoreError.
    """
    faults: list[str] = []
    rows = list(files.stored_rows(faults))
    damaged_file = None
    if rows or index.file.exists():
        _, damaged_file = index.file.rebuild(lambda fresh: DuckResearchIndex(fresh).put(rows))
        known = {_key(row) for row in rows}
        index.put([row for row in files.stored_rows([]) if _key(row) not in known])  # what was stored meanwhile
    for fault in faults:
        report(fault)
    return len(rows), damaged_file


def verify_sources(files: SourceFiles, index: DuckResearchIndex) -> tuple[str, ...]:
    """Every difference between records and index, each as one sentence; empty where they agree. Raises StoreError."""
    faults: list[str] = []
    there = {_key(row): row for row in (*index.rows(ResearchRow), *index.rows(VisitRow))}
    for row in files.stored_rows(faults):
        found = there.pop(_key(row), None)
        if found is None:
            faults.append(f"{_row_name(row)}: missing from the index, expected a row")
        elif found != row:
            faults.append(f"{_row_name(row)}: changed since it was indexed: expected the row to say what the file says")
    return (*faults, *(f"{_row_name(row)}: in the index, but no readable record: expected no row" for row in there.values()))


def _key(row: Row) -> tuple[type, str, str]:
    return type(row), row.user_id, row.file


def _row_name(row: Row) -> str:
    return f"{row.user_id}: {f'research {row.topic}' if isinstance(row, ResearchRow) else row.visit_id}"
