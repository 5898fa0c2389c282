"""context.md's laws: parse and render are inverse, section 0 is verbatim for ever, text never becomes structure."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import SECTION_TITLES
from pandora_dagster.documents.sections import ContextDocument, escape_headings, new_context, parse_context, unescape_headings
from pandora_dagster.errors import DocumentError

LINES = st.lists(
    st.sampled_from(
        ["## 0. User Query", "## 3. ", "\\## 1. x", "\\\\## 5. y", "## 7. z", "##  1. a", " ## 2. b", "", "\r", "text", "\u2028## 1. "]
    )
    | st.text(max_size=12),
    max_size=12,
)
TEXTS = st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\n\n"])).map(lambda t: t[1].join(t[0])) | st.text()
LATER = st.lists(st.tuples(st.integers(1, 6), TEXTS), max_size=5)


@given(TEXTS)
@settings(max_examples=300)
def test_any_text_taken_apart_and_put_together_is_itself(text):
    """Byte for byte, whatever it is (000 section 11.3)."""
    assert ContextDocument.parse(text).render() == text


@given(TEXTS)
@example("\\## 0. x")
@settings(max_examples=200)
def test_escaping_is_undone_exactly_and_hides_every_heading(text):
    """`read` is the inverse of `written`, and what is written holds no section."""
    assert unescape_headings(escape_headings(text)) == text
    assert ContextDocument.parse("\n" + escape_headings(text)).sections == ()


@given(TEXTS, LATER)
@example("", [])
@example("\n\n", [(1, "")])
@example("a\n## 0. b", [(1, "## 0. c")])
@settings(max_examples=300)
def test_the_words_of_the_person_stay_through_every_later_section(query, later):
    """Section 0 reads back verbatim after any sections were written, replaced, and stored in between."""
    document = new_context(query)
    zero = document.section(0)
    for number, body in later:
        document = parse_context(document.with_section(number, body).render(), where="context.md")
        assert document.query() == query and document.section(0) == zero
    last = dict(later)
    assert {s.number for s in document.sections} == {0, *last}
    assert all(document.body(number) == body.strip("\n") for number, body in last.items())


@given(TEXTS, st.integers(1, 6), TEXTS)
@settings(max_examples=200)
def test_a_section_added_to_any_text_reads_back_and_changes_no_other(text, number, body):
    """Also where the text before it ends without a line end."""
    before = ContextDocument.parse(text)
    after = ContextDocument.parse(before.with_section(number, body).render())
    assert after.body(number) == body.strip("\n")
    others = sorted((s for s in before.sections if s.number != number), key=lambda s: s.number)
    kept = [s for s in after.sections if s.number != number]
    assert [s.text.removesuffix("\n") for s in kept] == [s.text.removesuffix("\n") for s in others]


def test_section_0_cannot_be_replaced():
    """Only a document without one gets it."""
    with pytest.raises(ValueError, match="never altered"):
        new_context("a").with_section(0, "b")


FAULTS = {
    "": ["section 0 (`## 0. User Query`) is missing, expected once"],
    "## 1. a\n## 1. b\n": ["section 1 occurs 2 times, expected once", "section 0 (`## 0. User Query`) is missing, expected once"],
    "## 1. a\n## 0. b\n": ["sections are in the order [1, 0], expected ascending numbers"],
    "## 0. a\n## 6. b\n": [],
}


@pytest.mark.parametrize("text", FAULTS)
def test_every_fault_is_told(text):
    """All at once, each as one sentence; `checked` raises with them."""
    assert list(ContextDocument.parse(text).faults()) == FAULTS[text]
    if FAULTS[text]:
        with pytest.raises(DocumentError, match=r"^context\.md: "):
            parse_context(text, where="context.md")


def test_a_query_written_by_hand_is_read_without_its_frame():
    """A document that other hands wrote may lack the blank lines around section 0; no letter is lost."""
    assert ContextDocument.parse("## 0. User Query\nhello\n").query() == "hello\n"
    assert ContextDocument.parse("## 0. User Query\n\nhello\n\n").query() == "hello"


def test_parts_are_chosen_by_number():
    """`only` always holds section 0."""
    document = new_context("q").with_section(2, "two").with_section(1, "one")
    assert [s.heading for s in document.sections] == [f"## {n}. {SECTION_TITLES[n]}\n" for n in (0, 1, 2)]
    assert "two" in document.select({2}) and "one" not in document.select({2}) and "User Query" in document.select(())
