"""A fetched page to PAGE_DOC (000 section 22): its kind by its bytes, then the reader of that kind. No network, no scripts."""

import re

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import FieldEvidence, PageDoc, PageFields, PageType, Zone, ZoneKind, ZoneSource
from pandora_dagster.documents.webpages.charset import decode
from pandora_dagster.documents.webpages.elements.visibility import seen_letters
from pandora_dagster.documents.webpages.fields.specifications import written_specifications
from pandora_dagster.documents.webpages.html_reader import read_html
from pandora_dagster.documents.webpages.pdf_pages import UnreadablePageError, read_pdf
from pandora_dagster.documents.webpages.written_dates import first_date, month_of_year
from pandora_dagster.language.detection import language_of

_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|div|p|table|h1|script|a)\b", re.IGNORECASE)
_SNIFFED_BYTES = 1024
_BINARY = (
    "image/", "audio/", "video/", "font/", "application/zip", "application/gzip", "application/octet-stream", "application/x-",
    "application/vnd.", "application/msword",
)  # fmt: skip
_PLAIN_CONFIDENCE = 0.75
"""One source, the text itself, with half a vote on each side."""


def read_page(page: FetchedPage, *, invisible_attribute: str = "") -> PageDoc:
    """What a page says, in zones.

    `invisible_attribute`: for HTML that a browser has rendered, the name of the attribute that every invisible element carries; a visible
    element inside an invisible one carries it with the value "no". The page's style sheets are then not judged.

    Raises UnreadablePageError for a page whose bytes cannot be read, ConfigurationError where the extra `web` is not installed.
    """
    media = page.headers.get("content-type", "").partition(";")[0].strip().lower()
    head = page.body[:_SNIFFED_BYTES]
    if b"%PDF-" in head:
        return _pdf_document(page)
    if media == "application/pdf":
        raise UnreadablePageError("the address says PDF, its bytes are none")
    if media in ("text/plain", "application/json", "text/csv", "text/markdown") or media.endswith("+json"):
        return _plain_document(page)
    if "html" in media or _HTML.search(head):
        return read_html(page, invisible_attribute)
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if media.startswith(_BINARY) or (b"\0" in head and not wide and not media):
        raise UnreadablePageError(f"{media or 'a binary file'} is not a page that can be read")
    return (
        read_html(page, invisible_attribute)
        if media in ("text/xml", "application/xml") or media.endswith("+xml")
        else _plain_document(page)
    )


def _pdf_document(page: FetchedPage) -> PageDoc:
    pdf = read_pdf(page.body)
    zones = [
        Zone(kind=ZoneKind.MAIN_TEXT, text=text, fields={"page": str(number)}, confidence=_PLAIN_CONFIDENCE, source=ZoneSource.PDF)
        for number, text in enumerate(pdf.pages, 1)
        if text
    ]
    zones += [
        Zone(
            kind=ZoneKind.HIDDEN,
            text=text,
            fields={"page": str(number), "hidden_by": "invisible in the PDF"},
            confidence=0,
            visible=False,
            source=ZoneSource.PDF,
        )
        for number, text in enumerate(pdf.hidden, 1)
        if text
    ]
    whole = "\n".join(pdf.pages)
    lines = whole.splitlines()
    title = lines[0][:300] if lines else ""
    agreed = bool(pdf.title) and pdf.title.lower() in whole.lower()
    if agreed or not title:
        title = pdf.title
    date, shown = _pdf_date(lines, pdf.created)
    evidence = {"title": FieldEvidence(sources=(ZoneSource.PDF,), confidence=0.75 if agreed else 0.5)} if title else {}
    if date:
        evidence["date"] = FieldEvidence(sources=(ZoneSource.PDF,) if shown else (ZoneSource.META,), confidence=0.75 if shown else 0.3)
    fields = PageFields(title=title or None, date=date or None, specs=written_specifications(whole))
    return _document(page, PageType.PDF, title, whole, zones, fields, evidence, pdf.notices)


def _pdf_date(lines: list[str], created: str) -> tuple[str, bool]:
    """The first date that a short line writes, else the date of creation."""
    for line in lines:
        if len(line.split()) <= 20 and (day := first_date(line)):
            return day, True
    month = next((found for line in lines if len(line.split()) <= 12 and (found := month_of_year(line))), "")
    return (month, True) if month else (first_date(created.removeprefix("D:")[:8]), False)


def _plain_document(page: FetchedPage) -> PageDoc:
    decoded = decode(page.body, page.headers.get("content-type", ""))
    text, secret = seen_letters(decoded.text.replace("\r\n", "\n").replace("\r", "\n").strip())
    zones = [Zone(kind=ZoneKind.MAIN_TEXT, text=text, confidence=_PLAIN_CONFIDENCE)] if text else []
    if secret:
        zones.append(
            Zone(kind=ZoneKind.HIDDEN, text=secret, fields={"hidden_by": "letters that no font shows"}, confidence=0, visible=False)
        )
    kind = PageType.ERROR if page.status >= 400 else PageType.INFO
    return _document(page, kind, "", text, zones, PageFields(), {}, decoded.notices)


def _document(
    page: FetchedPage,
    kind: PageType,
    title: str,
    text: str,
    zones: list[Zone],
    fields: PageFields,
    evidence: dict[str, FieldEvidence],
    notices: tuple[str, ...],
) -> PageDoc:
    return PageDoc(
        url=page.url,
        final_url=page.final_url,
        retrieved_at=page.fetched_at,
        page_type=kind,
        title=title,
        language=language_of(text),
        zones=tuple(zones),
        extracted_data=fields,
        evidence=evidence,
        links=(),
        notices=(*page.notices, *notices),
    )
