"""The regions of a page: what its roles, element names, class names and the shape of its tree say about the purpose of each element."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from pandora_dagster.contracts.web.page_doc import ZoneKind
from pandora_dagster.documents.webpages.elements.blocks import Block, sizes
from pandora_dagster.documents.webpages.elements.html_tree import HEADINGS, Element, elements, full_text, same_words, tag_of
from pandora_dagster.documents.webpages.layout.main_text import MainText

_ROLES = {
    "navigation": ZoneKind.NAVIGATION, "menu": ZoneKind.NAVIGATION, "menubar": ZoneKind.NAVIGATION,
    "banner": ZoneKind.HEADER, "contentinfo": ZoneKind.FOOTER,
    "complementary": ZoneKind.SIDEBAR, "search": ZoneKind.FORM,
    "dialog": ZoneKind.BOILERPLATE, "alertdialog": ZoneKind.BOILERPLATE, "toolbar": ZoneKind.BOILERPLATE,
    "doc-toc": ZoneKind.NAVIGATION, "directory": ZoneKind.NAVIGATION,
}  # fmt: skip
_TAGS = {
    "nav": ZoneKind.NAVIGATION,
    "aside": ZoneKind.SIDEBAR,
    "footer": ZoneKind.FOOTER,
    "header": ZoneKind.HEADER,
    "menu": ZoneKind.NAVIGATION,
    "search": ZoneKind.FORM,
}
_NAMES = {
    ZoneKind.CONSENT: "cookie cookies consent gdpr ccpa onetrust didomi cookiebar cookiebanner usercentrics",
    ZoneKind.NAVIGATION: "nav navbar navigation navi menu menubar submenu breadcrumb breadcrumbs crumb crumbs pagination pager "
        "paginator skip skiplink toc sitemap",
    ZoneKind.FOOTER: "footer foot ft colophon copyright imprint legal bottombar",
    ZoneKind.HEADER: "masthead topbar hd siteheader pageheader topnav toolbar",
    ZoneKind.SIDEBAR: "sidebar rail sidecol",
    ZoneKind.RELATED: "related recommended recommendations recommendation recirc similar upsell crosssell readmore readnext "
        "morelike trending mostread popular moreposts",
    ZoneKind.ADVERT: "ad ads advert adverts advertisement advertising adsense sponsor sponsored promo promos promotion promobox "
        "outbrain taboola dfp banner",
    ZoneKind.BOILERPLATE: "newsletter subscribe subscription signup share sharing social socials addthis sharedaddy follow basket "
        "cart minicart popup modal "
    "overlay signature sig login register paywall printonly feedback tags taglist tagcloud shoutbox",
}  # fmt: skip
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""Names of classes and ids that pages use by convention, as the readers of readability and trafilatura know them."""
_INSIDE = {
    ZoneKind.COMMENTS: "comments comment commentlist disqus replies",
    ZoneKind.REVIEWS: "reviews review testimonials",
}
_INSIDE_BY_NAME = {name: kind for kind, names in _INSIDE.items() for name in names.split()}
_TOKENS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_MAX_NAMED_SHARE = 0.4
"""An element with a larger share of the page's text is not what its class names say, such as `has-sidebar` on a body."""
_MAIN_SHARE = 0.5
"""Share of the page's text outside links that the element around the heading has to hold to be its main part."""
_MAX_HEADING = 80
"""Characters of a text that may be a heading: a page often names its subject longer than its title element does."""
_SECTIONS = frozenset({"article", "main", "section", "aside", "nav", "blockquote"})


@dataclass(frozen=True, slots=True)
class Region:
    """What an element is for: `kind` None inside the main part; `named` where only class names say so."""

    kind: ZoneKind | None = None
    named: bool = False
    inside: ZoneKind | None = None
    """Comments or reviews, which are a part of what the page says."""


_MAIN = Region()


