"""The text of a PDF by its pages, apart from what is not seen: text drawn invisibly, in the color of the page, tiny, or outside it."""

import math
import re
from ctypes import c_double, c_float, c_uint
from dataclasses import dataclass
from threading import Lock
from typing import Any

from pandora_dagster.documents.webpages.libraries import library
from pandora_dagster.errors import DocumentError

_MAX_PAGES = 500
_MAX_CHARACTERS = 3_000_000
_INVISIBLE_MODES = frozenset({3, 7})
"""Render modes of text that is neither filled nor stroked, or only clips."""
_MIN_POINTS = 1.5
_LIGHT = 240
"""Lowest channel of a color (0 to 255) that is not seen on white."""
_LIBRARY = Lock()
"""PDFium is not thread-safe."""


class UnreadablePageError(DocumentError):
    """A page whose bytes cannot be read: encrypted or damaged."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """Text of each page, seen and unseen, and the document's own title, author and date of creation."""

    pages: tuple[str, ...]
    hidden: tuple[str, ...]
    title: str
    author: str
    created: str
    notices: tuple[str, ...]


def read_pdf(body: bytes) -> PdfText:
    """The text of a PDF; raises UnreadablePageError where it is encrypted or damaged."""
    pdfium = library("pypdfium2")
    with _LIBRARY:
        try:
            document = pdfium.PdfDocument(body)
        except pdfium.PdfiumError as error:
            locked = "password" in str(error).lower()
            raise UnreadablePageError("the PDF is encrypted: it needs a password" if locked else f"the PDF is damaged: {error}") from error
        try:
            return _read(document)
        except pdfium.PdfiumError as error:
            raise UnreadablePageError(f"the PDF is damaged: {error}") from error
        finally:
            document.close()


def _read(document: Any) -> PdfText:
    pages: list[str] = []
    hidden: list[str] = []
    notices: list[str] = []
    total = 0
    for number in range(min(len(document), _MAX_PAGES)):
        page = document[number]
        seen, unseen = _page_text(page)
        page.close()
        pages.append(_lines(seen))
        hidden.append(" ".join(unseen.split()))
        total += len(seen)
        if total > _MAX_CHARACTERS:
            break
    if len(pages) < len(document):
        notices.append(f"{len(document) - len(pages)} of {len(document)} pages were not read")
    if not any(pages):
        notices.append("the PDF has no text that can be read: its pages may be images")
    meta = document.get_metadata_dict(skip_empty=True)
    return PdfText(
        tuple(pages),
        tuple(hidden),
        str(meta.get("Title", "")).strip(),
        str(meta.get("Author", "")).strip(),
        str(meta.get("CreationDate", "")),
        tuple(notices),
    )


def _page_text(page: Any) -> tuple[str, str]:
    raw = library("pypdfium2.raw")
    text_page = page.get_textpage()
    dark = _dark_areas(page)
    left, bottom, right, top = page.get_bbox()
    seen: list[str] = []
    unseen: list[str] = []
    was_hidden = False
    for place in range(text_page.count_chars()):
        character = (
            chr(code) if 0 < (code := int(raw.FPDFText_GetUnicode(text_page, place))) < 0x110000 and not 0xD800 <= code < 0xE000 else ""
        )
        if character.isspace() or raw.FPDFText_IsGenerated(text_page, place) == 1:
            (unseen if was_hidden else seen).append(character)
            if was_hidden and character in "\r\n":
                seen.append(character)
            continue
        x, y = _origin(text_page, place)
        inside = left <= x <= right and bottom <= y <= top
        was_hidden = not inside or _is_unseen(text_page, place, any(a <= x <= c and b <= y <= d for a, b, c, d in dark))
        (unseen if was_hidden else seen).append(character)
    text_page.close()
    return "".join(seen), "".join(unseen)


def _is_unseen(text_page: Any, place: int, on_dark: bool) -> bool:
    raw = library("pypdfium2.raw")
    drawn = raw.FPDFText_GetTextObject(text_page, place)
    if drawn and raw.FPDFTextObj_GetTextRenderMode(drawn) in _INVISIBLE_MODES:
        return True
    matrix = raw.FS_MATRIX()
    scale = math.hypot(matrix.b, matrix.d) if raw.FPDFText_GetMatrix(text_page, place, matrix) else 1.0
    if raw.FPDFText_GetFontSize(text_page, place) * (scale or 1.0) < _MIN_POINTS:
        return True
    channels = [c_uint() for _ in range(4)]
    if not raw.FPDFText_GetFillColor(text_page, place, *channels):
        return False
    red, green, blue, alpha = (channel.value for channel in channels)
    return alpha <= 10 or (min(red, green, blue) >= _LIGHT and not on_dark)


def _origin(text_page: Any, place: int) -> tuple[float, float]:
    x, y = c_double(), c_double()
    library("pypdfium2.raw").FPDFText_GetCharOrigin(text_page, place, x, y)
    return x.value, y.value


def _dark_areas(page: Any) -> list[tuple[float, float, float, float]]:
    """Where images and filled shapes lie, on which white text is seen."""
    raw = library("pypdfium2.raw")
    areas: list[tuple[float, float, float, float]] = []
    for drawn in page.get_objects(max_depth=3):
        if drawn.type not in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING):
            continue
        channels = [c_uint() for _ in range(4)]
        colored = raw.FPDFPageObj_GetFillColor(drawn, *channels) and min(channel.value for channel in channels[:3]) < _LIGHT
        edges = [c_float() for _ in range(4)]
        if (colored or drawn.type != raw.FPDF_PAGEOBJ_PATH) and raw.FPDFPageObj_GetBounds(drawn, *edges) and len(areas) < 500:
            left, bottom, right, top = (edge.value for edge in edges)
            areas.append((left, bottom, right, top))
    return areas


def _lines(text: str) -> str:
    lines = (
        re.sub(r"[^\S\n]{3,}", "   ", line).strip()
        for line in text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe", "-").split("\n")
    )
    return "\n".join(line for line in lines if line)
