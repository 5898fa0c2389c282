"""What a page is for, by its form: what it states, its elements, and the share of each kind of text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, PageType, ZoneKind
from pandora_dagster.documents.webpages.elements.blocks import is_control, is_heading
from pandora_dagster.documents.webpages.elements.html_tree import Element, tag_of
from pandora_dagster.documents.webpages.layout.zones import JudgedBlock
from pandora_dagster.documents.webpages.structured_data import ARTICLES, PRODUCTS, StructuredData

_CAPTCHA = re.compile(
    r"g-recaptcha|h-captcha|hcaptcha|recaptcha|cf-turnstile|turnstile|challenge-form|captcha|funcaptcha|arkose|friendly-challenge",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"\b(?:404|410|not found|no longer (?:exists|available here)|page (?:is )?missing|doesn.?t exist|does not exist|nicht gefunden|"
    r"nicht (?:mehr )?vorhanden|leider nichts|existiert nicht|"
    r"introuvable|n.existe (?:pas|plus)|no encontrad[ao]|no existe|non trovat[ao]|niet gevonden|hittades inte|ikke fundet|não "
    r"encontrad[ao])\b",
    re.IGNORECASE,
)
_BUTTONS = frozenset({"hidden", "submit", "button", "image", "reset"})
_FEW_WORDS = 120
_LITTLE = 60
_MAX_PROSE_BESIDE_SPECS = 0.3
"""Share of sentences of a page of specifications; a day on it is one of its subject, or of its last change."""


@dataclass(frozen=True, slots=True)
class WallMarks:
    """What may keep a visitor from the content."""

    password: bool
    captcha: bool
    """An element of a known captcha."""
    challenge: bool
    """All that one can do on the page is tick one box, or type what a picture shows."""


@dataclass(frozen=True, slots=True)
class PageForm:
    """What decides the type of a page."""

    url: str
    status: int
    title: str
    judged: Sequence[JudgedBlock]
    structured: StructuredData
    priced: bool
    """Whether an amount is the price of the page."""
    available: bool
    dated: bool
    """Whether a visible author or date is the page's own."""
    authored: bool
    """Whether a visible author is the page's own."""
    posts: int
    specs: int
    walls: WallMarks


def wall_marks(root: Element) -> WallMarks:
    """The marks of a page, before its scripts and frames are taken out."""
    password = any(str(e.get("type") or "").lower() == "password" for e in root.iter("input"))
    marked = (
        f"{e.get('class') or ''} {e.get('id') or ''} {e.get('src') or ''} {e.get('name') or ''}"
        for e in root.iter("div", "iframe", "script", "form", "img", "input", "section", "span")
    )
    return WallMarks(password, any(_CAPTCHA.search(marks) for marks in marked), _is_challenge(root))


def _is_challenge(root: Element) -> bool:
    fields = [e for e in root.iter("input", "textarea", "select") if str(e.get("type") or "").lower() not in _BUTTONS]
    if len(fields) != 1 or tag_of(fields[0]) != "input":
        return False
    form = next(iter(fields[0].iterancestors("form")), None)
    kind = str(fields[0].get("type") or "text").lower()
    return form is not None and (kind == "checkbox" or (kind == "text" and next(form.iter("img", "canvas"), None) is not None))


def page_type(form: PageForm) -> tuple[PageType, str]:
    """The type, and a notice of what keeps the page's content away or ""."""
    inner = [item for item in form.judged if item.kind not in OUTSIDE_KINDS]
    count = sum(len(item.block.text.split()) for item in inner)
    wall = _wall(form, inner, count)
    return wall if wall is not None else (_content_type(form, inner, count), "")


def _wall(form: PageForm, inner: Sequence[JudgedBlock], count: int) -> tuple[PageType, str] | None:
    if (count <= _FEW_WORDS and form.walls.captcha) or (count <= _LITTLE and form.walls.challenge and not form.priced):
        return PageType.CAPTCHA, "a captcha stands before the content: a person has to open the page"
    if form.status in (401, 407) or (form.walls.password and count <= _FEW_WORDS):
        return PageType.LOGIN, "a login stands before the content: a person has to open the page"
    if form.status >= 400:
        return PageType.ERROR, f"the server answered {form.status}"
    heading = " ".join([form.title, *(item.block.text for item in inner if item.kind is ZoneKind.TITLE or is_heading(item.block))])
    first = " ".join(item.block.text for item in inner[:4])
    if not form.priced and count <= _FEW_WORDS and (_MISSING.search(heading) or (count <= _LITTLE and _MISSING.search(first))):
        return PageType.ERROR, "the page says that it does not exist, with the status of one that does"
    asked = sum(len(item.block.text) for item in form.judged if item.kind is ZoneKind.CONSENT)
    heads = " ".join(item.block.text for item in inner if item.kind is ZoneKind.TITLE or is_heading(item.block)).lower()
    if count <= _FEW_WORDS and "cookie" in heads and _has_controls(inner):
        return PageType.CONSENT, "a consent dialogue takes the place of the content"
    if asked and asked > 2 * sum(len(item.block.text) for item in inner if item.confidence >= 0.5):
        return PageType.CONSENT, "a consent dialogue stands before the content"
    return None


