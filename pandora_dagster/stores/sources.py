"""The SourceStore port: research and visit records as JSON files of their user, the research index over them.

Knows files, locks and rows. A file is named by a digest of its record's own id, so that no text from outside becomes a path;
which file a logical id leads to is known from the index alone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.sources import Research, ResearchRow, Visit, VisitRow, research_id, visit_reference
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.directory import user_ids
from pandora_dagster.stores.files import disk_errors, encode_text, path_inside, read_text, sha, write_atomic
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import file_lock
from pandora_dagster.stores.research_index import DuckResearchIndex
from pandora_dagster.stores.source_records import read_record, render_record

MAX_RECORD_BYTES = 4 * 1024 * 1024
"""A visited page's extraction takes some kilobytes."""
_GONE = "put the file back, or add the record again (`pandora research add`, `pandora visit add`), or run `pandora index rebuild`"
_NEVER_STORED = "add the record (`pandora research add`, `pandora visit add`), or where its file is there: `pandora index rebuild`"
_DAMAGED = "mend the file that is named, or add the record again (`pandora research add`, `pandora visit add`)"
Row = ResearchRow | VisitRow
Stored = TypeVar("Stored", Research, Visit)


class SourceFiles:
    """What was researched and visited for each user."""

    def __init__(self, root: Path, index: DuckResearchIndex, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._index = index
        self._lock_seconds = lock_seconds

    def put_research(self, user: UserId, research: Research) -> None:
        """Write the record, then its row; raises DocumentError where it would not read back, StoreError for the disk."""
        self._put(user, research)

    def put_visit(self, user: UserId, visit: Visit) -> None:
        """Write the record, then its row; raises as `put_research`."""
        self._put(user, visit)

    def research_rows(self, user: UserId) -> tuple[ResearchRow, ...]:
        return self._index.rows(ResearchRow, user)

    def visit_rows(self, user: UserId) -> tuple[VisitRow, ...]:
        return self._index.rows(VisitRow, user)

    def research(self, user: UserId, topic: str) -> Research:
        """The newest record of a topic; raises DocumentError with its file and what is wrong."""
        row = next((r for r in self.research_rows(user) if r.topic == topic), None)
        if row is None:
            where = research_id(topic)[:160]
            message = f"{where}: not among the cached research of {user}: expected a stored topic"
            raise DocumentError(message, missing=True, hint=_NEVER_STORED)
        path = self._layout.research(user) / row.file
        found = self._read(path, Research)
        if (found.topic, found.cache_key) != (row.topic, row.cache_key):
            told = f"{path}: topic {found.topic}, cache_key {found.cache_key}: expected {row.topic}, {row.cache_key}"
            raise DocumentError(told, hint=_DAMAGED)
        return found

    def visit(self, user: UserId, visit_id: str) -> Visit:
        """A visit record; raises DocumentError with its file and what is wrong."""
        row = next((r for r in self.visit_rows(user) if r.visit_id == visit_id), None)
        if row is None:
            where = visit_reference(visit_id)[:160]
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
            if research_id(research.topic) == logical_id:
                return str(self._layout.research(user) / research.file)
        for visit in self.visit_rows(user):
            if visit_reference(visit.visit_id) == logical_id:
                return str(self._layout.visits(user) / visit.file)
        return None

    def stored_rows(self, faults: list[str]) -> Iterator[Row]:
        """Rows of every record on the disk, as the index should hold them; what can not be read is named in `faults`."""
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

    def _put(self, user: UserId, record: Research | Visit) -> None:
        text = render_record(record)
        folder = self._layout.research(user) if isinstance(record, Research) else self._layout.visits(user)
        data = encode_text(record.logical_id, text)
        if len(data) > MAX_RECORD_BYTES:
            raise DocumentError(f"{record.logical_id}: {len(data):,} bytes: expected at most {MAX_RECORD_BYTES:,}")
        path = path_inside(self._layout.root, folder / _file(record))
        with file_lock(self._layout.user(user) / ".sources.lock", what=f"the sources of {user}", seconds=self._lock_seconds):
            write_atomic(path, data)
            self._index.put([_row(user, record, text)])

    def _read(self, path: Path, shape: type[Stored]) -> Stored:
        """A record that is named; raises DocumentError that says how it is mended."""
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
