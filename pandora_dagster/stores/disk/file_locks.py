"""Locks between processes, held by the operating system: a killed process holds none. Knows nothing of what they guard."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.files import disk_errors


@contextmanager
def file_lock(path: Path, *, what: str, seconds: float) -> Generator[None]:
    """Hold the lock file at `path`; raises StoreError where another process holds it longer than `seconds`."""
    lock = FileLock(path, timeout=seconds, poll_interval=0.01)
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
