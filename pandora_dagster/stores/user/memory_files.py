"""The MemoryStore port: what the assistant remembers of a user, in `preferences.md` and `facts.md`.

Each page is Markdown with one YAML block of records, which users may edit (decision 20; specification 004, section 3.4):

    ```yaml
    budget:
      value: "under 1000 euros"
      confidence: 0.9
      source_turn: 3
      last_updated: "2026-01-04T14:30:00Z"
    ```

Reading is strict and reports line numbers; writing replaces the block and leaves every other byte.
"""

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.user.user_memory import EarlierValue, MemoryEntry, MemoryListing
from pandora_dagster.documents.delimited_blocks import DelimitedBlock, delimited_blocks
from pandora_dagster.documents.plain_yaml import parse_yaml
from pandora_dagster.errors import DocumentError
from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import encode_text, path_inside, read_text, write_atomic
from pandora_dagster.stores.disk.layout import Layout

_OPENING = re.compile(r"^```ya?ml[ \t]*\r?\n", re.MULTILINE)
_CLOSING = re.compile(r"^```[ \t]*\r?$", re.MULTILINE)
_PLAIN_KEY = re.compile(r"(?!(?:true|false|null)$)[a-z][a-z_]*", re.IGNORECASE)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INTRODUCTIONS = {
    "preference": "# Preferences\n\nWhat the assistant remembers of what you like. Change it as you wish; the block below is read back.\n",
    "fact": "# Facts\n\nWhat the assistant remembers about you. Change it as you wish; the block below is read back.\n",
}


class _Value(StrictModel):
    value: Any
    confidence: float = Field(ge=0, le=1)
    source_turn: int | None = None
    last_updated: str = ""


class _Earlier(_Value):
    key: str = ""


class _Record(_Value):
    until: Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = ""
    earlier: tuple[_Earlier, ...] = ()


def page_entries(page: str, *, kind: str, where: str) -> tuple[MemoryEntry, ...]:
    """The entries of a page, in order; raises DocumentError, with the line where YAML gives one."""
    block = _block(page, where)
    if block is None:
        return ()
    records = _parse_block(block, where)
    return tuple(_entry(key, record, kind, where) for key, record in records.items())


def page_with_entries(page: str, entries: Iterable[MemoryEntry], *, kind: str, where: str) -> str:
    """The page with `entries` in its block; a page without a block gets one at its end, an empty page also an introduction."""
    text = f"```yaml\n{_render_entries(entries)}```"
    block = _block(page, where)
    if block is not None:
        carriage_return = "\r" if block.closing[0].endswith("\r") else ""
        return page[: block.start] + text + carriage_return + page[block.end :]
    before = page or _INTRODUCTIONS[kind]
    return before + ("" if before.endswith("\n") else "\n") + f"\n{text}\n"


def _block(page: str, where: str) -> DelimitedBlock | None:
    """The YAML block of a page, None where it has none; raises DocumentError for two, or for one without an end."""
    blocks = list(islice(delimited_blocks(page, _OPENING, _CLOSING), 2))
    if len(blocks) > 1:
        line = page.count("\n", 0, blocks[1].start) + 1
        raise DocumentError(f"{where}:{line}: a second YAML block: expected one, with all records in it")
    if not blocks and re.search(r"^```ya?ml", page, re.MULTILINE):
        raise DocumentError(f"{where}: its YAML block has no end: expected a line ```")
    return blocks[0] if blocks else None


def _parse_block(block: DelimitedBlock, where: str) -> dict[str, object]:
    """Key -> record, unchecked; raises DocumentError with the line of the page."""
    lines_before = block.opening.string.count("\n", 0, block.opening.end())
    parsed: object = parse_yaml(block.body, where=where, lines_before=lines_before)
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        raise DocumentError(f"{where}:{lines_before + 1}: {type(parsed).__name__}: expected a mapping of keys to records")
    return cast("dict[str, object]", parsed)


