"""Records of batches: one file a content, written before its first turn begins. Knows nothing of how turns run."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pandora_dagster.contracts.batches import Batch
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.files import disk_errors, encode_text, path_inside, write_atomic
from pandora_dagster.stores.locks import file_lock
from pandora_dagster.stores.model_files import find_json_record


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
