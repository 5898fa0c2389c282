"""Pages from templates: text stays text, whatever users wrote."""

import base64
import re
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.api import html_pages
from pandora_dagster.api.html_pages import render_page, style_sheet
from pandora_dagster.archive.lineage_view import (
    LEGEND,
    Derivation,
    FactSummary,
    LineageBlock,
    LineageView,
    Mark,
    Pane,
    TreeLine,
)

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


def lineage(text: str, marks: tuple[Mark, ...] = (), *, words: str = "x") -> str:
    """A lineage page with one text under its marks, and `words` wherever a page shows what users or models wrote."""
    facts = FactSummary(words, (dict.fromkeys(("outcome", "rank", "kind", "fact", "reason"), words),), 3)
    parent, child = Pane(words, text, marks, 7, anchor=words), Pane(words, href=words, label=words)
    blocks = (
        LineageBlock(words, (Derivation(words, parent, child, facts),)),
        LineageBlock(words, pane=Pane(fault=words, anchor=words)),
    )
    tree = (TreeLine(words, words, words, anchor=words), TreeLine(words, words, words, href=words))
    return render_page("lineage.html", view=LineageView(words, tree, blocks, 2), legend=LEGEND, max_texts=200)


def pane(text: str, marks: tuple[Mark, ...] = ()) -> str:
    """The markup of the text."""
    (found,) = re.findall(r'<pre dir="auto">\n(.*?)</pre>', lineage(text, marks), re.DOTALL)
    return found


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_users_wrote_is_never_markup(attack: str) -> None:
    """In a text, a title, a link, a cell, a heading, the page's title: no element and no attribute comes of it."""
    marks = (Mark(0, len(attack), kind="kept", title=attack, href=attack), Mark(1, 3, kind="missing critical", title=attack))
    found = Parsed(lineage(attack, marks, words=attack))
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "pre",
        "mark",
        "a",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
    }
    assert {tag for tag, _ in found.tags} <= allowed | {"th", "td", "p", "div", "span", "ul", "li", "details", "summary"}
    names = {name for _, attrs in found.tags for name in attrs}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "dir", "class", "title", "href", "id"}
    assert all((attrs["href"] or "").startswith("#") for tag, attrs in found.tags if tag == "a" and "href" in attrs)
    for template, values in (("error.html", {"status": 404, "message": attack}), ("days.html", {"days": [(attack, 3)]})):
        assert {tag for tag, _ in Parsed(render_page(template, **values)).tags} <= allowed | {"ul", "li"}


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(-2, 62), st.integers(-2, 62), st.booleans(), st.booleans()), max_size=12))
def test_marks_never_change_a_text(text: str, places: list[tuple[int, int, bool, bool]]) -> None:
    """Whatever overlaps: each character is shown once, in its order."""
    marks = tuple(Mark(a, b, kind="kept" if k else "", href="d1" if h else "", anchor=f"x{n}") for n, (a, b, k, h) in enumerate(places))
    assert Parsed(pane(text, marks)).text == Parsed(pane(text)).text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n\n two\n", "\n\n two\n"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x00a\ud800", "\ufffda\ufffd"),
        ("\u202egnp", "<U+202E>gnp"),
        ('1 < 2 & "3"', '1 < 2 & "3"'),
    ],
)
def test_a_text_is_shown_as_it_is_stored(text: str, shown: str) -> None:
    """Line ends and blanks remain; characters that are invalid or change the direction are replaced."""
    assert Parsed(pane(text)).text == shown


def test_the_shortest_mark_shows() -> None:
    """A value inside a sentence has its own verdict; a link encloses both."""
    marks = (Mark(0, 14, kind="missing"), Mark(6, 10, kind="kept", title="money"), Mark(6, 10, href="d2"))
    shown = pane("costs $420 now", marks)
    assert '<mark class="missing">costs </mark><a href="#d2"><mark class="kept" title="money">$420</mark></a>' in shown


def test_a_page_allows_nothing_but_its_own_style() -> None:
    """No script, no address of another place; the style is named by its hash; light and dark."""
    text = render_page("days.html", days=[])
    style = style_sheet()
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    (policy,) = [a["content"] for tag, a in Parsed(text).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and "default-src 'none'" in policy and f"'sha256-{digest}'" in policy and "unsafe" not in policy
    assert f"<style>{style}</style>" in text
    assert not re.search(r"<script|https?://|url\(|@import", text) and "prefers-color-scheme: dark" in text


def test_a_class_is_a_word() -> None:
    """The names of classes are this program's own."""
    with pytest.raises(ValueError, match="expected words"):
        pane("abc", (Mark(0, 3, kind='x" onclick="y'),))


def test_every_template_is_a_page_of_the_layout() -> None:
    """No template but the macros of panes has a page frame of its own, and none turns escaping off."""
    for path in (html_pages._TEMPLATES).glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert path.name in ("layout.html", "panes.html") or text.startswith('{% extends "layout.html" %}')
        assert "safe" not in text and "autoescape" not in text
