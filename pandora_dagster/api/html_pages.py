"""HTML pages from the templates of this package: no network, no script, one style that is named by its hash.

Values are escaped by the template engine; characters that are invalid in HTML or change the direction of text are replaced.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pandora_dagster.app.lineage_service import LineageService
from pandora_dagster.archive.lineage_view import LEGEND, MAX_TEXTS, Mark
from pandora_dagster.contracts.lineage import DocumentId

_TEMPLATES = Path(__file__).parent / "templates"
_INVALID = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Marks that change the direction of the following text: it would be shown in another order than it is stored."""
_CLASSES = re.compile(r"[a-z][a-z0-9_-]*(?: [a-z][a-z0-9_-]*)*")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Characters under the same marks: the class and title of the shortest range, the shortest link, the ids that begin here."""

    text: str
    kind: str = ""
    title: str = ""
    href: str = ""
    anchors: tuple[str, ...] = ()


def render_page(template: str, **values: object) -> str:
    """The page of a template of this package."""
    tools = {"policy": _content_policy(), "pieces": _pieces, "commas": _commas}
    return _environment().get_template(template).render(**tools, **values)


def lineage_page(lineage: LineageService, document: DocumentId) -> str:
    """The page of a document's lineage. Raises InputError, StoreError."""
    return render_page("lineage.html", view=lineage.view(document), legend=LEGEND, max_texts=MAX_TEXTS)


def style_sheet() -> str:
    """The style of all pages."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _content_policy() -> str:
    """The pages load nothing but their own style."""
    digest = base64.b64encode(sha256(style_sheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _clean(value: object) -> object:
    """A value as it is written on a page; line ends are those of Unix."""
    if not isinstance(value, str) or hasattr(value, "__html__"):  # markup of a macro
        return value
    text = _INVALID.sub("\ufffd", value.replace("\r\n", "\n").replace("\r", "\n"))
    return _DIRECTION_MARKS.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def _commas(number: int) -> str:
    return f"{number:,}"


def _pieces(text: str, marks: Sequence[Mark]) -> Iterator[TextPiece]:
    """A text in pieces, each character once. Marks outside the text are left out. Raises ValueError for a class that is no word."""
    size = len(text)
    valid = [m for m in marks if 0 <= m.start <= m.end <= size and (m.start < m.end or m.anchor)]
    borders = sorted({0, size, *(m.start for m in valid), *(m.end for m in valid)})
    starting: dict[int, list[Mark]] = {}
    for mark in valid:
        starting.setdefault(mark.start, []).append(mark)
    current: list[Mark] = []
    for start, end in zip(borders, [*borders[1:], size], strict=True):
        begun = starting.get(start, [])
        current = [m for m in (*current, *begun) if m.end > start]
        shortest = sorted(current, key=lambda m: m.end - m.start)
        kind = next((m for m in shortest if m.kind), Mark(0, 0))
        if kind.kind and not _CLASSES.fullmatch(kind.kind):
            raise ValueError(f"class {kind.kind!r}: expected words")
        href = next((m.href for m in shortest if m.href), "")
        yield TextPiece(text[start:end], kind.kind, kind.title, href, tuple(m.anchor for m in begun if m.anchor))
