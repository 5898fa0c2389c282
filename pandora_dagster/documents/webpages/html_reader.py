"""An HTML page to PAGE_DOC: what is not seen is taken out first, every later reader works on the rest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, PageDoc, PageType, Zone, ZoneKind
from pandora_dagster.documents.webpages.charset import decode
from pandora_dagster.documents.webpages.elements.blocks import Block, blocks_of
from pandora_dagster.documents.webpages.elements.html_tree import Element, parse_html, tag_of, words
from pandora_dagster.documents.webpages.elements.links import absolute_address, base_address, links_of, next_address
from pandora_dagster.documents.webpages.elements.visibility import HiddenText, VisiblePage, visible_page
from pandora_dagster.documents.webpages.fields.bylines import Byline, byline_of, is_byline
from pandora_dagster.documents.webpages.fields.field_values import FieldValues
from pandora_dagster.documents.webpages.fields.page_fields import FieldSources, head_title_name, page_fields
from pandora_dagster.documents.webpages.fields.prices import PriceCandidate, choose_price, price_candidates
from pandora_dagster.documents.webpages.fields.specifications import specifications
from pandora_dagster.documents.webpages.layout.main_text import MAX_ELEMENTS, is_too_large, main_text
from pandora_dagster.documents.webpages.layout.page_types import PageForm, WallMarks, page_type, wall_marks
from pandora_dagster.documents.webpages.layout.posts import posts_of
from pandora_dagster.documents.webpages.layout.regions import is_apart, regions_of
from pandora_dagster.documents.webpages.layout.zones import Evidence, JudgedBlock, judge, zones_of
from pandora_dagster.documents.webpages.structured_data import ARTICLES, StructuredData, json_ld, meta_data, microdata
from pandora_dagster.language.detection import language_of

_MAX_HIDDEN = 200
_MAX_HIDDEN_CHARACTERS = 2000
_FEW_WORDS = 40
"""Words of a page under which it needs its scripts, where it has any."""


@dataclass(frozen=True, slots=True)
class _Head:
    """What is asked of a page before its unseen part is taken out."""

    host: str
    title: str
    language: str
    walls: WallMarks
    scripts: bool


def read_html(page: FetchedPage, invisible_attribute: str = "") -> PageDoc:
    """The zones, fields and links of an HTML page."""
    decoded = decode(page.body, page.headers.get("content-type", ""))
    root, notices = parse_html(decoded.text)
    structured = StructuredData()
    json_ld(root, structured)
    meta_data(root, structured)
    head = _head(root, urlsplit(page.final_url).hostname or "")
    base = base_address(root, page.final_url)
    visible = visible_page(root, invisible_attribute)
    body = next(iter(root.iter("body")), root)
    microdata(root, structured)
    blocks = blocks_of(body, is_apart)
    name = head_title_name(head.title, structured.of("title"), head.host)
    judged, evidence = _judged(visible, body, blocks, structured, (head.title, name))
    inner_text = "\n".join(item.block.text for item in judged if item.kind not in OUTSIDE_KINDS)
    language = head.language.partition("-")[0].lower() or language_of(inner_text)
    prices, price = _prices(visible, judged, head.language or language, structured)
    byline = byline_of(judged, head.language or language)
    form = PageForm(
        page.final_url,
        page.status,
        head.title,
        judged,
        structured,
        priced=price is not None,
        available=bool(structured.of("availability")),
        dated=_is_dated(byline, structured, priced=price is not None),
        authored=bool(byline.author),
        posts=len(evidence.posts),
        specs=len(specifications(judged, columns=True)),
        walls=head.walls,
    )
    kind, wall = page_type(form)
    if kind is PageType.LIST or kind is PageType.HOME:
        evidence.listing = True
        judged = judge(blocks, evidence)
    values = page_fields(FieldSources(judged, structured, head.title, head.host, kind, byline, evidence.posts, prices, price))
    zones = _with_fields(judged, byline, values, prices if kind in (PageType.PRODUCT, PageType.SPEC) else ())
    notices = (
        *page.notices,
        *decoded.notices,
        *notices,
        *visible.notices,
        *structured.notices,
        *values.notices,
        *_remarks(wall, head, inner_text, visible),
    )
    return _document(
        page,
        kind,
        language,
        values.values.get("title", "") or name,
        (*zones_of(zones, evidence.posts), *_hidden_zones(visible.hidden)),
        values,
        links_of(body, base),
        absolute_address(structured.canonical, base) if structured.canonical else "",
        notices,
        next_address(root, base),
    )


def _document(
    page: FetchedPage,
    kind: PageType,
    language: str,
    title: str,
    zones: tuple[Zone, ...],
    values: FieldValues,
    links: tuple[str, ...],
    canonical: str,
    notices: tuple[str, ...],
    next_page: str,
) -> PageDoc:
    return PageDoc(
        url=page.url,
        final_url=page.final_url,
        canonical_url=canonical,
        retrieved_at=page.fetched_at,
        page_type=kind,
        title=title,
        language=language,
        zones=zones,
        extracted_data=values.fields(),
        evidence=values.evidence,
        links=links,
        notices=tuple(dict.fromkeys(notices)),
        next_page=next_page,
    )


def _is_dated(byline: Byline, structured: StructuredData, *, priced: bool) -> bool:
    """Whether author and day of a page are those of an article; a page of a shop or an office names a day of its last change."""
    stated = bool(structured.of("author") and structured.of("date"))
    return bool(byline.author) or (not priced and (stated or bool(byline.date and byline.date != byline.modified)))


def _head(root: Element, host: str) -> _Head:
    title = next(
        (
            words(element.text)
            for element in root.iter("title")
            if element.text and not any(tag_of(p) == "svg" for p in element.iterancestors())
        ),
        "",
    )
    language = str(
        root.get("lang") or root.get("xml:lang") or next((b.get("lang") for b in root.iter("body") if b.get("lang")), "") or ""
    ).strip()
    scripts = any(script.get("src") or len(script.text or "") > 200 or "fetch(" in (script.text or "") for script in root.iter("script"))
    known = language if re.fullmatch(r"[A-Za-z]{2,3}(?:[-_]\w{2,8})*", language) else ""
    return _Head(host, title, known, wall_marks(root), scripts)


def _judged(
    visible: VisiblePage, body: Element, blocks: list[Block], structured: StructuredData, title: tuple[str, str]
) -> tuple[list[JudgedBlock], Evidence]:
    main = main_text(visible.root)
    regions = regions_of(body, blocks, main, *title)
    # Sections of an article with dates in them have the form of posts.
    is_article = bool(structured.types & (ARTICLES | {"article"}))
    posts = [] if is_article else posts_of(regions.container, dict(regions.text), dict(regions.links))
    stated = re.sub(r"\s", "", "\n".join(structured.texts))
    evidence = Evidence(regions, main, stated, False, posts)
    return judge(blocks, evidence), evidence


def _prices(
    visible: VisiblePage, judged: Sequence[JudgedBlock], language: str, structured: StructuredData
) -> tuple[list[PriceCandidate], PriceCandidate | None]:
    """The amounts of the main part, and the one that is the page's price; one that structured data states too counts more."""
    inner = [item for item in judged if item.kind not in OUTSIDE_KINDS and item.kind not in (ZoneKind.COMMENTS, ZoneKind.REVIEWS)]
    heading = next((place for place, item in enumerate(inner) if item.kind is ZoneKind.TITLE), -1)
    found = price_candidates(
        visible, [item.block for item in inner], heading, language, [statement.value for statement in structured.of("price")]
    )
    return found, choose_price(found)


