"""A page that stands for itself: text stays text, whatever people wrote."""

import base64
import re
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.documents.html_page import STYLE, Mark, element, escape, highlight, page, table

ATTACKS = (
    "<script>alert(1)</script>",
    "</pre></div><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!--",
    "-->",
    "]]>",
    "</style><style>*{background:url(//evil)}</style>",
    "\x00<scr\x00ipt>",
    "\u202egnp.exe",
    "[x](javascript:alert(1))",
    "<a href=javascript:alert(1)>",
    "${alert(1)}{{7*7}}",
)


class Parsed(HTMLParser):
    """The elements of a page and its text, as a browser takes them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_people_wrote_is_never_markup(attack: str) -> None:
    """In a text, in a title that is pointed at, in a cell, in the page's title: no element and no attribute comes of it."""
    marks = [Mark(0, len(attack), kind="kept", title=attack, href=attack), Mark(1, 3, kind="missing critical", title=attack)]
    body = highlight(attack, marks) + table((attack,), ((attack, attack),)) + element("p", escape(attack), title=attack, id=attack)
    found = Parsed(page(attack, body))
    allowed = {"html", "head", "meta", "title", "style", "body", "pre", "mark", "a", "table", "thead", "tbody", "tr", "th", "td", "p"}
    assert {tag for tag, _ in found.tags} <= allowed
    names = {name for _, attrs in found.tags for name in attrs}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "dir", "class", "title", "href", "id"}
    assert all((attrs["href"] or "").startswith("#") for tag, attrs in found.tags if tag == "a" and "href" in attrs)


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(-2, 62), st.integers(-2, 62), st.booleans(), st.booleans()), max_size=12))
def test_marks_never_change_a_text(text: str, places: list[tuple[int, int, bool, bool]]) -> None:
    """Whatever lies over what: each character stands once, in its order."""
    marks = [Mark(a, b, kind="kept" if k else "", href="d1" if h else "", anchor=f"x{n}") for n, (a, b, k, h) in enumerate(places)]
    plain = Parsed(escape(text)).text
    assert Parsed(highlight(text, marks)).text in (f"\n{plain}", plain)


def test_the_shortest_mark_shows() -> None:
    """A value inside a sentence has its own verdict; a link goes around both."""
    shown = highlight("costs $420 now", [Mark(0, 14, kind="missing"), Mark(6, 10, kind="kept", title="money"), Mark(6, 10, href="d2")])
    assert '<mark class="missing">costs </mark><a href="#d2"><mark class="kept" title="money">$420</mark></a>' in shown


def test_a_page_allows_nothing_but_its_own_style() -> None:
    """No script, no address of another place; the style is named by its hash; light and dark."""
    text = page("t", "")
    digest = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
    (policy,) = [a["content"] for tag, a in Parsed(text).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and "default-src 'none'" in policy and f"'sha256-{digest}'" in policy and "unsafe" not in policy
    assert f"<style>{STYLE}</style>" in text
    assert not re.search(r"<script|https?://|url\(|@import", text) and "prefers-color-scheme: dark" in text


def test_a_class_is_a_word() -> None:
    """What names a class is this program's own."""
    with pytest.raises(ValueError, match="expected words"):
        highlight("abc", [Mark(0, 3, kind='x" onclick="y')])