def _entry(key: str, record: object, kind: str, where: str) -> MemoryEntry:
    if not key:
        raise DocumentError(f"{where}: key {key!r}: expected a word")
    try:
        checked = _Record.model_validate(record)
    except ValidationError as error:
        fault = error.errors()[0]
        raise DocumentError(f"{where}: {key}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}: expected value and confidence") from error
    earlier = tuple(EarlierValue(e.value, e.confidence, e.source_turn, e.last_updated, e.key) for e in checked.earlier)
    return MemoryEntry(key, checked.value, checked.confidence, checked.source_turn, checked.last_updated, kind, earlier, checked.until)


def _render_entries(entries: Iterable[MemoryEntry]) -> str:
    """The entries as the YAML of a block."""
    return "".join(
        f"{entry.key if _PLAIN_KEY.fullmatch(entry.key) else _scalar(entry.key)}:\n"
        f"  value: {_scalar(entry.value)}\n"
        f"  confidence: {_scalar(entry.confidence)}\n"
        f"  source_turn: {_scalar(entry.source_turn)}\n"
        f"  last_updated: {_scalar(entry.last_updated)}\n"
        + (f"  until: {_scalar(entry.until)}\n" if entry.until else "")
        + (f"  earlier: {_scalar([_plain_value(earlier) for earlier in entry.earlier])}\n" if entry.earlier else "")
        for entry in entries
    )


def _plain_value(earlier: EarlierValue) -> dict[str, Any]:
    """An earlier value as the block has it: with its key where that is another one."""
    return {name: value for name, value in asdict(earlier).items() if name != "key" or value}


def _scalar(value: object) -> str:
    # JSON is YAML 1.2: quoted text stays text, whatever it looks like. YAML's own line ends and controls are escaped.
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False))


MAX_EARLIER_VALUES = 10
"""Earlier values that a key keeps."""
_HINT = "correct {} by hand, or move it out of the store: memory then starts empty (`pandora memory set`)"
_PAGE_NAMES = {"preference": "preferences.md", "fact": "facts.md"}


