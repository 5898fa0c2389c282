"""Values that stand in another record or under another name than in the source: members of JSON objects, cells of Markdown tables.

Knows records by their members; knows nothing of facts. A member with letters tells which record is meant.
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from pandora_dagster.compression.words.normalization import key, ungrouped

# Members that are true or false: `"refundable": false` in a result, `refundable false` in a list. Knows forms; knows no facts.

_MEMBER = re.compile(r"\"?\b([A-Za-z][\w\-]{0,80})\\*\"?\s{0,3}[:=]?\s{0,3}\b(true|false|True|False)\b")


def turned_booleans(text: str, source: str) -> Iterator[str]:
    """Members of `text` with the truth value that `source`, which has members of this name, gives to none of them."""
    theirs: defaultdict[str, set[str]] = defaultdict(set)
    for member in _MEMBER.finditer(source):
        theirs[member.group(1).lower()].add(member.group(2).lower())
    for member in _MEMBER.finditer(text) if theirs else ():
        known = theirs.get(member.group(1).lower())
        if known and member.group(2).lower() not in known:
            yield member.group()


_PART = re.compile(r'[{}]|"((?:[^"\\\n]|\\.){1,80})"\s*:\s*(?:"((?:[^"\\]|\\.){0,200})"|(-?\d[\d.eE+\-]*|true|false))|"(?:[^"\\]|\\.)*"')
_TABLE = re.compile(r"(?:^\|.*\|[ \t]*(?:\n|\Z)){2,}", re.MULTILINE)
_RULER = re.compile(r"[\s:|\-]+")
_MEMBERS = 24
"""Members of a record that are looked at."""
_NAMED = re.compile(r"[^\W\d_]")

Record = dict[str, str]
"""Keys of the names -> keys of the values."""


def moved_cells(text: str, source: str) -> Iterator[str]:
    """Members of records of `text` that the source has in another record or under another name, and there another value."""
    own = list(_records(text)) if "|" in text or "{" in text else []
    theirs = list(_records(source)) if own else []
    having: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in theirs:
        for member in record.items():
            having[member].append(record)
    known = frozenset(value for _, value in having)
    for record in own:
        members = list(record.items())[:_MEMBERS]
        for name, value in members:
            telling = (having[other] for other in members if other[0] != name and other in having and _NAMED.search(other[1]))
            if value in known and any(_is_moved(name, value, records) for records in telling):
                yield f"{name}: {value}"


def _is_moved(name: str, value: str, records: list[Record]) -> bool:
    """Whether all the records that share a telling member have another value by this name."""
    return all(name in record and record[name] != value for record in records)


def _records(text: str) -> Iterator[Record]:
    yield from (record for record in _objects(text) if len(record) > 1)
    for table in _TABLE.finditer(text):
        rows = [[key(ungrouped(cell)) for cell in line.strip().strip("|").split("|")] for line in table.group().splitlines()]
        lines = table.group().splitlines()
        for line, cells in zip(lines[1:], rows[1:], strict=True):
            if not _RULER.fullmatch(line) and len(cells) == len(rows[0]):
                yield {name: value for name, value in zip(rows[0], cells, strict=True) if name and value}


def _objects(text: str) -> Iterator[Record]:
    stack: list[Record] = []
    for part in _PART.finditer(text) if "{" in text else ():
        if part.group() == "{":
            stack.append({})
        elif part.group() == "}":
            if stack:
                yield stack.pop()
        elif stack and part.group(1):
            name, value = key(part.group(1)), key(ungrouped(part.group(2) or part.group(3) or ""))
            if name and value:
                stack[-1].setdefault(name, value)
