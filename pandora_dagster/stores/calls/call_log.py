"""Call records as JSON lines beside the turn they belong to (000 section 27). Appends and reads; counts nothing."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number, user_id
from pandora_dagster.contracts.model_calls import CallRecord, TurnUsage
from pandora_dagster.contracts.ports.record_storage import CallTotals, SumBy
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import DamagedIndexError, StoreError
from pandora_dagster.stores.calls.call_index import DuckCallIndex
from pandora_dagster.stores.disk.files import disk_errors, path_inside
from pandora_dagster.stores.disk.layout import CALLS, REVISIONS, Layout
from pandora_dagster.stores.disk.turn_directory import turn_keys, user_ids


class CallFiles:
    """The CallLog port. A record without a turn goes to `users/<user>/calls/<date>.jsonl`."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)

    def append(self, record: CallRecord) -> tuple[Path, int, int]:
        """Add one line, credentials removed from its error and its thinking; raises StoreError. Several processes may append at once.

        Returns the file, and its size before and after.
        """
        path = path_inside(self.layout.root, self._path(record))
        line = (
            record.model_copy(update={"error": redact(record.error), "thinking": redact(record.thinking)}).model_dump_json().encode()
            + b"\n"
        )
        with disk_errors(path):
            try:
                return path, *_append(path, line)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                return path, *_append(path, line)

    def path_of(self, key: TurnKey, revision: int) -> Path:
        """The file of one revision of a turn; it need not exist."""
        return path_inside(self.layout.root, self.layout.turn(key, revision) / CALLS)

    def read(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[CallRecord]:
        """All records of a user, file by file as `paths` gives them. `report` receives each line that is no record."""
        for path in self.paths(user, report=report):
            yield from records_in(path, report)

    def paths(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[Path]:
        """Files of call records: those of turns and their revisions first, those without a turn after them. `report` receives each
        link out of the store, which is not followed."""
        for key in turn_keys(self.layout, user):
            yield from self.paths_of(key, report=report)
        yield from self.days(user, report=report)

    def paths_of(self, key: TurnKey, *, report: Callable[[str], None]) -> Iterator[Path]:
        """The files of a turn and of its revisions, oldest first."""
        folder = self.layout.turn(key)
        found = (folder / CALLS, *sorted(folder.glob(f"{REVISIONS}/*/{CALLS}"), key=_revision))
        yield from self._inside((path for path in found if path.is_file()), report)

    def days(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[Path]:
        """The files of calls that belong to no turn, oldest first."""
        yield from self._inside(sorted((self.layout.user(user) / "calls").glob("*.jsonl")), report)

    def users(self) -> tuple[UserId, ...]:
        """Users that have a folder."""
        return user_ids(self.layout)

    def _inside(self, paths: Iterable[Path], report: Callable[[str], None]) -> Iterator[Path]:
        for path in paths:
            try:
                yield path_inside(self.layout.root, path)
            except StoreError as error:
                report(error.with_hint)

    def _path(self, record: CallRecord) -> Path:
        user = user_id(record.user_id)
        if record.turn_id:
            folder = self.layout.turn(TurnKey(user, turn_number(record.turn_id)), record.revision)
            if folder.is_dir():
                return folder / CALLS
        date = record.timestamp[:10]
        return self.layout.user(user) / "calls" / f"{date if _is_date(date) else 'undated'}.jsonl"


def _append(path: Path, line: bytes) -> tuple[int, int]:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            # A killed process left half a line: it must not swallow this one. Where it was only a slower process, still
            # writing, the line ends twice, and readers pass over empty lines.
            line = b"\n" + line
        if os.write(descriptor, line) != len(line):
            raise StoreError(f"{path}: the disk took only part of a call record: expected room for {len(line)} bytes")
        return size, size + len(line)
    finally:
        os.close(descriptor)


def records_in(path: Path, report: Callable[[str], None], *, upto: int | None = None) -> Iterator[CallRecord]:
    """The records of a file, or of its first `upto` bytes; `report` receives each line that is no record."""
    if not path.is_file():
        return
    at = 0
    with disk_errors(path, "cannot read"), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            at += len(line)
            if upto is not None and at > upto:
                return
            if line == b"\n":
                continue
            try:
                yield CallRecord.model_validate_json(line)
            except ValidationError:
                what = "no call record" if line.endswith(b"\n") else "half a call record, left by a process that was killed"
                report(f"{path}:{number}: {what}: expected one JSON object")


def _is_date(text: str) -> bool:
    return len(text) == 10 and text.replace("-", "").isdigit() and text.isascii()


def _revision(path: Path) -> tuple[int, str]:
    name = path.parent.name
    return (int(name) if name.isascii() and name.isdigit() else 0, name)


# Call records and their index as one CallLog: written as lines at once, indexed in DuckDB when a turn is completed.


_MOST_FILES = 16


@dataclass(frozen=True, slots=True)
class IndexedCallLog:
    """The CallLog port. The lines are the truth; `index_turns` may be called any number of times."""

    files: CallFiles
    index: DuckCallIndex
    report: Callable[[str], None]
    """Receives one sentence for each error that kept records out of the index."""
    listeners: tuple[Callable[[CallRecord], None], ...] = ()
    """Hear of every record; they never raise."""
    settled: tuple[Callable[[Sequence[CallRecord]], None], ...] = ()
    """Receive all records of a turn when it is completed; they never raise."""
    newest_files: OrderedDict[Path, tuple[int, tuple[CallRecord, ...]]] = field(
        default_factory=OrderedDict[Path, tuple[int, tuple[CallRecord, ...]]]
    )
    """The records of the files that were used last, and the size of the file with them: it is not read again while it has this size."""
    owed: set[Path] = field(default_factory=set[Path])
    """Files that could not be indexed; they are retried with the next completed turn."""

    def append(self, record: CallRecord) -> None:
        """Write one line, and let the listeners hear of it; raises StoreError, after them."""
        try:
            path, before, after = self.files.append(record)
            known = self.newest_files.get(path, (0, ()))
            if known[0] == before:
                self._remember(path, after, (*known[1], record))
        finally:
            for hear in self.listeners:
                hear(record)

    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        """What a revision of a turn took so far, and how much of it before `phase`; nothing where its records cannot be read."""
        path = self.files.path_of(key, revision)
        try:
            size = path.stat().st_size if path.is_file() else 0
            if self.newest_files.get(path, (0, ()))[0] != size:
                self._remember(path, size, tuple(records_in(path, lambda fault: None, upto=size)))
            records = self.newest_files[path][1] if size else ()
        except (StoreError, OSError):
            return TurnUsage()
        tokens = sum(record.used_tokens for record in records)
        return TurnUsage(
            tokens,
            sum(record.cost for record in records),
            sum(record.used_tokens for record in records if record.phase != phase),
            sum(record.latency_ms for record in records),
        )

    def _remember(self, path: Path, size: int, records: tuple[CallRecord, ...]) -> None:
        self.newest_files[path] = (size, records)
        self.newest_files.move_to_end(path)
        if len(self.newest_files) > _MOST_FILES:
            self.newest_files.popitem(last=False)

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        """Index the records of revisions of turns, in one opening of the index. Errors are reported, never raised: the turns are stored,
        records that are not indexed come with the next turn, and the index can be made again. False where another try may do."""
        paths = [self.files.path_of(key, revision) for key, revision in turns]
        self.owed.update(paths)
        try:
            for path in paths if self.settled else ():
                records = tuple(records_in(path, self.report))
                for hear in self.settled:
                    hear(records)
            self.index.index_files(sorted(self.owed), report=self.report)
            self.owed.clear()
        except StoreError as error:
            named = ", ".join(str(key) for key, _ in turns[:3]) + (" ..." if len(turns) > 3 else "")
            self.report(f"{named}: its calls are not in the index: {error.with_hint}")
            return isinstance(error, DamagedIndexError)
        return True

    def recorded(self, key: TurnKey, revision: int) -> Iterator[CallRecord]:
        """The calls of one revision of a turn as its lines have them, without the index; lines that are no record are left out.

        Raises StoreError."""
        return records_in(self.files.path_of(key, revision), lambda fault: None)

    def totals(self, key: TurnKey, revision: int) -> CallTotals:
        """What one revision of a turn took, its newest calls included; raises StoreError."""
        self.index.index_files([self.files.path_of(key, revision)], report=self.report)
        return self.index.totals(key, revision=revision)

    def of_turn(self, key: TurnKey, revision: int) -> tuple[CallRecord, ...]:
        """The calls of one revision of a turn, oldest first; raises StoreError."""
        self.index.index_files([self.files.path_of(key, revision)], report=self.report)
        return self.index.records(key, revision=revision)

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int) -> Iterator[CallRecord]:
        """The newest calls of a recipe, by its name (of one version, on one layer), that are in the index.

        Newest first, page by page. Raises StoreError."""
        return self.index.newest(recipe, version=version, layer=layer, limit=limit)

    def between(self, begin: str, end: str) -> Iterator[CallRecord]:
        """All calls of a time, those without a turn too, oldest first, page by page. Raises StoreError."""
        self.index.index_files(
            [path for one in self.files.users() for path in self.files.days(one, report=self.report)], report=self.report
        )
        return self.index.between(begin, end)

    def sums(self, by: SumBy, *, user: UserId | None, since: str) -> tuple[tuple[str, CallTotals], ...]:
        """Sums over the calls of all completed turns, and of those without a turn; raises StoreError."""
        users = [user] if user else self.files.users()
        self.index.index_files([path for one in users for path in self.files.days(one, report=self.report)], report=self.report)
        return self.index.sums(by, user=user or "", since=since)
