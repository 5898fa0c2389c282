"""In-memory storage: objects and locks of one process, without a disk."""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pandora_dagster.contracts.ports.object_storage import Blob, BlobInfo, Lease, Storage
from pandora_dagster.errors import DocumentError, InputError, StoreError


class FakeBlobs:
    """The Blobs port over a dictionary; the version of an object is a counter of all writes."""

    def __init__(self) -> None:
        self._stored: dict[str, tuple[Blob, datetime]] = {}
        self._writes = 0
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes, *, create_only: bool = False, if_match: str | None = None, durable: bool = True) -> str | None:
        _check(key)
        with self._lock:
            known = self._stored.get(key)
            if (create_only and known) or (if_match is not None and (not known or known[0].version != if_match)):
                return None
            return self._write(key, data)

    def get(self, key: str) -> Blob:
        _check(key)
        if key not in self._stored:
            raise DocumentError(f"{self.locate(key)}: missing: expected an object", missing=True)
        return self._stored[key][0]

    def exists(self, key: str) -> bool:
        _check(key)
        return key in self._stored

    def list(self, prefix: str) -> Iterator[BlobInfo]:
        for key, (blob, at) in sorted(self._stored.items()):
            if key.startswith(prefix):
                yield BlobInfo(key, len(blob.data), at)

    def delete(self, key: str) -> bool:
        _check(key)
        return self._stored.pop(key, None) is not None

    def locate(self, key: str) -> str:
        return f"memory:/{key}"

    def _write(self, key: str, data: bytes) -> str:
        self._writes += 1
        self._stored[key] = Blob(data, str(self._writes)), datetime.now(UTC)
        return str(self._writes)


class _FakeLease:
    def __init__(self, number: int) -> None:
        self._number = number

    def number(self) -> int:
        return self._number


class FakeLocks:
    """The Locks port over locks of one process."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}
        self._leases = 0

    @contextmanager
    def lease(self, name: str, *, what: str, wait_s: float) -> Generator[Lease]:
        lock = self._locks.setdefault(name, threading.Lock())
        if not lock.acquire(timeout=wait_s):
            raise StoreError(f"memory:/{name}: another process works on {what} for more than {wait_s:g} s: expected it to be free")
        try:
            self._leases += 1
            yield _FakeLease(self._leases)
        finally:
            lock.release()


def fake_storage() -> Storage:
    """Empty storage in memory; every record store of small JSON files works over it."""
    return Storage(FakeBlobs(), FakeLocks())


def _check(key: str) -> None:
    if not all(part and not part.startswith(".") for part in key.split("/")) or "\x00" in key:
        raise InputError(f"key {key!r}: expected a relative path, no part of it empty or starting with a dot")
