"""Blocks to zones: what each block of a page is for, and how many independent sources agree that the page is about it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, OUTSIDE_KINDS, Zone, ZoneKind
from pandora_dagster.documents.webpages.elements.blocks import Block, is_control, is_heading, prose_like
from pandora_dagster.documents.webpages.elements.html_tree import Element, selector_of, tag_of
from pandora_dagster.documents.webpages.layout.main_text import MainText
from pandora_dagster.documents.webpages.layout.posts import Post
from pandora_dagster.documents.webpages.layout.regions import Region, Regions
from pandora_dagster.documents.webpages.written_dates import first_date

_MAX_LINK_SHARE = 0.5
_ONLY_LINKS, _LINK_WEIGHT = 0.8, 3
"""A block that is a link and nothing else leads to another page, where the page is no list."""
_MAIN_TEXT_WEIGHT = 2
"""Votes of the main-text library, which judges by the whole page, against one of each sign of a block."""
_LONG_TEXT = 1000
_LONG_SHARE = 0.5
"""A main text of that many characters and that share of the main part is an article, which the library was made for: twice the votes."""
_NAME_WEIGHT = 4
"""Votes of a class name that says that an element is beside the text: only all other signs together outweigh it."""
_MIN_MAIN_SHARE = 0.3
"""Share of the main part's text that the library has to find before it counts against a block: of short pages it finds too little."""
_MIN_STATED = 25
"""Characters of a block, from which on its occurrence in structured data is no chance."""


@dataclass(slots=True)
class Evidence:
    """The sources that judge the blocks of a page."""

    regions: Regions
    main: MainText
    stated: str
    """The texts of structured data without white space."""
    listing: bool
    """Whether links are what the page is about."""
    posts: Sequence[Post] = ()
    votes_of_main: int = 0
    post_of: Mapping[Element, int] = field(default_factory=dict[Element, int])


@dataclass(frozen=True, slots=True)
class JudgedBlock:
    """A block with the kind of its zone, its confidence, and the post that it belongs to or -1."""

    block: Block
    kind: ZoneKind
    confidence: float
    post: int = -1


def judge(blocks: Sequence[Block], evidence: Evidence) -> list[JudgedBlock]:
    """Every block with its kind and confidence."""
    inside = [block for block in blocks if evidence.regions.contains(block.element)]
    size = sum(len(block.text) for block in inside)
    found = sum(len(block.text) for block in inside if evidence.main.has(block))
    evidence.votes_of_main = _MAIN_TEXT_WEIGHT if found >= size * _MIN_MAIN_SHARE and found > 0 else 0
    if found >= _LONG_TEXT and found >= size * _LONG_SHARE:
        evidence.votes_of_main *= 2
    evidence.post_of = {post.element: number for number, post in enumerate(evidence.posts)}
    last = max((place for place, block in enumerate(blocks) if evidence.regions.contains(block.element)), default=len(blocks))
    first = next((place for place, block in enumerate(blocks) if evidence.regions.contains(block.element)), 0)
    title = next((place for place, block in enumerate(blocks) if block.element is evidence.regions.heading), -1)
    return [_judge(block, evidence, place, first, last, title) for place, block in enumerate(blocks)]


def _judge(block: Block, evidence: Evidence, place: int, first: int, last: int, title: int) -> JudgedBlock:
    regions = evidence.regions
    region = regions.of.get(block.element, Region())
    if place == title:
        return JudgedBlock(block, ZoneKind.TITLE, 1.0)
    before_title = place < title and regions.container is not block.element
    if region.kind is not None and not (
        region.named
        and regions.contains(block.element)
        and _confidence(block, evidence, before_title=before_title, named=True) >= MIN_CONFIDENCE
    ):
        return JudgedBlock(block, region.kind, _outside_confidence(block, evidence, named=region.named))
    if (
        before_title
        and not regions.explicit
        and regions.certain
        and not regions.beside_heading(block.element)
        and not first_date(block.text)
    ):
        return JudgedBlock(block, ZoneKind.HEADER, _outside_confidence(block, evidence, named=True))
    if regions.certain and not regions.contains(block.element):
        kind = ZoneKind.HEADER if place < first else ZoneKind.FOOTER if place > last else ZoneKind.BOILERPLATE
        return JudgedBlock(block, kind, _outside_confidence(block, evidence, named=True))
    post = (
        next((evidence.post_of[e] for e in (block.element, *block.element.iterancestors()) if e in evidence.post_of), -1)
        if evidence.post_of
        else -1
    )
    confidence = _confidence(block, evidence, before_title=before_title, named=region.named and region.kind is not None)
    return JudgedBlock(block, ZoneKind.COMMENTS if post >= 0 else _inner_kind(block, region, evidence), confidence, post)