@dataclass(slots=True)
class Regions:
    """The region of each element, the main part of the page, and the heading."""

    of: Mapping[Element, Region]
    container: Element
    certain: bool
    """Whether the page says what its main part is, by an element or by its heading."""
    explicit: bool
    """Whether an element says it: what is above the heading is then a part of it too."""
    heading: Element | None
    text: Mapping[Element, int]
    links: Mapping[Element, int]

    def contains(self, element: Element) -> bool:
        """Whether an element is in the main part."""
        return element is self.container or any(parent is self.container for parent in element.iterancestors())

    def beside_heading(self, element: Element) -> bool:
        """Whether an element shares with the heading an element inside the main part."""
        around = {parent for parent in self.heading.iterancestors()} if self.heading is not None else set[Element]()
        shared = next((parent for parent in element.iterancestors() if parent in around), None)
        return shared is not None and shared is not self.container and self.contains(shared)


def regions_of(body: Element, blocks: list[Block], main: MainText, title: str, name: str) -> Regions:
    """The regions of a visible page, whose title element has the part `name` for it."""
    text, links = sizes(body)
    heading = _heading(body, text, blocks, title, name)
    container, certain, explicit = _container(body, blocks, main, heading, text, links)
    around = {container, *container.iterancestors()}
    content = {element for element in (container, heading) if element is not None}
    content.update(parent for element in list(content) for parent in element.iterancestors())
    of: dict[Element, Region] = {}
    total = max(1, text.get(body, 0))
    for element in elements(body):
        parent = of.get(element.getparent(), _MAIN)
        small = element not in content and text.get(element, 0) <= total * _MAX_NAMED_SHARE
        of[element] = parent if parent.kind is not None and element not in around else _own_region(element, parent, small=small)
    return Regions(of, container, certain, explicit, heading, text, links)


def _own_region(element: Element, parent: Region, *, small: bool) -> Region:
    tag, role = tag_of(element), str(element.get("role") or "").strip().lower()
    names = _names(element) if small else ()
    if (role == "dialog" or element.get("aria-modal") == "true" or tag == "dialog") and small:
        return Region(
            ZoneKind.CONSENT
            if any(_BY_NAME.get(n) is ZoneKind.CONSENT for n in _names(element)) or _asks_consent(element)
            else ZoneKind.BOILERPLATE
        )
    kind = _ROLES.get(role) or (_TAGS.get(tag) if not role else None)
    if kind in (ZoneKind.HEADER, ZoneKind.FOOTER) and not role and any(tag_of(p) in _SECTIONS for p in element.iterancestors()):
        kind = ZoneKind.BOILERPLATE if kind is ZoneKind.FOOTER and small else None
        return Region(kind, named=True, inside=parent.inside)
    if kind is not None and small:
        return Region(kind)
    named = next((found for name in names if (found := _BY_NAME.get(name))), None)
    if named is not None:
        return Region(named, named=True)
    inside = next((found for name in _names(element) if (found := _INSIDE_BY_NAME.get(name))), None) if small else None
    return Region(None, inside=inside or parent.inside) if inside or parent.inside else _MAIN


def is_apart(element: Element) -> bool:
    """Whether an element within a line is named as something beside the text, such as a signature."""
    return (
        bool(element.get("class"))
        and tag_of(element) not in ("a", "b", "i", "em", "strong")
        and any(_BY_NAME.get(n) is ZoneKind.BOILERPLATE for n in _names(element))
    )


def _asks_consent(element: Element) -> bool:
    return "cookie" in "".join(element.itertext()).lower()


def _names(element: Element) -> tuple[str, ...]:
    """The words of an element's class and id, and the two of each pair joined: `read-next` is `readnext` too."""
    given = f"{element.get('class') or ''} {element.get('id') or ''}".split()
    names: list[str] = []
    for name in given[:12]:
        tokens = [token.lower() for token in _TOKENS.findall(name[:80])]
        names += [*tokens, *(a + b for a, b in pairwise(tokens))]
    return tuple(names)


