"""Pages from templates: text stays text, whatever users wrote."""

import base64
import re
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.api.pages import html_pages
from pandora_dagster.api.pages.html_pages import render_page, script, style_sheet
from pandora_dagster.api.pages.page_tables import PageFilter
from pandora_dagster.archive.lineage_view import DerivedDocument, LineageBlock, LineageSource, LineageTotals, LineageView, Pane, TreeLine
from pandora_dagster.archive.text_comparison import ComparedRow, Excerpt, Mark, RowState, TextComparison
from pandora_dagster.compression.verification.facts import Fact, FactKind, Outcome, Verdict

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


def lineage(text: str, marks: tuple[Mark, ...] = (), *, words: str = "x", page_filter: PageFilter | None = None) -> str:
    """A lineage page with one text under its marks, and `words` wherever a page shows what users or models wrote."""
    verdict = Verdict(Outcome.MISSING, Fact(FactKind.CLAIM, words, 0, 1, words), words, words)
    row = ComparedRow(RowState.REWORDED, Excerpt(words, (), 1), Excerpt(words, (Mark(0, 1, "kept", words),), 1), (words,))
    comparison = TextComparison((row,), {"total": 1, "missing": 1}, (verdict,))
    sources = (
        LineageSource(words, words, Pane(fault=words, anchor=words)),
        LineageSource(words, words, comparison=comparison),
        LineageSource(words, words),
    )
    view = LineageView(
        words,
        LineageTotals(2, 3, 1, {"total": 1, "missing": 1}),
        (TreeLine(words, words, has_sources=True), TreeLine(words, words, level=1, closes=1, anchor=words)),
        (LineageBlock(words, Pane(text, marks, 7), sources), LineageBlock(words, Pane(words))),
        (DerivedDocument(words, words),),
        2,
    )
    link = lambda name: f"#{name}"  # noqa: E731
    values = {"counts": view.totals.counts, "max_texts": 200, "href": link, "places": ((words, f"#{words}"),)}
    return render_page("lineage.html", view=view, page_filter=page_filter, **values)


def pane(text: str, marks: tuple[Mark, ...] = ()) -> str:
    """The markup of the text."""
    (found, _) = re.findall(r"<pre [^>]*>\n(.*?)</pre>", lineage(text, marks), re.DOTALL)
    return found


ELEMENTS = {
    *("html", "head", "meta", "title", "style", "script", "body", "main", "nav", "section", "h1", "h2", "h3", "p", "ul", "li", "small"),
    *("strong", "pre", "mark", "a", "div", "details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"),
    *("form", "label", "select", "option", "input", "button", "output"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "dir", "class", "title", "href", "id", "hidden", "open", "scope", "tabindex"),
    *("role", "aria-label", "data-verdicts", "data-side", "data-filtered", "method", "value", "selected", "type", "autocomplete"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_users_wrote_is_never_markup(attack: str) -> None:
    """In a text, a title, a link, a cell, a heading, a form, the page's title: no element and no attribute comes of it."""
    marks = (Mark(0, len(attack), kind="kept", title=attack, href=attack), Mark(1, 3, kind="missing critical", title=attack))
    for text in (lineage(attack, marks, words=attack), lineage(attack, marks, words=attack, page_filter=PageFilter("", attack))):
        found = Parsed(text)
        assert {tag for tag, _ in found.tags} <= ELEMENTS
        assert {name for _, attrs in found.tags for name in attrs} <= ATTRIBUTES
        assert all((attrs["href"] or "").startswith(("#", "?", "/")) for tag, attrs in found.tags if tag == "a" and "href" in attrs)
        assert [tag for tag, _ in found.tags].count("script") == [tag for tag, _ in found.tags].count("style") == 1
    months = [(attack, [(attack, 3)])]
    for template, values in (
        ("error.html", {"status": 404, "message": attack}),
        ("days.html", {"months": months, "digests": [attack], "href": str}),
    ):
        assert {tag for tag, _ in Parsed(render_page(template, **values)).tags} <= ELEMENTS


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


@pytest.mark.parametrize(("page_filter", "form"), [(None, "'none'"), (PageFilter(), "'self'")])
def test_a_page_allows_nothing_but_its_own_style_and_script(page_filter: PageFilter | None, form: str) -> None:
    """No address of another place; style and script are named by their hashes; a form leads to the server only; light and dark."""
    text = render_page("days.html", months=[], digests=[], href=str, page_filter=page_filter)
    style, code = (base64.b64encode(sha256(part.encode()).digest()).decode() for part in (style_sheet(), script()))
    (policy,) = [a["content"] for tag, a in Parsed(text).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == (f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{code}'; base-uri 'none'; form-action {form}")
    assert f"<style>{style_sheet()}</style>" in text and f"<script>{script()}</script>" in text
    assert not re.search(r"https?://|url\(|@import|innerHTML|eval\(", text) and "prefers-color-scheme: dark" in text


def test_a_class_is_a_word() -> None:
    """The names of classes are this program's own."""
    with pytest.raises(ValueError, match="expected words"):
        pane("abc", (Mark(0, 3, kind='x" onclick="y'),))


def test_every_template_is_a_page_of_the_layout() -> None:
    """No template but the macros has a page frame of its own, and none turns escaping off."""
    for path in (html_pages._TEMPLATES).glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert path.name in ("layout.html", "parts.html") or text.startswith('{% extends "layout.html" %}')
        assert "safe" not in text and "autoescape" not in text
