"""The first day that a store has turns of, `<root>/first_day`: where Dagster's day partitions begin when that is before the setting's day.

One line, an ISO date. It is a note and no record: an unreadable one counts as none. An import notes the first of all its turns, those that
were there already included; a night notes the first of those that are due.
"""

from datetime import date
from pathlib import Path

from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import encode_text, read_text, write_atomic

_FILE = "first_day"


class FirstDay:
    """The note of one store."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._root, self._lock_seconds = root, lock_seconds

    def read(self) -> date | None:
        """The day, None where nothing older than the setting was ever stored."""
        try:
            return date.fromisoformat(read_text(self._root / _FILE, limit=100).strip())
        except (FileNotFoundError, DocumentError, ValueError):
            return None

    def extend(self, day: date, *, known: date) -> bool:
        """Note `day` where it is before `known`, the setting's, and before what is noted; True where it was. Raises StoreError."""
        if day >= known or ((noted := self.read()) and day >= noted):
            return False
        with file_lock(self._root / f".{_FILE}.lock", what="the first day of the store", seconds=self._lock_seconds):
            if (noted := self.read()) and day >= noted:
                return False
            write_atomic(self._root / _FILE, encode_text(_FILE, f"{day.isoformat()}\n"))
        return True
