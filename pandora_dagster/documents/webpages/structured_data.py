"""What a page states about itself for machines: JSON-LD, microdata, `meta` elements. It is not seen, so the visible page has to agree."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pandora_dagster.contracts.web.page_doc import ZoneSource
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.documents.webpages.elements.html_tree import Element, full_text, words

_NOTHING: Mapping[str, Any] = {}
_MAX_ITEMS = 500
_MAX_DEPTH = 12
_COMMENT_MARKS = ("<!--", "-->", "//", "<![CDATA[", "]]>")
_ARTICLES_NAMES = (
    "article newsarticle blogposting reportagenewsarticle techarticle scholarlyarticle report opinionnewsarticle "
    "analysisnewsarticle liveblogposting socialmediaposting"
)
ARTICLES = frozenset(_ARTICLES_NAMES.split())
PRODUCTS = frozenset(["product", "productgroup", "individualproduct", "productmodel", "vehicle", "car"])
POSTS = frozenset(["discussionforumposting", "qapage", "question", "comment", "answer"])
_MADE = (
    ARTICLES
    | frozenset(
        ["review", "webpage", "itempage", "creativework", "howto", "recipe", "faqpage", "aboutpage", "blog", "dataset", "videoobject"]
    )
    | POSTS
)
_META_NAMES = {
    "og:title": "title", "twitter:title": "title",
    "author": "author", "article:author": "author", "dc.creator": "author", "parsely-author": "author",
    "article:published_time": "date", "date": "date",
    "dc.date": "date", "dc.date.issued": "date", "dcterms.issued": "date", "datepublished": "date", 
    "publish-date": "date", "parsely-pub-date": "date",
    "article:modified_time": "modified", "og:updated_time": "modified", "dcterms.modified": "modified", "last-modified": "modified",
    "product:price:amount": "price", "og:price:amount": "price", "product:price:currency": "currency", "og:price:currency": "currency",
    "product:availability": "availability", "og:availability": "availability",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """One value that structured data gives to a field of the page."""

    name: str
    value: str
    source: ZoneSource
    shown: bool = False
    """Whether the value is the text of a visible element."""
    element: Element = None


@dataclass(slots=True)
class StructuredData:
    """All statements in order of trust, the types of the page's items, and the texts that they hold."""

    statements: list[Statement] = field(default_factory=list[Statement])
    types: set[str] = field(default_factory=set[str])
    texts: list[str] = field(default_factory=list[str])
    canonical: str = ""
    notices: list[str] = field(default_factory=list[str])

    def of(self, name: str) -> list[Statement]:
        """The statements about a field."""
        return [statement for statement in self.statements if statement.name == name]


def json_ld(root: Element, data: StructuredData) -> None:
    """Add what the JSON-LD scripts say; they must still be in the tree."""
    for script in root.iter("script"):
        if not str(script.get("type") or "").strip().lower().startswith("application/ld+json"):
            continue
        try:
            value = parse_json(_without_comment_marks(script.text or ""))
        except PlainDataError:
            data.notices.append("JSON-LD that is not JSON was left out")
            continue
        items = list(_items(value, 0))[:_MAX_ITEMS]
        nested = {id(child) for item in items for key, child in item.items() if key not in ("@graph", "mainEntity", "mainEntityOfPage")}
        for item in items:
            _add_item(item, data, ZoneSource.JSON_LD, main=id(item) not in nested)


def _without_comment_marks(text: str) -> str:
    """The JSON of a script that is written as a comment, for readers of long ago."""
    text = text.strip()
    for _ in range(3):
        for mark in _COMMENT_MARKS:
            text = text.removeprefix(mark).removesuffix(mark).strip()
    return text


def meta_data(root: Element, data: StructuredData) -> None:
    """Add what `meta` and `link` elements say."""
    for meta in root.iter("meta"):
        name = str(meta.get("property") or meta.get("name") or meta.get("http-equiv") or "").strip().lower()
        value = words(meta.get("content"))
        if (known := _META_NAMES.get(name)) and value and not (known == "author" and value.startswith("http")):
            data.statements.append(Statement(known, value, ZoneSource.META))
        if name == "og:type" and value:
            data.types.add(value.lower().replace("og:", ""))
    for link in root.iter("link"):
        if "canonical" in str(link.get("rel") or "").lower().split() and link.get("href"):
            data.canonical = data.canonical or str(link.get("href")).strip()


