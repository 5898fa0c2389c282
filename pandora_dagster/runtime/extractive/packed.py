"""Tables as compression packs them: a header line `# list of record: a|b[x,y]|c(u,v) ; d=1`, a row a line
(`|…` at its end where it has more cells), and how many rows are left out. Knows that form, and reads rows as records."""

import re
from collections.abc import Iterator

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
