"""Batches: the inbox for files of queries, `<root>/inbox/`, and the records of batches, `<root>/batches/`.

A file in the inbox is complete when its size and modification time are the same in two listings. Temporary files have names that begin
with a dot.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pandora_dagster.contracts.batches import Batch, RejectedLine, WaitingFile
from pandora_dagster.errors import InputError
from pandora_dagster.stores.disk.files import disk_errors, make_folder, path_inside, sync, write_atomic
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot, storage_of

MAX_QUERY_FILE_BYTES = 256 * 1024 * 1024
"""A larger file of queries is refused."""
_RUN_LOCK_WAIT_S = 0.5
_SUFFIX, _REJECTED_SUFFIX = ".jsonl", ".rejected.jsonl"


class Inbox:
    """The QueryFiles port over the inbox of one store."""

    def __init__(self, root: Path) -> None:
        self._root, self.folder = root, root / "inbox"

    def files(self) -> tuple[WaitingFile, ...]:
        """The waiting files, by name; links are skipped."""
        if not self.folder.is_dir():
            return ()
        with disk_errors(self.folder, "cannot list"):
            paths = sorted(path for path in self.folder.iterdir() if _is_query_file(path))
            statuses = [(path.name, path.stat()) for path in paths if path.is_file() and not path.is_symlink()]
        return tuple(WaitingFile(name, status.st_size, status.st_mtime_ns) for name, status in statuses)

    def path(self, name: str) -> Path:
        """A waiting file; raises InputError for any other name."""
        if name not in {waiting.name for waiting in self.files()}:
            raise InputError(f"{self.folder}: {name[:100]!r}: expected the name of a .jsonl file in this folder")
        return path_inside(self._root, self.folder / name)

    def finish(self, name: str, day: str, digest: str, rejected: Sequence[RejectedLine] = ()) -> Path | None:
        """Move a file to `done/<day>/` and return the path of its rejected lines, which are written there first.

        If the process ends in between, the file is still in the inbox and its batch writes the lines again. Where a file of that name was
        moved there before, the digest is added to the new name.
        """
        source, folder = self.path(name), self.folder / "done" / day
        with disk_errors(folder):
            make_folder(path_inside(self._root, folder))
            target = folder / name
            if target.exists():
                target = folder / f"{name.removesuffix(_SUFFIX)}.{digest[:12]}{_SUFFIX}"
            rejected_path = self.keep_rejected(target, rejected)
            source.replace(target)
            sync(folder)
            sync(self.folder)
        return rejected_path

    def read(self, path: Path) -> bytes:
        """The bytes of a file of queries; raises InputError for one that cannot be read or is larger than `MAX_QUERY_FILE_BYTES`."""
        try:
            with path.open("rb") as file:
                data = file.read(MAX_QUERY_FILE_BYTES + 1)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}: expected queries as JSON lines") from error
        if len(data) > MAX_QUERY_FILE_BYTES:
            raise InputError(f"{path}: over {MAX_QUERY_FILE_BYTES:,} bytes: expected at most that; split the file")
        return data

    def keep_rejected(self, path: Path, rejected: Sequence[RejectedLine]) -> Path | None:
        """Write the rejected lines of the file `path` beside it, each with its reason; None where there are none."""
        if not rejected:
            return None
        rejected_path = path.with_name(path.name.removesuffix(_SUFFIX) + _REJECTED_SUFFIX)
        rows: list[Mapping[str, object]] = [line.model_dump() for line in rejected]
        write_atomic(rejected_path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(errors="replace"))
        return rejected_path


def _is_query_file(path: Path) -> bool:
    """Whether the name of a file is that of queries, not of rejected lines or a temporary file."""
    return path.name.endswith(_SUFFIX) and not path.name.endswith(_REJECTED_SUFFIX) and not path.name.startswith(".")


class BatchFiles:
    """The Batches port over `<root>/batches/<sha256>.json`: one record for each content of a file, written before its first turn starts."""

    def __init__(self, storage: StorageRoot, *, lock_seconds: float = 10.0) -> None:
        pattern, names = "batches/{digest}.json", {"digest": "[0-9a-f][^/]*"}
        self._files = RecordFiles(
            storage, pattern, Batch, expected="a batch's record", names=names, lock="batches/.lock", lock_seconds=lock_seconds
        )
        self._locks = storage_of(storage).locks

    def find(self, digest: str) -> Batch | None:
        """The record of the content with this digest, None where there is none; raises DocumentError for a damaged one."""
        batch = self._files.find(digest)
        if batch and batch.digest != digest:
            raise self._files.damaged(f"it holds the batch {batch.digest[:12]}: expected {digest[:12]}", digest)
        return batch

    def begin(self, batch: Batch) -> Batch:
        """Write the record unless there is one; returns the stored one. Raises StoreError, DocumentError."""
        with self._files.lock(batch.digest, what="the batches"):
            return self.find(batch.digest) or self._files.put(batch, batch.digest)

    def running(self, batch: Batch) -> AbstractContextManager[object]:
        """Hold the lock under which the batch's turns run; raises StoreError where another process runs them."""
        return self._locks.lease(f"batches/.{batch.digest}.lock", what=f"the queries of {batch.file}", wait_s=_RUN_LOCK_WAIT_S)

    def of_day(self, day: str) -> Sequence[Batch]:
        """The batches that began on this day, by file; raises DocumentError for a damaged one."""
        batches = [batch for (digest,) in self._files.list_keys() if (batch := self.find(digest)) and batch.day == day]
        return tuple(sorted(batches, key=lambda batch: batch.file))
