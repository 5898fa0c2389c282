"""The CallLog port: call records as JSON lines beside their turn, and in an index (specification 000, section 27)."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number, user_id
from pandora_dagster.contracts.model_calls import CallRecord, TurnUsage
from pandora_dagster.contracts.ports.record_storage import CallTotals, SumBy
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import DamagedIndexError, StoreError
from pandora_dagster.stores.calls.call_index import DuckCallIndex
from pandora_dagster.stores.disk.files import disk_errors, path_inside, write_atomic
from pandora_dagster.stores.disk.layout import CALLS, REVISIONS, STARTED_CALLS, Layout
from pandora_dagster.stores.disk.turn_directory import turn_keys, user_ids


class CallFiles:
    """The files of call records. A record without a turn goes to `users/<user>/calls/<date>.jsonl`."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)

    def append(self, record: CallRecord) -> tuple[Path, int, int]:
        """Append a record, without credentials in its error; several processes may append at the same time.

        Returns the file with its size before and after. Raises StoreError.
        """
        path = path_inside(self.layout.root, self._record_path(record))
        redacted = record.model_copy(update={"error": redact(record.error)})
        line = redacted.model_dump_json().encode() + b"\n"
        with disk_errors(path):
            try:
                return path, *_append(path, line)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                return path, *_append(path, line)

    def begin(self, record: CallRecord) -> None:
        """Store a call that begins, in a file of its own until `end`; raises StoreError."""
        write_atomic(self._start_path(record), record.model_dump_json().encode() + b"\n", durable=False)

    def end(self, record: CallRecord) -> None:
        """Delete what `begin` stored; raises StoreError."""
        path = self._start_path(record)
        with disk_errors(path, "cannot delete"):
            path.unlink(missing_ok=True)

    def unfinished(self, users: Iterable[UserId], *, report: Callable[[str], None]) -> Iterator[CallRecord]:
        """Calls that began and have no end: they run now, or their process was killed. Raises StoreError."""
        for user in users:
            for path in self._paths_inside((self.layout.user(user) / STARTED_CALLS).glob("*.jsonl"), report):
                yield from records_in(path, report)

    def path_of(self, key: TurnKey, revision: int) -> Path:
        """The file of one revision of a turn; it need not exist."""
        return path_inside(self.layout.root, self.layout.turn(key, revision) / CALLS)

    def read(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[CallRecord]:
        """All records of a user, file by file as `paths` gives them. `report` receives each line that is no record."""
        for path in self.paths(user, report=report):
            yield from records_in(path, report)

    def paths(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[Path]:
        """Files of call records, those of turns and revisions first, then those of calls without a turn.

        `report` receives each link that leads out of the store, which is not followed.
        """
        for key in turn_keys(self.layout, user):
            yield from self.paths_of(key, report=report)
        yield from self.day_paths(user, report=report)

    def paths_of(self, key: TurnKey, *, report: Callable[[str], None]) -> Iterator[Path]:
        """The files of a turn and of its revisions, oldest first."""
        folder = self.layout.turn(key)
        paths = (folder / CALLS, *sorted(folder.glob(f"{REVISIONS}/*/{CALLS}"), key=_revision_order))
        yield from self._paths_inside((path for path in paths if path.is_file()), report)

    def day_paths(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[Path]:
        """The files of calls without a turn, one for each day, oldest first."""
        yield from self._paths_inside(sorted((self.layout.user(user) / "calls").glob("*.jsonl")), report)

    def users(self) -> tuple[UserId, ...]:
        """Users that have a folder."""
        return user_ids(self.layout)

    def _paths_inside(self, paths: Iterable[Path], report: Callable[[str], None]) -> Iterator[Path]:
        """The paths without links that lead out of the store, which are reported."""
        for path in paths:
            try:
                yield path_inside(self.layout.root, path)
            except StoreError as error:
                report(error.with_hint)

    def _start_path(self, record: CallRecord) -> Path:
        folder = self.layout.user(record.user_id) / STARTED_CALLS
        return path_inside(self.layout.root, folder / f"{sha256(record.call_id.encode()).hexdigest()[:32]}.jsonl")

    def _record_path(self, record: CallRecord) -> Path:
        """The file that a record belongs to."""
        user = user_id(record.user_id)
        if record.turn_id:
            folder = self.layout.turn(TurnKey(user, turn_number(record.turn_id)), record.revision)
            if folder.is_dir():
                return folder / CALLS
        date = record.timestamp[:10]
        return self.layout.user(user) / "calls" / f"{date if _is_date(date) else 'undated'}.jsonl"


def _append(path: Path, line: bytes) -> tuple[int, int]:
    """Append a line in one write; returns the size before and after. Raises OSError, StoreError."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            # A killed process left half a line, which must not be joined with this one. Where another process is still writing, an
            # empty line is the result, which readers skip.
            line = b"\n" + line
        if os.write(descriptor, line) != len(line):
            raise StoreError(f"{path}: the disk took only part of a call record: expected space for {len(line)} bytes")
        return size, size + len(line)
    finally:
        os.close(descriptor)


def records_in(path: Path, report: Callable[[str], None], *, max_bytes: int | None = None) -> Iterator[CallRecord]:
    """The records of a file, or of its first `max_bytes`; `report` receives each line that is no record."""
    if not path.is_file():
        return
    offset = 0
    with disk_errors(path, "cannot read"), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            offset += len(line)
            if max_bytes is not None and offset > max_bytes:
                return
            if line == b"\n":
                continue
            try:
                yield CallRecord.model_validate_json(line)
            except ValidationError:
                description = "no call record" if line.endswith(b"\n") else "half a call record, left by a process that was killed"
                report(f"{path}:{number}: {description}: expected one JSON object")


def _is_date(text: str) -> bool:
    return len(text) == 10 and text.replace("-", "").isdigit() and text.isascii()


def _revision_order(path: Path) -> tuple[int, str]:
    name = path.parent.name
    return (int(name) if name.isascii() and name.isdigit() else 0, name)


# Files and index together: a record is written as a line at once, and indexed when its turn is completed.

_MAX_CACHED_FILES = 16


@dataclass(frozen=True, slots=True)
class IndexedCallLog:
    """The CallLog port. The lines are the source of truth; `index_turns` may be called any number of times."""

    files: CallFiles
    index: DuckCallIndex
    report: Callable[[str], None]
    """Receives one sentence for each error that kept records out of the index."""
    listeners: tuple[Callable[[CallRecord], None], ...] = ()
    """Receive every record; they never raise."""
    turn_listeners: tuple[Callable[[Sequence[CallRecord]], None], ...] = ()
    """Receive all records of a turn when it is completed; they never raise."""
    recent_files: OrderedDict[Path, tuple[int, tuple[CallRecord, ...]]] = field(
        default_factory=OrderedDict[Path, tuple[int, tuple[CallRecord, ...]]]
    )
    """The files that were used last -> size and records: a file is not read again while it has this size."""
    unindexed_files: set[Path] = field(default_factory=set[Path])
    """Files that could not be indexed; they are retried with the next completed turn."""

    def begin(self, record: CallRecord) -> None:
        """Store the record of a call that begins; `append` replaces it. Raises StoreError."""
        self.files.begin(record)

    def unfinished(self, user: UserId | None = None) -> tuple[CallRecord, ...]:
        """Calls that began and have no end, oldest first; raises StoreError."""
        users = [user] if user else self.files.users()
        return tuple(sorted(self.files.unfinished(users, report=self.report), key=lambda record: (record.timestamp, record.call_id)))

    def append(self, record: CallRecord) -> None:
        """Write a record and pass it to the listeners, also where writing fails; raises StoreError."""
        try:
            path, before, after = self.files.append(record)
            self.files.end(record)
            cached_size, records = self.recent_files.get(path, (0, ()))
            if cached_size == before:
                self._remember(path, after, (*records, record))
        finally:
            for listener in self.listeners:
                listener(record)

    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        """Tokens, cost and time of a revision of a turn so far, and the tokens of other phases; zeros where its records cannot be read."""
        path = self.files.path_of(key, revision)
        try:
            size = path.stat().st_size if path.is_file() else 0
            if self.recent_files.get(path, (0, ()))[0] != size:
                self._remember(path, size, tuple(records_in(path, lambda fault: None, max_bytes=size)))
            records = self.recent_files[path][1] if size else ()
        except (StoreError, OSError):
            return TurnUsage()
        tokens = sum(record.used_tokens for record in records)
        return TurnUsage(
            tokens,
            sum(record.cost for record in records),
            sum(record.used_tokens for record in records if record.phase != phase),
            sum(record.latency_ms for record in records),
            len(records),
        )

    def _remember(self, path: Path, size: int, records: tuple[CallRecord, ...]) -> None:
        self.recent_files[path] = (size, records)
        self.recent_files.move_to_end(path)
        if len(self.recent_files) > _MAX_CACHED_FILES:
            self.recent_files.popitem(last=False)

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        """Index the records of revisions of turns, in one transaction; False where a retry may succeed.

        Errors are reported, never raised: the turns are stored, what is not indexed now is indexed with the next turn, and the index can be
        rebuilt.
        """
        paths = [self.files.path_of(key, revision) for key, revision in turns]
        self.unindexed_files.update(paths)
        try:
            for path in paths if self.turn_listeners else ():
                records = tuple(records_in(path, self.report))
                for listener in self.turn_listeners:
                    listener(records)
            self.index.index_files(sorted(self.unindexed_files), report=self.report)
            self.unindexed_files.clear()
        except StoreError as error:
            names = ", ".join(str(key) for key, _ in turns[:3]) + (" ..." if len(turns) > 3 else "")
            self.report(f"{names}: its calls are not in the index: {error.with_hint}")
            return isinstance(error, DamagedIndexError)
        return True

    def recorded(self, key: TurnKey, revision: int) -> Iterator[CallRecord]:
        """The calls of one revision of a turn, read from its lines; lines that are no record are skipped. Raises StoreError."""
        return records_in(self.files.path_of(key, revision), lambda fault: None)

    def totals(self, key: TurnKey, revision: int) -> CallTotals:
        """The sums over one revision of a turn, its newest calls included; raises StoreError."""
        self.index.index_files([self.files.path_of(key, revision)], report=self.report)
        return self.index.totals(key, revision=revision)

    def of_turn(self, key: TurnKey, revision: int) -> tuple[CallRecord, ...]:
        """The calls of one revision of a turn, oldest first; raises StoreError."""
        self.index.index_files([self.files.path_of(key, revision)], report=self.report)
        return self.index.records(key, revision=revision)

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int) -> Iterator[CallRecord]:
        """At most `limit` indexed calls of a recipe, newest first, of one version or layer where given; raises StoreError."""
        return self.index.newest(recipe, version=version, layer=layer, limit=limit)

    def between(self, begin: str, end: str) -> Iterator[CallRecord]:
        """All calls that began from `begin` to before `end`, also those without a turn, oldest first; raises StoreError."""
        self._index_day_files(self.files.users())
        return self.index.between(begin, end)

    def sums(self, by: SumBy, *, user: UserId | None, since: str) -> tuple[tuple[str, CallTotals], ...]:
        """Sums over the calls of completed turns and the calls without a turn; raises StoreError."""
        self._index_day_files([user] if user else self.files.users())
        return self.index.sums(by, user=user or "", since=since)

    def _index_day_files(self, users: Iterable[UserId]) -> None:
        """Index the new calls without a turn."""
        paths = [path for user in users for path in self.files.day_paths(user, report=self.report)]
        self.index.index_files(paths, report=self.report)
