"""Tables of data: told from tables that lay out a page, and read as rows in which every cell stays with its headings."""

from collections.abc import Iterator

from pandora_dagster.documents.webpages.elements.html_tree import Element, full_text, is_element, tag_of

_MAX_COLUMNS = 60
_MAX_ROWS = 5000
_LONG_CELL = 250
"""Characters of a cell above which a table without headings lays out text."""


def is_data_table(table: Element) -> bool:
    """Whether a table holds data: it says so (headings, caption), or its cells are short and its rows have the same columns."""
    if str(table.get("role") or "") in ("presentation", "none"):
        return False
    if (
        any(inner is not table for inner in table.iter("table"))
        or next(table.iter("h1", "h2", "form", "main", "article"), None) is not None
    ):
        return False
    rows = [row for row, _ in zip(_rows(table), range(200), strict=False)]
    cells = [cell for row in rows for cell in _cells(row)]
    if not cells or (len(rows) < 2 and next(table.iter("th"), None) is None):
        return False
    long_cells = sum(len(full_text(cell)) > _LONG_CELL for cell in cells)
    if next(table.iter("th", "caption", "thead"), None) is not None:
        return long_cells * 3 <= len(cells)
    counts = [sum(_span(cell, "colspan") for cell in _cells(row)) for row in rows]
    breaks = sum(1 for cell in cells if next(cell.iter("p", "hr", "ul", "blockquote", "pre"), None) is not None)
    return (
        max(counts) >= 2
        and long_cells == 0
        and breaks * 4 <= len(cells)
        and counts.count(max(set(counts), key=counts.count)) * 2 > len(counts)
    )


def table_rows(table: Element) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The cells of each row, those that span several rows or columns repeated in each, and the characters in links."""
    grid: list[list[str]] = []
    open_spans: dict[int, tuple[int, str]] = {}
    caption = next(iter(table.iter("caption")), None)
    for row, _ in zip(_rows(table), range(_MAX_ROWS), strict=False):
        line: list[str] = []
        cells = list(_cells(row))
        while cells or len(line) in open_spans:
            if len(line) >= _MAX_COLUMNS:
                break
            if (held := open_spans.get(len(line))) is not None:
                left, text = held
                if left > 1:
                    open_spans[len(line)] = (left - 1, text)
                else:
                    del open_spans[len(line)]
                line.append(text)
                continue
            cell = cells.pop(0)
            text = full_text(cell).replace("|", "\\|")
            for _ in range(min(_span(cell, "colspan"), _MAX_COLUMNS - len(line))):
                if (down := _span(cell, "rowspan")) > 1:
                    open_spans[len(line)] = (down - 1, text)
                line.append(text)
        if any(line):
            grid.append(line)
    rows = [tuple(line) for line in grid]
    if caption is not None and (title := full_text(caption)):
        rows.insert(0, (title,))
    links = sum(len(full_text(link)) for link in table.iter("a"))
    return tuple(rows), links


def has_headings(table: Element) -> bool:
    """Whether the first row of a table names its columns."""
    first = next(_rows(table), None)
    return first is not None and all(tag_of(cell) == "th" for cell in _cells(first))


def _rows(table: Element) -> Iterator[Element]:
    return (row for row in table.iter("tr"))


def _cells(row: Element) -> Iterator[Element]:
    return (cell for cell in row if is_element(cell) and tag_of(cell) in ("td", "th"))


def _span(cell: Element, name: str) -> int:
    digits = str(cell.get(name) or "1").strip()
    return max(1, min(int(digits), 1000)) if digits.isdigit() and len(digits) < 6 else 1
