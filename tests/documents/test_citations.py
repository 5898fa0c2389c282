"""Citations and the references they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.documents.citations import (
    cited_labels,
    escape_citations,
    escape_source_marks,
    label_source_marks,
    reference_list,
    source_references,
)

CITED = {
    "It cost $697 [1], then $650 [2].": ("1", "2"),
    "Both [2][1][2] agree.": ("2", "1"),
    "According to [3]: yes": ("3",),
    "[1] begins a line": ("1",),
    "[1]: https://example.org defines a link": (),
    "a\n[2](https://example.org) is a link, and so is [4](x)": (),
    "no [x] [12345] [] [ 1 ] (1)": (),
    "price[1]": ("1",),
    "end [1]\n[2]": ("1", "2"),
}


@pytest.mark.parametrize("text", CITED)
def test_citations_are_found_once_in_order(text):
    """Neighbours and colons do not hide one; links and link definitions are none."""
    assert cited_labels(text) == CITED[text]


PATHS = st.text(st.characters(exclude_characters="`\n", exclude_categories=("Cs",)), min_size=1) | st.just("turns/turn_000811/context.md")
SOURCES = st.builds(Source, st.integers(1, 9999).map(str), PATHS, st.text().map(lambda t: " ".join(t.split())))


@given(st.lists(SOURCES, max_size=5))
def test_a_reference_list_reads_back(sources):
    """Labels, paths and descriptions, amid the section's other text."""
    found = source_references(f"Some text [1].\n\n{reference_list(sources)}\n\n### Other\n\n- [9] `no` - reference\n")
    assert [(s.label, s.path, s.description) for s in found] == [(s.label, s.path, s.description) for s in sources]


def test_a_reference_to_a_turn_names_it():
    """Its turn id is taken from the path."""
    listed = reference_list([Source("1", "turns/turn_000811/context.md", "a\n  laptop"), Source("2", "facts.md")])
    assert [s.turn_id for s in source_references(listed)] == ["turn_000811", None]
    assert source_references(listed)[0].description == "a laptop" and source_references("no list") == ()


def test_a_mark_becomes_its_label_once() -> None:
    """Labels are never searched for marks again; a mark without a label, and a quoted one, stay."""
    assert label_source_marks("a [source 1] b [source 2] c [source 3]", ["2", "7"]) == "a [2] b [7] c [source 3]"
    assert label_source_marks(escape_source_marks("x [source 1]"), ["2"]) == "x \\[source 1]"


@pytest.mark.parametrize("text", ["see [1] and [22]", "[1][2]", "\\[1]", "[[1]]"])
def test_quoted_numbers_cite_nothing_and_stay_readable(text):
    """Whatever stands around them, and put through it twice they stay the same."""
    quoted = escape_citations(text)
    assert cited_labels(f" {quoted}") == () and escape_citations(quoted) == quoted and quoted.replace("\\", "") == text.replace("\\", "")
