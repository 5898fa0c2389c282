"""Posts of a discussion: elements of the same form beside each other, each with a date, an author and a text of its own."""

import re
from collections import defaultdict
from dataclasses import dataclass

from pandora_dagster.documents.webpages.elements.html_tree import Element, elements, is_element, tag_of, words
from pandora_dagster.documents.webpages.written_dates import first_date

_POST_TYPES = ("comment", "discussionforumposting", "answer", "question", "socialmediaposting")
_AUTHOR = re.compile(r"author|user|name|poster|nick|member|byline|handle", re.IGNORECASE)
_MIN_TEXT = 40
_MAX_AUTHOR = 40
_MAX_DATE = 60
"""Characters of an element that states a date and no text about it."""
_MAX_LINK_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Post:
    """One post; `date` is ISO 8601 or ""."""

    element: Element
    author: str
    date: str


def posts_of(container: Element, text: dict[Element, int], links: dict[Element, int]) -> list[Post]:
    """The posts in an element, in order; () where it is no discussion."""
    typed = [e for e in elements(container) if any(str(e.get("itemtype") or "").lower().endswith("/" + name) for name in _POST_TYPES)]
    if len(typed) >= 2:
        return [post for e in typed if (post := _post(e))]
    best: list[Post] = []
    for parent in elements(container):
        groups: defaultdict[tuple[str, str], list[Element]] = defaultdict(list)
        for child in parent:
            if is_element(child) and text.get(child, 0) >= _MIN_TEXT and links.get(child, 0) <= text[child] * _MAX_LINK_SHARE:
                groups[tag_of(child), str(child.get("class") or "").partition(" ")[0]].append(child)
        for group in groups.values():
            if len(group) < 2 or sum(text[e] for e in group) * 2 < text.get(container, 0):
                continue
            found = [post for e in group if (post := _post(e)) and post.author and post.date]
            if len(found) * 3 >= len(group) * 2 and len(found) >= 2 and len(found) > len(best):
                best = found
    return best


def _post(element: Element) -> Post | None:
    if next(element.iter("h1"), None) is not None:
        return None
    return Post(element, _author(element), _date(element))


def _date(element: Element) -> str:
    """The day of a post: of a `time` element, or of an element that holds little more than a date. A date in its text is not its own."""
    for inner in elements(element):
        if stamp := inner.get("datetime"):
            return first_date(str(stamp))
        if (
            inner is not element
            and (day := first_date(words("".join(inner.itertext())[: _MAX_DATE + 1])))
            and len(words("".join(inner.itertext()))) <= _MAX_DATE
        ):
            return day
    return ""


def _author(element: Element) -> str:
    """The short text of the first element that is marked as an author or is marked as a name before the text."""
    named = list(element.iterfind(".//*[@itemprop='author']")) + list(element.iterfind(".//*[@rel='author']"))
    marked = [e for e in elements(element) if e is not element and _AUTHOR.search(f"{e.get('class') or ''} {e.get('id') or ''}")]
    strong = [e for e in element.iter("b", "strong", "cite", "a", "h3", "h4", "h5", "dt", "th")]
    for candidate in (*named, *marked, *strong):
        name = words("".join(candidate.itertext())).strip(":,–-")
        if 1 < len(name) <= _MAX_AUTHOR and len(name.split()) <= 4 and not first_date(name) and not name.isdigit():
            return name
    return ""
