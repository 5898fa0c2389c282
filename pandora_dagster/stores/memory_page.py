"""preferences.md and facts.md as text: Markdown for people, with one YAML block of records (DECISIONS 20, 004 section 3.4).

Reads strictly, with lines; replaces the block and leaves every other byte. Knows nothing of a disk.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import YAMLError

from pandora_dagster.contracts.remembered import EarlierValue, MemoryEntry
from pandora_dagster.errors import DocumentError

_BLOCK = re.compile(r"^```ya?ml[ \t]*\r?\n(.*?)^```[ \t]*\r?$", re.MULTILINE | re.DOTALL)
_PLAIN_KEY = re.compile(r"(?!(?:true|false|null)$)[a-z][a-z_]*", re.IGNORECASE)
_NAMED = re.compile(r'duplicate key "(.*?)" with value', re.DOTALL)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INTRODUCTIONS = {
    "preference": "# Preferences\n\nWhat the assistant remembers of what you like. Change it as you wish; the block below is read back.\n",
    "fact": "# Facts\n\nWhat the assistant remembers about you. Change it as you wish; the block below is read back.\n",
}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    value: Any
    confidence: float = Field(ge=0, le=1)
    source_turn: int | None = None
    last_updated: str = ""


class _Record(_Value):
    earlier: tuple[_Value, ...] = ()


class _StringDateConstructor(SafeConstructor):
    """Dates stay the words that stand there."""


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
            problem = f"key {named.group(1)} stands twice"
        raise DocumentError(f"{where}:{line}: {problem}: expected YAML with each key once") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise DocumentError(f"{where}:{first + 1}: {type(raw).__name__}: expected a mapping of keys to records")
    return cast(dict[object, object], raw)


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
