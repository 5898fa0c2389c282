"""`_meta` blocks: written for code to read back, wherever they stand."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.meta import meta_block, read_meta, subsection_metas, subsections
from pandora_dagster.errors import DocumentError

TEXT = st.text(max_size=20) | st.sampled_from(
    [
        "a\n```\n",
        "\n### Title\n",
        "## 0. x",
        "yes",
        "1",
        "2026-01-04",
        "null",
        "_meta:",
        "~",
        "a: b",
        "\x85",
        "\r",
        "a\u2028b",
        "\u2029",
        "\ufeff",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
@example({})
@example({"a": 1})
@example({"a": [1], "b": {"c": "x\n```\n"}})
@settings(max_examples=200)
def test_what_is_written_reads_back(values):
    """Any JSON value, amid text and under its subsection."""
    block = meta_block(values)
    assert read_meta(block) == values
    assert read_meta(f"before\n{block}\nafter\n```yaml\n_meta:\n  other: 1\n```") == values
    assert subsection_metas(f"### One\n\n{block}\n\n### Two\n\nnothing\n") == ({"One": values} if values else {})


def test_a_block_has_a_line_for_each_key():
    """As 004 section 5.2 shows it; a value that stands twice is written twice."""
    turns = [811, 809]
    assert (
        meta_block({"type": "turn_context", "a": turns, "b": turns})
        == "```yaml\n_meta:\n  type: turn_context\n  a: [811, 809]\n  b: [811, 809]\n```"
    )


@pytest.mark.parametrize("text", ["", "plain", "```yaml\nother: 1\n```", "```yaml\n_meta:\n  cut: 1", "```yaml\n_metadata: 1\n```"])
def test_a_text_without_block_has_no_meta(text):
    """{} rather than an error: most texts have none."""
    assert read_meta(text) == {}


@pytest.mark.parametrize("inside", ["  a: [1", "  - 1", " 5", "", "  a: 1\n a: 2"])
def test_a_broken_block_is_an_error(inside):
    """Not YAML, or no mapping: DocumentError."""
    with pytest.raises(DocumentError, match="_meta block"):
        read_meta(f"```yaml\n_meta:\n{inside}\n```")


def test_subsections_are_taken_by_title_in_order():
    """Text before the first title is left out; deeper titles belong to their subsection."""
    assert subsections("intro\n### A \n\none\n#### deep\n\n### B\ntwo") == {"A": "one\n#### deep", "B": "two"}
    assert subsections("no title") == {} and subsections("") == {} and subsection_metas("") == {}