def _has_controls(inner: Sequence[JudgedBlock]) -> bool:
    return any(is_control(item.block) or item.block.tag == "label" or item.kind is ZoneKind.FORM for item in inner)


def _content_type(form: PageForm, inner: Sequence[JudgedBlock], count: int) -> PageType:
    types = form.structured.types
    size = max(1, sum(len(item.block.text) for item in inner))
    shares = {
        kind: sum(len(i.block.text) for i in inner if i.kind is kind) / size
        for kind in (ZoneKind.TABLE, ZoneKind.LIST, ZoneKind.PRODUCT_INFO, ZoneKind.COMMENTS)
    }
    if (form.posts >= 2 and shares[ZoneKind.COMMENTS] > 0.5) or types & {"qapage", "discussionforumposting"}:
        return PageType.FORUM
    if urlsplit(form.url).path in ("", "/") and not urlsplit(form.url).query:
        return PageType.HOME
    linked = sum(item.block.links for item in inner) / size
    article = bool(types & (ARTICLES | {"article"})) or form.dated
    prose = sum(len(i.block.text) for i in inner if i.block.link_share < 0.3 and len(i.block.text.split()) >= 12) / size
    listing = _is_listing(inner, linked, types) and not (types & ARTICLES or prose > 0.5)
    if not listing and ((form.priced and not article) or (types & PRODUCTS and not types & ARTICLES and (form.priced or form.available))):
        return PageType.PRODUCT
    sentences = sum(len(i.block.text) for i in inner if not i.block.rows and len(i.block.text.split()) >= 12) / size
    is_text = bool(types & (ARTICLES | {"article"})) or form.authored or (form.dated and sentences > _MAX_PROSE_BESIDE_SPECS)
    if form.specs >= 3 and not is_text and not form.priced and not listing:
        return PageType.SPEC
    wide = [item.block for item in inner if item.kind is ZoneKind.TABLE and any(len(row) >= 3 for row in item.block.rows)]
    if "howto" in types or "recipe" in types or _has_steps(inner, size):
        return PageType.HOWTO
    if wide and article and (types & ARTICLES or form.dated):
        if shares[ZoneKind.TABLE] < 0.5:
            return PageType.COMPARISON if _compares(inner) else PageType.ARTICLE
        return PageType.TABLE
    if wide and shares[ZoneKind.TABLE] >= 0.4:
        return PageType.TABLE
    if listing:
        return PageType.LIST
    if types & PRODUCTS and not article:
        return PageType.PRODUCT
    return PageType.ARTICLE if article and count > 30 else PageType.INFO


def _is_listing(inner: Sequence[JudgedBlock], linked: float, types: set[str]) -> bool:
    """Whether links or entries of the same form are most of a page."""
    entries = [item.block for item in inner if item.block.tag in ("li", "article", "tr", "h2", "h3", "a") and item.block.links]
    size = sum(len(item.block.text) for item in inner if item.kind is not ZoneKind.TITLE)
    linked_lines = [item for item in inner if item.kind is not ZoneKind.TITLE and item.block.links and not item.block.text.endswith(".")]
    if len(linked_lines) >= 3 and len(linked_lines) * 2 > sum(item.kind is not ZoneKind.TITLE for item in inner):
        return True
    return (
        "itemlist" in types
        or "collectionpage" in types
        or linked > 0.35
        or (len(entries) >= 3 and sum(len(b.text) for b in entries) * 2 > size)
    )


def _has_steps(inner: Sequence[JudgedBlock], size: int) -> bool:
    """Whether a numbered list of sentences is a good part of the page."""
    steps = [
        item.block
        for item in inner
        if item.block.tag == "li" and _in_numbered(item.block.element) and item.block.link_share < 0.3 and len(item.block.text.split()) >= 5
    ]
    return len(steps) >= 3 and sum(len(step.text) for step in steps) > 0.3 * size


def _in_numbered(element: Element) -> bool:
    return next((tag_of(e) for e in element.iterancestors("ul", "ol")), "") == "ol"


def _compares(inner: Sequence[JudgedBlock]) -> bool:
    """Whether a table has a column of names and several columns of values for them."""
    for item in inner:
        rows = item.block.rows
        if len(rows) >= 3 and min(len(row) for row in rows[-2:]) >= 3:
            return True
    return False
