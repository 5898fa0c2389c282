"""Call records as JSON lines beside the turn they belong to (000 section 27). Appends and reads; counts nothing."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number, user_id
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.directory import turn_keys, user_ids
from pandora_dagster.stores.files import disk_errors, path_inside
from pandora_dagster.stores.layout import CALLS, REVISIONS, Layout
from pandora_dagster.text.credentials import redact


class CallFiles:
    """The CallLog port. A record without a turn goes to `users/<user>/calls/<date>.jsonl`."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)

    def append(self, record: CallRecord) -> None:
        """Add one line, credentials taken out of its error and its thinking; raises StoreError. Several processes may append at once."""
        path = path_inside(self.layout.root, self._path(record))
        line = (
            record.model_copy(update={"error": redact(record.error), "thinking": redact(record.thinking)}).model_dump_json().encode()
            + b"\n"
        )
        with disk_errors(path):
            try:
                _append(path, line)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                _append(path, line)

    def path_of(self, key: TurnKey, revision: int) -> Path:
        """The file of one revision of a turn; it need not exist."""
        return path_inside(self.layout.root, self.layout.turn(key, revision) / CALLS)

    def read(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[CallRecord]:
        """All records of a user, file by file as `paths` gives them. `report` is told of each line that is no record."""
        for path in self.paths(user, report=report):
            yield from records_in(path, report)

    def paths(self, user: UserId, *, report: Callable[[str], None]) -> Iterator[Path]:
        """Files of call records: those of turns and their revisions first, those without a turn after them. `report` is told of each
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


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            # A killed process left half a line: it must not swallow this one. Where it was only a slower process, still
            # writing, the line ends twice, and readers pass over empty lines.
            line = b"\n" + line
        if os.write(descriptor, line) != len(line):
            raise StoreError(f"{path}: the disk took only part of a call record: expected room for {len(line)} bytes")
    finally:
        os.close(descriptor)


def records_in(path: Path, report: Callable[[str], None], *, upto: int | None = None) -> Iterator[CallRecord]:
    """The records of a file, or of its first `upto` bytes; `report` is told of each line that is no record."""
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