def microdata(root: Element, data: StructuredData) -> None:
    """Add what microdata and the `rel` and `itemprop` marks of visible elements say."""
    for element in root.iterfind(".//*[@itemscope]"):
        data.types |= _types(str(element.get("itemtype") or "").split())
    for count, element in enumerate(root.iterfind(".//*[@itemprop]")):
        if count > _MAX_ITEMS * 10:
            break
        scope = _scope(element)
        for prop in str(element.get("itemprop")).lower().split():
            if name := _field_of(prop, scope):
                value, shown = _microdata_value(element)
                if value:
                    data.statements.append(Statement(name, value, ZoneSource.MICRODATA, shown, element))
    for element in root.iterfind(".//a[@rel]"):
        if "author" in str(element.get("rel")).lower().split() and (text := full_text(element)):
            data.statements.append(Statement("author", text, ZoneSource.MICRODATA, True, element))


def _items(value: object, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _items(item, depth + 1)
    elif isinstance(value, dict):
        item = cast("dict[str, Any]", value)
        if "@type" in item:
            yield item
        for key, child in item.items():
            if key in ("@graph", "mainEntity", "mainEntityOfPage", "itemListElement", "item", "hasVariant", "review", "about", "hasPart"):
                yield from _items(child, depth + 1)


def _add_item(item: Mapping[str, Any], data: StructuredData, source: ZoneSource, *, main: bool) -> None:
    types = _types(_strings(item.get("@type")))
    data.types |= types
    data.texts.extend(
        text
        for key in ("name", "headline", "description", "articleBody", "reviewBody", "text", "award")
        for text in _strings(item.get(key))
        if text
    )
    if not main:
        return

    def state(name: str, value: object) -> None:
        data.statements.extend(Statement(name, words(text), source) for text in _strings(value)[:1] if words(text))

    if types & PRODUCTS:
        state("title", item.get("name"))
        offers = _mappings(item.get("offers"))
        for offer in [*offers, *(nested for group in offers for nested in _mappings(group.get("offers")))]:
            specification = next(iter(_mappings(offer.get("priceSpecification"))), _NOTHING)
            state("price", offer.get("price") or offer.get("lowPrice") or specification.get("price"))
            state("currency", offer.get("priceCurrency") or specification.get("priceCurrency"))
            state("availability", offer.get("availability"))
        for pair in _mappings(item.get("additionalProperty")):
            if (key := words("".join(_strings(pair.get("name"))))) and (value := words("".join(_strings(pair.get("value"))))):
                data.statements.append(Statement("spec", f"{key}\t{value}", source))
    elif types & _MADE:
        if types & (ARTICLES | POSTS):
            state("title", item.get("headline") or item.get("name"))
        state("date", item.get("datePublished") or item.get("dateCreated"))
        state("modified", item.get("dateModified"))
        state("author", [person.get("name") for person in _mappings(item.get("author"))] or item.get("author"))


def _scope(element: Element) -> frozenset[str]:
    parent = element.getparent()
    while parent is not None:
        if parent.get("itemscope") is not None:
            return frozenset(_types(str(parent.get("itemtype") or "").split()))
        parent = parent.getparent()
    return frozenset()


def _field_of(prop: str, scope: frozenset[str]) -> str:
    if prop in ("price", "lowprice"):
        return "price"
    if prop in ("pricecurrency", "availability"):
        return prop.removeprefix("price")
    if prop in ("name", "headline"):
        return (
            "title" if scope & (PRODUCTS | ARTICLES) and (prop == "headline" or scope & PRODUCTS) else "author" if "person" in scope else ""
        )
    return {"author": "author", "datepublished": "date", "datemodified": "modified", "datecreated": "date"}.get(prop, "")


def _microdata_value(element: Element) -> tuple[str, bool]:
    """The value of a property, and whether it is what the element shows."""
    if element.get("itemscope") is not None:
        named = element.find(".//*[@itemprop='name']")
        return (full_text(named), True) if named is not None else (full_text(element), True)
    for attribute in ("content", "href", "src", "datetime", "value"):
        if attribute == "href" and str(element.tag).lower() == "a":
            break
        if value := element.get(attribute):
            return words(value), False
    return full_text(element), True


def _types(names: Iterable[str]) -> set[str]:
    return {re.split(r"[/#:]", name.strip())[-1].lower() for name in names if name.strip()}


def _strings(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for item in cast("list[object]", value) for text in _strings(item)]
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)
        return _strings(named.get("name") or named.get("@value") or named.get("@id"))
    return [str(value)] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else []


def _mappings(value: object) -> list[Mapping[str, Any]]:
    if isinstance(value, list):
        return [item for entry in cast("list[object]", value) for item in _mappings(entry)]
    return [cast("dict[str, Any]", value)] if isinstance(value, dict) else []