def _inner_kind(block: Block, region: Region, evidence: Evidence) -> ZoneKind:
    if region.inside is not None:
        return region.inside
    if block.rows:
        return ZoneKind.PRODUCT_INFO if block.tag == "dl" or all(len(row) == 2 for row in block.rows) else ZoneKind.TABLE
    if is_control(block) or (
        any(tag_of(e) == "form" for e in block.element.iterancestors())
        and next(evidence.regions.container.iterancestors("form"), None) is None
    ):
        return ZoneKind.FORM
    return ZoneKind.LIST if block.tag == "li" else ZoneKind.MAIN_TEXT


def _confidence(block: Block, evidence: Evidence, *, before_title: bool, named: bool) -> float:
    """The share of votes for a block of the main part, with half a vote on each side for what is not known."""
    votes: list[tuple[bool, int]] = [(not before_title, 1), (prose_like(block), 1)]
    if named:
        votes.append((False, _NAME_WEIGHT))
    if not evidence.listing or block.link_share < _MAX_LINK_SHARE:
        votes.append((block.link_share < _MAX_LINK_SHARE, _LINK_WEIGHT if block.link_share >= _ONLY_LINKS else 1))
    if evidence.votes_of_main:
        votes.append((evidence.main.has(block), evidence.votes_of_main))
    key = re.sub(r"\s", "", block.text)
    if len(key) >= _MIN_STATED and key in evidence.stated:
        votes.append((True, 2))
    if is_control(block):
        votes.append((False, 3))
    return _share(votes)


def _outside_confidence(block: Block, evidence: Evidence, *, named: bool) -> float:
    """How sure it is that a block is not what the page is about."""
    votes = [(True, 1 if named else 2), (block.link_share >= _MAX_LINK_SHARE or not prose_like(block), 1)]
    if evidence.votes_of_main:
        votes.append((not evidence.main.has(block), 1))
    return _share(votes)


def _share(votes: Sequence[tuple[bool, int]]) -> float:
    agree = sum(weight for vote, weight in votes if vote)
    return round((agree + 0.5) / (sum(weight for _, weight in votes) + 1), 2)


def zones_of(judged: Sequence[JudgedBlock], posts: Sequence[Post]) -> list[Zone]:
    """Neighbours of one kind, post and confidence as one zone."""
    zones: list[Zone] = []
    group: list[JudgedBlock] = []
    for item in [*judged, None]:
        if group and (item is None or _band(item) != _band(group[0])):
            zones.append(_zone(group, posts))
            group = []
        if item is not None:
            group.append(item)
    return zones


def _band(item: JudgedBlock) -> tuple[ZoneKind, int, int]:
    """What neighbours must share to be one zone: 0.5 and 0.8 are the limits of 000 section 22."""
    return item.kind, item.post, 0 if item.kind in OUTSIDE_KINDS or item.post >= 0 else (item.confidence >= 0.5) + (item.confidence >= 0.8)


def _zone(group: Sequence[JudgedBlock], posts: Sequence[Post]) -> Zone:
    size = sum(len(item.block.text) for item in group)
    confidence = sum(item.confidence * len(item.block.text) for item in group) / max(1, size)
    fields: dict[str, str] = {}
    if group[0].post >= 0:
        post = posts[group[0].post]
        fields = {name: value for name, value in (("author", post.author), ("date", post.date)) if value}
    return Zone(
        kind=group[0].kind,
        text="\n".join(_line(item.block) for item in group),
        fields=fields,
        selector=selector_of(group[0].block.element),
        confidence=round(confidence, 2),
    )


def _line(block: Block) -> str:
    """The text of a block, a heading with its Markdown marks."""
    if is_heading(block) and block.tag != "h1":
        level = int(block.tag[1]) if block.tag[1:].isdigit() else 2
        return f"{'#' * level} {block.text}"
    return block.text
