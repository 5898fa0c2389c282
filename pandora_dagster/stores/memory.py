"""The MemoryStore port over preferences.md and facts.md. Knows files and locks; `memory_page` knows what stands in them."""

import json
from dataclasses import replace
from pathlib import Path

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports import MemoryEntry
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.files import encoded, inside, read_text, write_whole
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import held
from pandora_dagster.stores.memory_page import entries, with_entries

_PAGES = {"preference": "preferences.md", "fact": "facts.md"}


class MemoryFiles:
    """What the assistant remembers of each user."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def entries(self, user: UserId) -> tuple[MemoryEntry, ...]:
        """Preferences, then facts, in the order of their pages; raises DocumentError for a page that cannot be read."""
        return tuple(entry for kind in _PAGES for entry in self._page(user, kind)[1])

    def put(self, user: UserId, entry: MemoryEntry) -> None:
        """Add an entry or replace the one with its key, in its place; what people wrote around the records stays.

        Raises DocumentError where the page is damaged (it is left as it is) or the value is nothing that YAML can keep.
        """
        if entry.kind not in _PAGES:
            raise DocumentError(f"memory entry {entry.key[:60]!r}: kind {entry.kind!r}: expected preference or fact")
        folder = inside(self._layout.root, self._layout.user(user))
        with held(folder / ".memory.lock", what=f"the memory of {user}", seconds=self._lock_seconds):
            page, known = self._page(user, entry.kind)
            path = self._path(user, entry.kind)
            records = {e.key: e for e in known} | {entry.key: _plain(entry, str(path))}
            text = with_entries(page, records.values(), kind=entry.kind, where=str(path))
            # Read back before it is written: a value that would come back otherwise must not replace a sound page.
            if entries(text, kind=entry.kind, where=str(path)) != tuple(records.values()):
                raise DocumentError(f"{path}: {entry.key}: it would not read back as it is: expected plain text, numbers and lists")
            write_whole(path, encoded(str(path), text))

    def _page(self, user: UserId, kind: str) -> tuple[str, tuple[MemoryEntry, ...]]:
        path = self._path(user, kind)
        try:
            page = read_text(path, may_be_empty=True)
        except DocumentError as error:
            if error.missing:
                return "", ()
            raise
        return page, entries(page, kind=kind, where=str(path))

    def _path(self, user: UserId, kind: str) -> Path:
        return inside(self._layout.root, self._layout.user(user) / _PAGES[kind])


def _plain(entry: MemoryEntry, where: str) -> MemoryEntry:
    """The entry with its value as JSON gives it back, tuples as lists."""
    try:
        return replace(entry, value=json.loads(json.dumps(entry.value, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise DocumentError(f"{where}: {entry.key}: {error}: expected a value that JSON can hold") from error
