"""The MemoryStore port over preferences.md and facts.md."""

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from pydantic import Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import YAMLError

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.user.user_memory import EarlierValue, MemoryEntry
from pandora_dagster.errors import DocumentError
from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import encode_text, path_inside, read_text, write_atomic
from pandora_dagster.stores.disk.layout import Layout

# preferences.md and facts.md as text: Markdown with one YAML block of records (DECISIONS 20, 004 section 3.4). Reads
# strictly, with line numbers; replaces the block and leaves every other byte.

_BLOCK = re.compile(r"^```ya?ml[ \t]*\r?\n(.*?)^```[ \t]*\r?$", re.MULTILINE | re.DOTALL)
_PLAIN_KEY = re.compile(r"(?!(?:true|false|null)$)[a-z][a-z_]*", re.IGNORECASE)
_NAMED = re.compile(r'duplicate key "(.*?)" with value', re.DOTALL)
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


class _Record(_Value):
    earlier: tuple[_Value, ...] = ()


class _StringDateConstructor(SafeConstructor):
    """Dates stay text."""


_StringDateConstructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)  # pyright: ignore[reportUnknownMemberType]


def page_entries(page: str, *, kind: str, where: str) -> tuple[MemoryEntry, ...]:
    """The records of a page, in order; raises DocumentError with the line."""
    block = _block(page, where)
    if block is None:
        return ()
    raw = _mapping(block.group(1), where, page.count("\n", 0, block.start(1)))
    return tuple(_entry(key, value, kind, where) for key, value in raw.items())


def page_with_entries(page: str, records: Iterable[MemoryEntry], *, kind: str, where: str) -> str:
    """The page with `records` in its block; a page without block gets one at its end, an empty page its introduction too."""
    text = f"```yaml\n{_dumped(records)}```"
    block = _block(page, where)
    if block is not None:
        tail = "\r" if block.group(0).endswith("\r") else ""
        return page[: block.start()] + text + tail + page[block.end() :]
    before = page or _INTRODUCTIONS[kind]
    return before + ("" if before.endswith("\n") else "\n") + f"\n{text}\n"


def _block(page: str, where: str) -> re.Match[str] | None:
    found = list(_BLOCK.finditer(page))
    if len(found) > 1:
        line = page.count("\n", 0, found[1].start()) + 1
        raise DocumentError(f"{where}:{line}: a second YAML block: expected one, with all records in it")
    if not found and re.search(r"^```ya?ml", page, re.MULTILINE):
        raise DocumentError(f"{where}: its YAML block has no end: expected a line ```")
    return found[0] if found else None


def _mapping(text: str, where: str, first: int) -> dict[object, object]:
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _StringDateConstructor
    try:
        raw: object = yaml.load(text)  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        # ruamel leaves its errors' fields untyped: a mark has `line`, counted from 0.
        line = first + 1 + int(getattr(getattr(error, "problem_mark", None), "line", 0))
        problem = getattr(error, "problem", None) or error
        if isinstance(error, DuplicateKeyError) and (named := _NAMED.search(str(problem))):
            problem = f"duplicate key {named.group(1)}"
        raise DocumentError(f"{where}:{line}: {problem}: expected YAML with each key once") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise DocumentError(f"{where}:{first + 1}: {type(raw).__name__}: expected a mapping of keys to records")
    return cast("dict[object, object]", raw)


def _entry(key: object, value: object, kind: str, where: str) -> MemoryEntry:
    if not isinstance(key, str) or not key:
        raise DocumentError(f"{where}: key {key!r}: expected a word")
    try:
        record = _Record.model_validate(value)
    except ValidationError as error:
        fault = error.errors()[0]
        raise DocumentError(f"{where}: {key}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}: expected value and confidence") from error
    earlier = tuple(EarlierValue(e.value, e.confidence, e.source_turn, e.last_updated) for e in record.earlier)
    return MemoryEntry(key, record.value, record.confidence, record.source_turn, record.last_updated, kind, earlier)


def _dumped(records: Iterable[MemoryEntry]) -> str:
    return "".join(
        f"{r.key if _PLAIN_KEY.fullmatch(r.key) else _scalar(r.key)}:\n"
        f"  value: {_scalar(r.value)}\n"
        f"  confidence: {_scalar(r.confidence)}\n"
        f"  source_turn: {_scalar(r.source_turn)}\n"
        f"  last_updated: {_scalar(r.last_updated)}\n" + (f"  earlier: {_scalar([asdict(e) for e in r.earlier])}\n" if r.earlier else "")
        for r in records
    )


def _scalar(value: object) -> str:
    # JSON is YAML 1.2: quoted text stays text, whatever it looks like. YAML's own line ends and controls are escaped.
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False))


MOST_EARLIER = 10
"""Earlier values that a key keeps."""
_REMEDY = "correct {} by hand, or move it out of the store: memory then starts empty (`pandora memory set`)"
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
        """Add an entry, or set the value of its key in its place; text around the records stays.

        A contradiction keeps both: the value with the newer date is current, the others follow in `earlier`.

        Raises DocumentError where the page is damaged (it is left as it is) or YAML cannot represent the value.
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
        """Remove the entries of a key from both pages; False where there is none. Raises DocumentError for a damaged page."""
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
            raise DocumentError(str(error), hint=_REMEDY.format(path.name)) from error

    def _path(self, user: UserId, kind: str) -> Path:
        return path_inside(self._layout.root, self._layout.user(user) / _PAGES[kind])


def _current(new: MemoryEntry, known: MemoryEntry | None) -> MemoryEntry:
    """The entry of a key after `new` was stated: the newest date is current, of equal dates the last statement."""
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
