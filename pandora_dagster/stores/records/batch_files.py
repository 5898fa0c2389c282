"""Batches: the inbox for files of queries, `<root>/inbox/`, and the records of batches.

A file is complete when its size and modification time are the same in two listings. A name that begins with a dot is a temporary file.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pandora_dagster.contracts.batches import Batch, RejectedLine, WaitingFile
from pandora_dagster.errors import InputError
from pandora_dagster.stores.disk.files import disk_errors, make_folder, path_inside, sync, write_atomic
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot, storage_of

LARGEST = 256 * 1024 * 1024
"""Bytes of a file of queries."""
_SUFFIX, _REJECTED = ".jsonl", ".rejected.jsonl"


class Inbox:
    """The QueryFiles port over the inbox of one store."""

    def __init__(self, root: Path) -> None:
        self._root, self.folder = root, root / "inbox"

    def files(self) -> tuple[WaitingFile, ...]:
        """The waiting files, by name; links are skipped."""
        if not self.folder.is_dir():
            return ()
        with disk_errors(self.folder, "cannot list"):
            paths = sorted(path for path in self.folder.iterdir() if _is_queries(path))
            found = [(path.name, path.stat()) for path in paths if path.is_file() and not path.is_symlink()]
        return tuple(WaitingFile(name, about.st_size, about.st_mtime_ns) for name, about in found)

    def path(self, name: str) -> Path:
        """A waiting file; raises InputError for any other name."""
        if name not in {waiting.name for waiting in self.files()}:
            raise InputError(f"{self.folder}: {name[:100]!r}: expected the name of a .jsonl file that waits there")
        return path_inside(self._root, self.folder / name)

    def finish(self, name: str, day: str, digest: str, rejected: Sequence[RejectedLine] = ()) -> Path | None:
        """Move a file to `done/<day>/`, after its rejected lines are written there: if the process dies in between, the file still waits
        and its batch writes them again. A file of that name that is there keeps its name. Returns the path of the rejected lines."""
        source, folder = self.path(name), self.folder / "done" / day
        with disk_errors(folder):
            make_folder(path_inside(self._root, folder))
            target = folder / name
            if target.exists():
                target = folder / f"{name.removesuffix(_SUFFIX)}.{digest[:12]}{_SUFFIX}"
            beside = self.keep_rejected(target, rejected)
            source.replace(target)
            sync(folder)
            sync(self.folder)
        return beside

    def read(self, path: Path) -> bytes:
        """The bytes of a file of queries; raises InputError for one that cannot be read or is larger than `LARGEST`."""
        try:
            with path.open("rb") as file:
                data = file.read(LARGEST + 1)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}: expected queries as JSON lines") from error
        if len(data) > LARGEST:
            raise InputError(f"{path}: over {LARGEST:,} bytes: expected at most that; split the file")
        return data

    def keep_rejected(self, path: Path, rejected: Sequence[RejectedLine]) -> Path | None:
        """Write the rejected lines of the file `path` beside it, each with its reason; None where there are none."""
        if not rejected:
            return None
        beside = path.with_name(path.name.removesuffix(_SUFFIX) + _REJECTED)
        rows: list[Mapping[str, object]] = [line.model_dump() for line in rejected]
        write_atomic(beside, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(errors="replace"))
        return beside


def _is_queries(path: Path) -> bool:
    return path.name.endswith(_SUFFIX) and not path.name.endswith(_REJECTED) and not path.name.startswith(".")


class BatchFiles:
    """The Batches port over `<root>/batches/<sha256>.json`: one record per content, written before its first turn begins."""

    def __init__(self, storage: StorageRoot, *, lock_seconds: float = 10.0) -> None:
        pattern, names = "batches/{digest}.json", {"digest": "[0-9a-f][^/]*"}
        self._files = RecordFiles(
            storage, pattern, Batch, expected="a batch's record", names=names, lock="batches/.lock", lock_seconds=lock_seconds
        )
        self._runs = storage_of(storage).locks

    def find(self, digest: str) -> Batch | None:
        """The record of this content; raises DocumentError for a damaged one."""
        found = self._files.find(digest)
        if found and found.digest != digest:
            raise self._files.damaged(f"it holds the batch {found.digest[:12]}: expected {digest[:12]}", digest)
        return found

    def begin(self, batch: Batch) -> Batch:
        """Write the record unless there is one; returns the stored one. Raises StoreError, DocumentError."""
        with self._files.lock(batch.digest, what="the batches"):
            return self.find(batch.digest) or self._files.put(batch, batch.digest)

    def running(self, batch: Batch) -> AbstractContextManager[object]:
        """A context in which the batch's turns run; raises StoreError where another process runs them."""
        return self._runs.lease(f"batches/.{batch.digest}.lock", what=f"the queries of {batch.file}", wait_s=0.5)

    def of_day(self, day: str) -> Sequence[Batch]:
        """Those that began on this day, by file; raises DocumentError for a damaged one."""
        found = [batch for (digest,) in self._files.list_keys() if (batch := self.find(digest)) and batch.day == day]
        return tuple(sorted(found, key=lambda batch: batch.file))