class MemoryFiles:
    """The memory pages of each user."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def listing(self, user: UserId) -> MemoryListing:
        """Preferences, then facts, in the order of their pages; a page that cannot be read is a fault and costs the other nothing."""
        entries: list[MemoryEntry] = []
        faults: dict[str, DocumentError] = {}
        for kind, name in _PAGE_NAMES.items():
            try:
                entries += self._page(user, kind)[1]
            except DocumentError as error:
                faults[name] = error
        return MemoryListing(tuple(entries), faults)

    def entries(self, user: UserId) -> tuple[MemoryEntry, ...]:
        """The entries of `listing`; raises DocumentError for a page that cannot be read."""
        listing = self.listing(user)
        for fault in listing.faults.values():
            raise fault
        return listing.entries

    def put(self, user: UserId, entry: MemoryEntry, *, instead_of: str = "") -> None:
        """Add an entry, or set the value of its key; text around the block stays. The entry of the key `instead_of` gives way to it.

        A contradiction keeps both values: the one with the newer date is current, the others follow in `earlier`.

        Raises DocumentError where the page is damaged (it is left as it is) or YAML cannot represent the value.
        """
        if entry.kind not in _PAGE_NAMES:
            raise DocumentError(f"memory entry {entry.key[:60]!r}: kind {entry.kind!r}: expected preference or fact")
        with self._lock(user):
            page, stored = self._page(user, entry.kind)
            entries = {e.key: e for e in stored}
            new = _as_json_value(entry, str(self._path(user, entry.kind)))
            replaced = [e for key in dict.fromkeys((instead_of, entry.key)) if (e := entries.get(key))]
            entries.pop(instead_of, None)
            entries[entry.key] = _merge_values(new, replaced)
            self._write(user, entry.kind, page, tuple(entries.values()), about=entry.key)

    def forget(self, user: UserId, key: str) -> bool:
        """Remove the entries of a key from both pages; False where there is none. Raises DocumentError for a damaged page."""
        was_found = False
        with self._lock(user):
            pages = {kind: self._page(user, kind) for kind in _PAGE_NAMES}
            for kind, (page, stored) in pages.items():
                remaining = tuple(entry for entry in stored if entry.key != key)
                if len(remaining) < len(stored):
                    self._write(user, kind, page, remaining, about=key)
                    was_found = True
        return was_found

    def _lock(self, user: UserId) -> AbstractContextManager[None]:
        folder = path_inside(self._layout.root, self._layout.user(user))
        return file_lock(folder / ".memory.lock", what=f"the memory of {user}", seconds=self._lock_seconds)

    def _write(self, user: UserId, kind: str, page: str, entries: tuple[MemoryEntry, ...], *, about: str) -> None:
        path = self._path(user, kind)
        text = page_with_entries(page, entries, kind=kind, where=str(path))
        # The new page is parsed before it is written: a value that would be read back changed must not replace a sound page.
        if page_entries(text, kind=kind, where=str(path)) != entries:
            raise DocumentError(f"{path}: {about}: it would be read back changed: expected plain text, numbers and lists")
        write_atomic(path, encode_text(str(path), text))

    def _page(self, user: UserId, kind: str) -> tuple[str, tuple[MemoryEntry, ...]]:
        """The text of a page and its entries, both empty where it does not exist; raises DocumentError."""
        path = self._path(user, kind)
        try:
            page = read_text(path, may_be_empty=True)
            return page, page_entries(page, kind=kind, where=str(path))
        except DocumentError as error:
            if error.missing:
                return "", ()
            raise DocumentError(str(error), hint=_HINT.format(path.name)) from error

    def _path(self, user: UserId, kind: str) -> Path:
        return path_inside(self._layout.root, self._layout.user(user) / _PAGE_NAMES[kind])


def _merge_values(new: MemoryEntry, replaced: Sequence[MemoryEntry]) -> MemoryEntry:
    """The entry of a key after `new` was stated: the value with the newest date is current, of equal dates the last stated one."""
    if not replaced:
        return new
    others = [e for stored in replaced for e in _values_under(new.key, stored) if e.value != new.value]
    values = [_as_earlier(new), *others]
    newest = max(range(len(values)), key=lambda i: (_date(values[i]), -i))
    current, others = values[newest], (*values[:newest], *values[newest + 1 :])
    fields = (current.value, current.confidence, current.source_turn, current.last_updated)
    until = next((e.until for e in (new, *replaced) if _as_earlier(e) == replace(current, key="")), "")
    return MemoryEntry(new.key, *fields, new.kind, others[:MAX_EARLIER_VALUES], until)


def _values_under(key: str, stored: MemoryEntry) -> tuple[EarlierValue, ...]:
    """The values of an entry as earlier ones of `key`; each keeps the key under which it was stored, where that is another one."""
    own_key = "" if stored.key == key else stored.key
    return tuple(replace(e, key=e.key or own_key) for e in (_as_earlier(stored), *stored.earlier))


def _as_earlier(entry: MemoryEntry) -> EarlierValue:
    return EarlierValue(entry.value, entry.confidence, entry.source_turn, entry.last_updated)


def _date(value: EarlierValue) -> float:
    """The date as seconds, for ordering; a value without a readable date is the oldest."""
    try:
        return parse_timestamp(value.last_updated).timestamp()
    except ValueError:
        return float("-inf")


def _as_json_value(entry: MemoryEntry, where: str) -> MemoryEntry:
    """The entry with its value as JSON represents it, so that a tuple becomes a list, and without earlier values."""
    try:
        return replace(entry, value=json.loads(json.dumps(entry.value, allow_nan=False)), earlier=())
    except (TypeError, ValueError) as error:
        raise DocumentError(f"{where}: {entry.key}: {error}: expected a value that JSON can hold") from error
