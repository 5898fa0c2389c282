"""Draws the imports between the top-level packages as SVG: one row a layer, an arrow an import. The same input gives the same bytes."""

from collections.abc import Mapping, Sequence
from html import escape

BOX_WIDTH, BOX_HEIGHT, GAP, ROW = 150, 34, 16, 74
MARGIN = 20
STYLE = (
    "text{font:14px sans-serif;fill:#1b1f24;text-anchor:middle}"
    "rect{fill:#eef2fb;stroke:#4a5a8a;stroke-width:1.2}"
    "path{fill:none;stroke:#8a94ad;stroke-width:1.2;marker-end:url(#arrow)}"
)


def layers_of(contracts: Sequence[Mapping[str, object]], root: str, parts: Sequence[str]) -> list[list[str]]:
    """The rows of the drawing, top first: the `layers` contract of import-linter over the root package, less what does not exist."""
    contract = next(c for c in contracts if c["type"] == "layers" and c.get("containers") == [root])
    layers = contract["layers"]
    if not isinstance(layers, list):
        raise SystemExit(f"pyproject.toml: layers of {contract['name']}: expected a list")
    rows = [[name.strip(" ()") for name in str(layer).replace(":", "|").split("|")] for layer in layers]
    known = {name for row in rows for name in row}
    if rest := [part for part in parts if part not in known]:
        raise SystemExit(f"pyproject.toml: {', '.join(rest)}: expected in a layer of the contract {contract['name']!r}")
    return [kept for row in rows if (kept := [name for name in row if name in parts])]


def drawing(rows: Sequence[Sequence[str]], arrows: Sequence[tuple[str, str]]) -> str:
    """The SVG text."""
    width = 2 * MARGIN + max(len(row) for row in rows) * (BOX_WIDTH + GAP) - GAP
    height = 2 * MARGIN + len(rows) * ROW - (ROW - BOX_HEIGHT)
    places = {name: place for n, row in enumerate(rows) for name, place in _row(row, n, width)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>Imports between the top-level packages</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#8a94ad;stroke:none;marker-end:none"/></marker></defs>',
        f'<rect width="{width}" height="{height}" style="fill:#fff;stroke:none"/>',
        *(_arrow(places[source], places[target]) for source, target in arrows),
        *(_box(name, place) for name, place in places.items()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _row(names: Sequence[str], number: int, width: int) -> list[tuple[str, tuple[int, int]]]:
    """Each name with the left upper corner of its box, the row in the middle of the drawing."""
    left = (width - len(names) * (BOX_WIDTH + GAP) + GAP) // 2
    return [(name, (left + n * (BOX_WIDTH + GAP), MARGIN + number * ROW)) for n, name in enumerate(names)]


def _arrow(source: tuple[int, int], target: tuple[int, int]) -> str:
    x1, y1 = source[0] + BOX_WIDTH // 2, source[1] + BOX_HEIGHT
    x2, y2 = target[0] + BOX_WIDTH // 2, target[1]
    bend = max(20, (y2 - y1) // 2)
    return f'<path d="M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"/>'


def _box(name: str, place: tuple[int, int]) -> str:
    x, y = place
    return (
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<text x="{x + BOX_WIDTH // 2}" y="{y + 22}">{escape(name)}</text>'
    )
