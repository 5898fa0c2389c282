"""Locks between processes, held by the operating system: a process that ends releases its locks."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pandora_dagster.contracts.ports.object_storage import Lease
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.files import disk_errors, path_inside, write_atomic

_POLL_S = 0.01


@contextmanager
def file_lock(path: Path, *, what: str, seconds: float) -> Generator[None]:
    """Hold the lock file at `path`; raises StoreError where another holder keeps it longer than `seconds`."""
    lock = FileLock(path, timeout=seconds, poll_interval=_POLL_S)
    with disk_errors(path, "cannot lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            message = f"{path}: another process works on {what} for more than {seconds:g} s: expected it to be free"
            raise StoreError(message, hint="wait until it is done, or end that process") from error
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class FileLocks:
    """The Locks port over lock files below one store root; a lock's name is the path of its file."""

    root: Path

    @contextmanager
    def lease(self, name: str, *, what: str, wait_s: float) -> Generator[Lease]:
        path = path_inside(self.root, self.root / name)
        with file_lock(path, what=what, seconds=wait_s):
            yield _FileLease(path)


class _FileLease:
    """A held lock. Its fencing number, one more for each lease that asks for it, is stored beside the lock file in `<lock>.number`."""

    def __init__(self, path: Path) -> None:
        self._number_file = path.with_name(f"{path.name}.number")
        self._number = 0

    def number(self) -> int:
        if not self._number:
            with disk_errors(self._number_file, "cannot read"):
                data = self._number_file.read_bytes() if self._number_file.exists() else b"0"
            try:
                self._number = int(data) + 1
            except ValueError as error:
                raise StoreError(f"{self._number_file}: damaged: expected a whole number") from error
            write_atomic(self._number_file, f"{self._number}\n".encode())
        return self._number
