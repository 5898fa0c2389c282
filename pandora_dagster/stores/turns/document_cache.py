"""What this process read of the store, by path: read again once the file's stat has changed. Bounded by the characters that it holds."""

import time
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
Stamp = tuple[int, int, int, int]
_SETTLED_NS = 100_000_000
"""A file that changed less than this ago is not remembered: the next change could leave the same times (a tick is some milliseconds)."""


def stamp_of(path: Path) -> Stamp | None:
    """Inode, size and times of a file; None where it cannot be read."""
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


class DocumentCache(Generic[T]):
    """Values read from files. For several threads."""

    def __init__(self, most_characters: int = 8_000_000) -> None:
        self._most = most_characters
        self._held = 0
        self._entries: OrderedDict[Path, tuple[Stamp, T, int]] = OrderedDict()
        self._lock = Lock()

    def find(self, path: Path) -> T | None:
        """The value, where the file is as it was when it was read."""
        with self._lock:
            entry = self._entries.get(path)
            if entry is None:
                return None
            if entry[0] != stamp_of(path):
                self._remove(path)
                return None
            self._entries.move_to_end(path)
            return entry[1]

    def store(self, path: Path, stamp: Stamp | None, value: T, size: int) -> None:
        """Remember a value of `size` characters. `stamp`: of the file before it was read."""
        if stamp is None or size > self._most or time.time_ns() - max(stamp[2:]) < _SETTLED_NS:
            return
        with self._lock:
            if path in self._entries:
                self._remove(path)
            self._entries[path] = (stamp, value, size)
            self._held += size
            while self._held > self._most:
                self._remove(next(iter(self._entries)))

    def _remove(self, path: Path) -> None:
        self._held -= self._entries.pop(path)[2]