def _heading(body: Element, text: Mapping[Element, int], blocks: list[Block], title: str, name: str) -> Element | None:
    """The heading of the page: the first `h1` with text outside a banner, else the text that its title element repeats, else the first
    heading of a main part."""
    headings = [h for h in body.iter("h1", "h2", "h3") if text.get(h)]
    found = [h for h in headings if tag_of(h) == "h1"]
    outside = [h for h in headings if not _in_banner(h)]
    is_titled = any(same_words(full_text(h), title) for h in found)  # then a heading in a banner is the name of the site
    same = [
        h
        for h in headings
        if (tag_of(h) == "h1" or not is_titled or not _in_banner(h))
        and same_words(full_text(h), name)
        and len(full_text(h)) * 2 >= len(name)
    ]
    if (own := next((h for h in same if tag_of(h) == "h1"), None)) is not None:
        return own
    if same and not any(same_words(full_text(h), name) for h in found):
        return same[0]  # the `h1` is the name of the site
    if found:
        return next((h for h in outside if tag_of(h) == "h1"), found[0])
    named = [block for block in blocks if _is_named(block, name)]
    if named:
        return max(named, key=lambda b: (b.tag in HEADINGS, b.text == name)).element
    for part in ("main", "article"):
        first = next((h for e in body.iter(part) for h in e.iter("h2", "h3") if text.get(h)), None)
        if first is not None:
            return first
    return None


def _is_named(block: Block, name: str) -> bool:
    """Whether a text may be the heading of a page without a heading element: the name in its title element, or that name continued."""
    if len(block.text) < 4 or block.rows or block.link_share >= 0.5 or not same_words(block.text, name):
        return False
    goes_on = block.text.lower().startswith(name.lower()) and len(block.text) <= _MAX_HEADING and not block.text.endswith((".", "!", "?"))
    return len(block.text) <= 2 * len(name) or goes_on


def _in_banner(element: Element) -> bool:
    """Whether an element is in what surrounds the main part: the header of the page, navigation, a sidebar or the footer."""
    inner = tag_of(element) == "h1"  # the header of many pages holds their heading too
    for parent in element.iterancestors():
        tag = tag_of(parent)
        inner = inner or tag in ("article", "main", "section")
        if (
            tag in ("nav", "aside", "footer")
            or str(parent.get("role") or "") in ("banner", "navigation")
            or (tag == "header" and not inner)
        ):
            return True
    return False


def _container(
    body: Element, blocks: list[Block], main: MainText, heading: Element | None, text: Mapping[Element, int], links: Mapping[Element, int]
) -> tuple[Element, bool, bool]:
    """The main part of a page, whether the page says so, and whether an element does."""
    mains = [e for e in body.iter() if isinstance(e.tag, str) and (tag_of(e) == "main" or e.get("role") == "main") and text.get(e)]
    part = mains[0] if len(mains) == 1 else body
    articles = [e for e in part.iter("article") if text.get(e) and not any(tag_of(p) == "article" for p in e.iterancestors())]
    own = [a for a in articles if heading is not None and any(p is a for p in heading.iterancestors())]
    if len(articles) == 1 or own:
        chosen = (own or articles)[0]
        if _plain(chosen, text, links) * 3 >= _plain(part, text, links):
            return chosen, True, True
    if mains and len(mains) == 1:
        return part, True, True
    if heading is not None:
        wanted = _plain(body, text, links) * _MAIN_SHARE
        for parent in heading.iterancestors():
            if _plain(parent, text, links) >= wanted:
                return parent, True, False
            if parent is body:
                break
    kept = [block.element for block in blocks if main.has(block)]
    return (_common(body, kept) if kept else body), False, False


def _plain(element: Element, text: Mapping[Element, int], links: Mapping[Element, int]) -> int:
    return text.get(element, 0) - links.get(element, 0)


def _common(body: Element, found: list[Element]) -> Element:
    """The innermost element around all elements."""
    path = [*reversed(list(found[0].iterancestors())), found[0]]
    for element in found[1:]:
        own = {*element.iterancestors(), element}
        path = [step for step in path if step in own]
    return path[-1] if path and body in path else body
