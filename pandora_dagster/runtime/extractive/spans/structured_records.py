"""JSON inside documents, as readable `key: value` lines that keep together what one object says. Values stay as they were written."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pandora_dagster.runtime.extractive.spans.header_lines import as_list, as_mapping
from pandora_dagster.runtime.extractive.words.query_intent import FIELD_WORDS, Question
from pandora_dagster.runtime.extractive.words.word_matching import stem, words

# Tables as compression packs them: a header line `# list of record: a|b[x,y]|c(u,v) ; d=1`, a row a line (`|…` at its end where it
# has more cells), and how many rows are left out. Knows that form, and reads rows as records.

_HEADER = re.compile(r"^# (?=[^\n]*\|)([^\n]*)$", re.MULTILINE)
_ROW = re.compile(r"^(?!#)[^\n]+$", re.MULTILINE)
_PARENT = re.compile(r"([\w.\-]+ of) ([^:|;]+): ")
_CUT = "|\u2026"
_LEFT_OUT = re.compile(r"\(\d+ more rows? left out\)")
_COLUMN = re.compile(r"([\w .-]+?)(?:\[([^\[\]()]*)\]|\(([^\[\]()]*)\))?")
_SPLIT = re.compile(r"\|(?![^\[(]*[\])])")


def packed_table(text: str, at: int) -> tuple[list[dict[str, object]], int] | None:
    """The records of a packed table that begins at `at`, and where its last row ends; None where none begins there."""
    header = _HEADER.match(text, at)
    if header is None:
        return None
    parent = _PARENT.match(header.group(1))
    packed, *constants = header.group(1)[parent.end() if parent else 0 :].split(" ; ")
    columns = [found for name in _SPLIT.split(packed) if (found := _COLUMN.fullmatch(name.strip()))]
    shared = dict(pair.split("=", 1) for pair in constants if "=" in pair)
    shared |= {parent.group(1): parent.group(2)} if parent else {}
    rows: list[dict[str, object]] = []
    end = header.end()
    while row := _ROW.match(text, end + 1):
        if _LEFT_OUT.fullmatch(row.group(0)):
            end = row.end()
            break
        cells = row.group(0).removesuffix(_CUT).split("|")
        if len(cells) > len(columns):
            break
        rows.append({**dict(_fields(columns, cells)), **shared})
        end = row.end()
    return (rows, end) if rows else None


def _fields(columns: list[re.Match[str]], cells: list[str]) -> Iterator[tuple[str, object]]:
    for column, cell in zip(columns, cells, strict=False):
        if cell.strip():
            name, listed, grouped = column.groups()
            yield name, _listed(cell, listed) if listed else _grouped(cell, grouped or "")


def _listed(cell: str, names: str) -> list[object]:
    return [_grouped(item, names) for item in cell.split("; ")]


def _grouped(cell: str, names: str) -> object:
    """A cell of several named values as an object; the cell itself where they can not be told apart."""
    words, fields = cell.split(), [n for n in names.split(",") if n]
    return dict(zip(fields, words, strict=True)) if fields and len(words) == len(fields) else cell.strip()


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_NAMING = frozenset(map(stem, ("id", "number", "name", "code", "title", "key", "topic", "product")))
_NO_WORDS: frozenset[str] = frozenset()
_LONG_VALUE_WORDS = 14
_MOST_PAIRS = 30
_DESCRIBING_PAIRS = 6
"""An object is told apart from its like by its first fields."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One field: its key as written, its value as written (lists joined by commas), and the stems of both."""

    key: str
    value: str
    key_stems: frozenset[str]
    value_stems: frozenset[str]

    @property
    def text(self) -> str:
        return f"{self.key}: {self.value}"


@dataclass(frozen=True, slots=True)
class Group:
    """The plain fields of one object; `path` are the keys that lead to it from its record."""

    path: tuple[str, ...]
    pairs: tuple[Pair, ...]


