"""The folder where files of queries are put: `<root>/inbox/`. Knows which are whole, and where finished ones go; not what they say.

A file is whole when two looks at it, a while apart, find the same size and time. What begins with a dot is somebody's temporary file.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.batches import Batch, RejectedLine
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, make_folder, path_inside, sync, write_atomic
from pandora_dagster.stores.disk.json_files import find_json_record

LARGEST = 256 * 1024 * 1024
"""Bytes of a file of queries."""
_SUFFIX, _REJECTED = ".jsonl", ".rejected.jsonl"


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file in the inbox as one look finds it."""

    name: str
    size: int
    modified_ns: int

    @property
    def fingerprint(self) -> str:
        """What stays the same while nobody writes."""
        return f"{self.size}:{self.modified_ns}"


class Inbox:
    """The inbox of one store."""

    def __init__(self, root: Path) -> None:
        self._root, self.folder = root, root / "inbox"

    def files(self) -> tuple[WaitingFile, ...]:
        """What waits there, by name; links are left alone."""
        if not self.folder.is_dir():
            return ()
        with disk_errors(self.folder, "cannot list"):
            paths = sorted(path for path in self.folder.iterdir() if _is_queries(path))
            looks = [(path.name, path.stat()) for path in paths if path.is_file() and not path.is_symlink()]
        return tuple(WaitingFile(name, look.st_size, look.st_mtime_ns) for name, look in looks)

    def path(self, name: str) -> Path:
        """A file that waits there; raises InputError for any other name."""
        if name not in {waiting.name for waiting in self.files()}:
            raise InputError(f"{self.folder}: {name[:100]!r}: expected the name of a .jsonl file that waits there")
        return path_inside(self._root, self.folder / name)

    def finish(self, name: str, day: str, digest: str, rejected: Sequence[RejectedLine] = ()) -> Path | None:
        """Move a file to `done/<day>/`, where its rejected lines lie before it does: cut off in between, the file still waits, and its
        batch writes them again. One of that name that lies there already keeps its own. Returns where the rejected lines are."""
        source, folder = self.path(name), self.folder / "done" / day
        with disk_errors(folder):
            make_folder(path_inside(self._root, folder))
            target = folder / name
            if target.exists():
                target = folder / f"{name.removesuffix(_SUFFIX)}.{digest[:12]}{_SUFFIX}"
            beside = keep_rejected(target, rejected)
            source.replace(target)
            sync(folder)
            sync(self.folder)
        return beside


def queries_of(path: Path) -> bytes:
    """The bytes of a file of queries; raises InputError for one that can not be read or is larger than any such file."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}: expected queries as JSON lines") from error
    if len(data) > LARGEST:
        raise InputError(f"{path}: over {LARGEST:,} bytes: expected at most that; several files are as good")
    return data


def digest_of(data: bytes) -> str:
    """What two files of the same queries share."""
    return sha256(data).hexdigest()


def keep_rejected(path: Path, rejected: Sequence[RejectedLine]) -> Path | None:
    """Write the rejected lines of the file `path` beside it, each with its reason; None where there are none."""
    if not rejected:
        return None
    beside = path.with_name(path.name.removesuffix(_SUFFIX) + _REJECTED)
    rows: list[Mapping[str, object]] = [line.model_dump() for line in rejected]
    write_atomic(beside, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(errors="replace"))
    return beside


def _is_queries(path: Path) -> bool:
    return path.name.endswith(_SUFFIX) and not path.name.endswith(_REJECTED) and not path.name.startswith(".")


# Records of batches: one file a content, written before its first turn begins. Knows nothing of how turns run.


class BatchFiles:
    """The Batches port over `<root>/batches/<sha256>.json`."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._root, self._folder, self._lock_seconds = root, root / "batches", lock_seconds

    def find(self, digest: str) -> Batch | None:
        """The record of this content; raises DocumentError for a damaged one."""
        found = find_json_record(self._path(digest), Batch, expected="a batch's record")
        if found and found.digest != digest:
            raise DocumentError(f"{self._path(digest)}: it holds the batch {found.digest[:12]}: expected {digest[:12]}")
        return found

    def begin(self, batch: Batch) -> Batch:
        """Write the record unless one stands there; returns what stands there now. Raises StoreError."""
        path = self._path(batch.digest)
        with file_lock(self._folder / ".lock", what="the batches", seconds=self._lock_seconds):
            known = self.find(batch.digest)
            if known is None:
                write_atomic(path, encode_text(path.name, batch.model_dump_json(indent=1) + "\n"))
        return known or batch

    def running(self, batch: Batch) -> AbstractContextManager[None]:
        """Held while the batch's turns run; raises StoreError where another process runs them."""
        path = self._path(batch.digest)
        return file_lock(path.with_name(f".{path.stem}.lock"), what=f"the queries of {batch.file}", seconds=0.5)

    def of_day(self, day: str) -> Sequence[Batch]:
        """Those that began on this day, by file; raises DocumentError for a damaged one."""
        if not self._folder.is_dir():
            return ()
        with disk_errors(self._folder, "cannot list"):
            names = sorted(path.stem for path in self._folder.glob("[0-9a-f]*.json"))
        found = [batch for name in names if (batch := self.find(name)) and batch.day == day]
        return tuple(sorted(found, key=lambda batch: batch.file))

    def _path(self, digest: str) -> Path:
        return path_inside(self._root, self._folder / f"{digest}.json")
