"""Condenses a web page that came as Markdown by the zones of its headings, in the order of priority of 000 section 22."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pandora_dagster.compression.page_zones import PRIORITY
from pandora_dagster.compression.prose import Prose
from pandora_dagster.contracts.ports import TokenMeasure

_HEADING = re.compile(r"^#{1,6} \S.*$", re.MULTILINE)
_KINDS: Mapping[str, re.Pattern[str]] = {
    "navigation": re.compile(
        r"\b(?:related|similar|also (?:like|viewed|bought)|recommended|sponsored|menu|navigation|sitemap|footer|newsletter|subscribe"
        r"|follow us|cookies?|categories|breadcrumbs?|more from)\b",
        re.IGNORECASE,
    ),
    "pricing": re.compile(r"\b(?:pric(?:e|es|ing)|costs?|offers?|deals?|buy|availability|stock|shipping|delivery)\b", re.IGNORECASE),
    "reviews": re.compile(r"\b(?:reviews?|ratings?|testimonials?|opinions?|comments?)\b", re.IGNORECASE),
    "product_info": re.compile(
        r"\b(?:spec(?:s|ifications?)?|products?|features?|details?|description|overview|technical|dimensions?|in the box|warranty)\b",
        re.IGNORECASE,
    ),
}
"""What a heading announces. Navigation is asked first: "Related products" leads away from the page."""
_SHARES: Mapping[str, float] = {"pricing": 0.7, "product_info": 0.7, "reviews": 0.2, "other": 0.2, "navigation": 0.1}
"""Structured fields 70 %, narrative 20 %, the rest 10 %; what a zone leaves goes to the next."""


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """Zones in the order in which they stand, as (kind, text)."""

    zones: tuple[tuple[str, str], ...]

    def condensed(self, target: int, counter: TokenMeasure, must: frozenset[str]) -> str:
        """The page in at most `target` tokens: each zone by its place in the priority, all in their own order."""
        made: dict[int, str] = {}
        left = target
        pools = {share: int(share * target) for share in (0.7, 0.2, 0.1)}
        order = sorted(range(len(self.zones)), key=lambda n: (PRIORITY.index(self.zones[n][0]), n))
        for again in (False, True):
            for number in order:
                kind, text = self.zones[number]
                share, before = _SHARES[kind], counter.count(made.get(number, ""))
                room = left + before if again else min(left, pools[share])
                shown = text if counter.count(text) < room else self._shortened(number, room - 1, target, counter, must)
                spent = counter.count(shown) + 1 if shown else 0
                if shown and spent <= room and spent > before:
                    made[number] = shown
                    left -= spent - before
                    pools[share] = max(0, pools[share] - spent)
        text = "\n\n".join(made[number] for number in sorted(made))
        while made and counter.count(text) > target:
            del made[next(number for number in reversed(order) if number in made)]
            text = "\n\n".join(made[number] for number in sorted(made))
        return text

    def _shortened(self, number: int, room: int, target: int, counter: TokenMeasure, must: frozenset[str]) -> str:
        """A zone in `room` tokens; what leads away from the page stands whole or not at all."""
        kind, text = self.zones[number]
        return "" if kind == "navigation" or room < 1 else Prose(text, counter, must=must, of=target).condensed(room)


def read_markdown_page(text: str) -> MarkdownPage | None:
    """The page by its headings; None where none of them tells of a price, a product or reviews, so that there is nothing to prefer.

    What stands before the second heading is the page's own title: it tells of the product.
    """
    starts = [m.start() for m in _HEADING.finditer(text)]
    ends = [*starts[1:], len(text)][: len(starts)]
    parts = [(_kind(text[start:end]), text[start:end].strip()) for start, end in zip(starts, ends, strict=True)]
    lead = text[: starts[0]].strip() if starts else ""
    if not any(kind in ("pricing", "product_info", "reviews") for kind, _ in parts):
        return None
    first_kind, first = parts[0]
    opening = f"{lead}\n\n{first}" if lead else first
    return MarkdownPage((("product_info" if first_kind == "other" else first_kind, opening), *parts[1:]))


def _kind(zone: str) -> str:
    heading = zone.split("\n", 1)[0]
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(heading)), "other")