def decode(text: str, start: int) -> tuple[object, int] | None:
    """The JSON object or list at `start` and where it ends; None where there is none. Numbers stay strings as written."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (cast("object", value), end) if isinstance(value, (dict, list)) and value else None


def records(value: object) -> Iterator[tuple[Group, ...]]:
    """Each record of a JSON value: the value itself, or for a list each of its objects, as its groups in order."""
    items = as_list(value)
    plain = [_scalar(v) for v in items if not isinstance(v, (dict, list))]
    if plain:
        yield (Group((), (_pair("", ", ".join(plain)),)),)
    for item in items:
        if isinstance(item, (dict, list)):
            yield from records(cast("object", item))
    if isinstance(value, dict):
        yield tuple(_groups(as_mapping(cast("object", value)), ()))


def _groups(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Group]:
    own: list[Pair] = []
    inner: list[tuple[str, Mapping[str, Any]]] = []
    for key, item in value.items():
        if isinstance(item, dict):
            inner.append((key, as_mapping(cast("object", item))))
        elif isinstance(item, list):
            inner += [(key, i) for i in _objects(as_list(cast("object", item)))]
            plain = [_scalar(i) for i in as_list(cast("object", item)) if not isinstance(i, (dict, list))]
            own += [_pair(key, ", ".join(plain))] if plain else []
        else:
            own.append(_pair(key, _scalar(item)))
    yield Group(path, tuple(own))
    for key, item in inner:
        yield from _groups(item, (*path, key))


def _objects(items: list[Any]) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if isinstance(item, dict):
            yield as_mapping(cast("object", item))
        elif isinstance(item, list):
            yield from _objects(as_list(cast("object", item)))


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return " ".join(str(value).split())


def _pair(key: str, value: str) -> Pair:
    return Pair(key, value, frozenset(map(stem, words(key))), frozenset(map(stem, words(value))))


def named_by(groups: tuple[Group, ...]) -> frozenset[str]:
    """Stems of the field that names the record itself: `reservation_id` names a reservation."""
    first = groups[0].pairs[:1] if groups else ()
    return frozenset(t for p in first if p.key_stems & _NAMING for t in p.key_stems - _NAMING)


def long_values(groups: tuple[Group, ...]) -> Iterator[str]:
    """Values that are prose: they are read as text, not as fields."""
    for group in groups:
        yield from (p.value for p in group.pairs if len(p.value_stems) > _LONG_VALUE_WORDS)


def tell(groups: tuple[Group, ...], asked: Question | None, *, is_page: bool = False) -> str:
    """One record as a line: what names it, and the fields that answer `asked` with what names their object; None = all fields.
    A page's title tells it apart from its like.

    Nested objects stand in parentheses behind the key that holds them; no `;` and no line break is used.
    """
    told: list[str] = []
    count = 0
    for group in groups:
        pairs = [p for p in group.pairs if p.value and len(p.value_stems) <= _LONG_VALUE_WORDS]
        kept = pairs if asked is None else _asked_pairs(pairs, group.path, asked, is_page=is_page)
        kept = kept[: max(0, _MOST_PAIRS - count)] if asked else kept
        count += len(kept)
        line = _entry(kept) or ", ".join(p.text if p.key else p.value for p in kept)
        if line:
            told.append(f"{' '.join(group.path)} ({line})" if group.path else line)
    return ", ".join(told)


def _entry(pairs: list[Pair]) -> str:
    """A stored entry as `its key: its value`; "" for another object."""
    known = {p.key: p.value for p in pairs}
    return f"{known['key']}: {known['value']}" if {"key", "value"} <= known.keys() else ""


def _asked_pairs(pairs: list[Pair], path: tuple[str, ...], asked: Question, *, is_page: bool) -> list[Pair]:
    above = frozenset(stem(w) for key in path for w in words(key))
    hits = {i for i, p in enumerate(pairs) if _answers(p, above, asked)}
    if path and not hits:
        return []
    naming = {i for i, p in enumerate(pairs) if p.key_stems & _NAMING}
    is_named = bool(path or (is_page and naming and hits - naming))
    first = set(sorted(naming)[:1]) if is_named else set(range(_DESCRIBING_PAIRS))
    return [p for i, p in enumerate(pairs) if i in hits or i in first]


def _answers(pair: Pair, above: frozenset[str], asked: Question) -> bool:
    stems = pair.key_stems | above
    kinds = any(FIELD_WORDS.get(k, _NO_WORDS) & stems and any(c.isdigit() for c in pair.value) for k in asked.wants)
    return kinds or any(t in stems or t in pair.value_stems for t in asked.stems)
