"""Tables as compression packs them: a header line `# a|b[x,y]|c(u,v) ; d=1`, a row a line. Knows that form, and reads rows as records."""

import re
from collections.abc import Iterator

_HEADER = re.compile(r"^# (?=[^\n]*\|)([^\n]*)$", re.MULTILINE)
_ROW = re.compile(r"^(?!#)[^\n]+$", re.MULTILINE)
_COLUMN = re.compile(r"([\w .-]+?)(?:\[([^\[\]()]*)\]|\(([^\[\]()]*)\))?")
_SPLIT = re.compile(r"\|(?![^\[(]*[\])])")


def packed_table(text: str, at: int) -> tuple[list[dict[str, object]], int] | None:
    """The records of a packed table that begins at `at`, and where its last row ends; None where none begins there."""
    header = _HEADER.match(text, at)
    if header is None:
        return None
    packed, *constants = header.group(1).split(" ; ")
    columns = [found for name in _SPLIT.split(packed) if (found := _COLUMN.fullmatch(name.strip()))]
    shared = dict(pair.split("=", 1) for pair in constants if "=" in pair)
    rows: list[dict[str, object]] = []
    end = header.end()
    while row := _ROW.match(text, end + 1):
        cells = row.group(0).split("|")
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
