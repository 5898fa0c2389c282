"""The MemoryStore port over preferences.md and facts.md. Knows files and locks; `memory_page` knows what stands in them."""

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.remembered import EarlierValue, MemoryEntry
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.files import encode_text, path_inside, read_text, write_atomic
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import file_lock
from pandora_dagster.stores.memory_page import page_entries, page_with_entries
from pandora_dagster.text.dates import parse_timestamp

MOST_EARLIER = 10
"""Earlier values that a key keeps."""
_MEND = "mend {} by hand, or move it away: memory then begins anew (`pandora memory set`)"
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
        """Add an entry, or set the value of its key in its place; what people wrote around the records stays.

        A contradiction keeps both: the value with the newer date is current, the others follow in `earlier`.

        Raises DocumentError where the page is damaged (it is left as it is) or the value is nothing that YAML can keep.
        """
        if entry.kind not in _PAGES:
            raise DocumentError(f"memory entry {entry.key[:60]!r}: kind {entry.kind!r}: expected preference or fact")
        with self._held(user):
            page, known = self._page(user, entry.kind)
            records = {e.key: e for e in known}
            plain = _plain(entry, str(self._path(user, entry.kind)))
            records[entry.key] = _current(plain, records.get(entry.key))
            self._write(user, entry.kind, page, tuple(records.values()), about=entry.key)

    def forget(self, user: UserId, key: str) -> bool:
        """Take the entries of a key away, on both pages; False where there is none. Raises DocumentError for a damaged page."""
        found = False
        with self._held(user):
            pages = {kind: self._page(user, kind) for kind in _PAGES}
            for kind, (page, known) in pages.items():
                rest = tuple(e for e in known if e.key != key)
                if len(rest) < len(known):
                    self._write(user, kind, page, rest, about=key)
                    found = True
        return found

    def _held(self, user: UserId) -> AbstractContextManager[None]:
        folder = path_inside(self._layout.root, self._layout.user(user))
        return file_lock(folder / ".memory.lock", what=f"the memory of {user}", seconds=self._lock_seconds)

    def _write(self, user: UserId, kind: str, page: str, records: tuple[MemoryEntry, ...], *, about: str) -> None:
        path = self._path(user, kind)
        text = page_with_entries(page, records, kind=kind, where=str(path))
        # Read back before it is written: a value that would come back otherwise must not replace a sound page.
        if page_entries(text, kind=kind, where=str(path)) != records:
            raise DocumentError(f"{path}: {about}: it would not read back as it is: expected plain text, numbers and lists")
        write_atomic(path, encode_text(str(path), text))

    def _page(self, user: UserId, kind: str) -> tuple[str, tuple[MemoryEntry, ...]]:
        path = self._path(user, kind)
        try:
            page = read_text(path, may_be_empty=True)
            return page, page_entries(page, kind=kind, where=str(path))
        except DocumentError as error:
            if error.missing:
                return "", ()
            raise DocumentError(str(error), hint=_MEND.format(path.name)) from error

    def _path(self, user: UserId, kind: str) -> Path:
        return path_inside(self._layout.root, self._layout.user(user) / _PAGES[kind])


def _current(new: MemoryEntry, known: MemoryEntry | None) -> MemoryEntry:
    """The entry of a key after `new` was said: the newest date is current, of equal dates what was said last."""
    if known is None:
        return new
    values = [_as_earlier(new), *(e for e in (_as_earlier(known), *known.earlier) if e.value != new.value)]
    newest = max(range(len(values)), key=lambda i: (_date(values[i]), -i))
    top, rest = values[newest], (*values[:newest], *values[newest + 1 :])
    return MemoryEntry(new.key, top.value, top.confidence, top.source_turn, top.last_updated, new.kind, rest[:MOST_EARLIER])


def _as_earlier(entry: MemoryEntry) -> EarlierValue:
    return EarlierValue(entry.value, entry.confidence, entry.source_turn, entry.last_updated)


def _date(value: EarlierValue) -> float:
    """For ordering; what has no readable date is older than what has one."""
    try:
        return parse_timestamp(value.last_updated).timestamp()
    except ValueError:
        return float("-inf")


def _plain(entry: MemoryEntry, where: str) -> MemoryEntry:
    """The entry with its value as JSON gives it back, tuples as lists."""
    try:
        return replace(entry, value=json.loads(json.dumps(entry.value, allow_nan=False)), earlier=())
    except (TypeError, ValueError) as error:
        raise DocumentError(f"{where}: {entry.key}: {error}: expected a value that JSON can hold") from error