def _with_fields(judged: Sequence[JudgedBlock], byline: Byline, values: FieldValues, prices: Sequence[PriceCandidate]) -> list[JudgedBlock]:
    """Blocks that hold a price of the product are of the zone `pricing`, its specifications `product_info`, the author or day `byline`."""
    holders = {candidate.holder for candidate in prices if candidate.score >= 1 or candidate.former}
    origins = {
        element: values.evidence[name].confidence
        for name, element in (("author", byline.author_element), ("date", byline.date_element))
        if element is not None and name in values.evidence
    }
    listed = {_letters(text) for pair in values.specs.items() for text in (*pair, " ".join(pair))}
    judged = [
        JudgedBlock(item.block, ZoneKind.PRODUCT_INFO, max(item.confidence, 0.5), item.post)
        if item.kind is ZoneKind.MAIN_TEXT and _letters(item.block.text) in listed
        else item
        for item in judged
    ]
    judged = [
        JudgedBlock(item.block, ZoneKind.BYLINE, origins[item.block.element], item.post)
        if item.block.element in origins and item.kind is ZoneKind.MAIN_TEXT and is_byline(item.block, byline)
        else item
        for item in judged
    ]
    return [
        JudgedBlock(item.block, ZoneKind.PRICING, max(item.confidence, 0.5), item.post)
        if item.block.element in holders and item.kind in (ZoneKind.MAIN_TEXT, ZoneKind.LIST, ZoneKind.FORM)
        else item
        for item in judged
    ]


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


def _remarks(wall: str, head: _Head, text: str, visible: VisiblePage) -> list[str]:
    """What a reader should know: a wall, and content that only scripts bring."""
    remarks = [wall] if wall else []
    if head.scripts and len(text.split()) < _FEW_WORDS and not wall:
        remarks.append("the page has scripts and little text: a browser may show more")
    if is_too_large(visible.root):
        remarks.append(f"over {MAX_ELEMENTS:,} elements: its main part was chosen without the library for main text")
    if any(True for link in visible.root.iter("link") if "stylesheet" in str(link.get("rel") or "").lower()):
        remarks.append("external style sheets were not loaded: text that only they hide counts as visible")
    return remarks


def _hidden_zones(hidden: Sequence[HiddenText]) -> list[Zone]:
    return [
        Zone(
            kind=ZoneKind.HIDDEN,
            text=item.text[:_MAX_HIDDEN_CHARACTERS],
            fields={"hidden_by": item.reason},
            selector=item.selector,
            confidence=0,
            visible=False,
        )
        for item in hidden[:_MAX_HIDDEN]
    ]
