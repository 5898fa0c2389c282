"""Texts in pieces: joined they are the text, no piece is cut, what must stay stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.execution.fit.model_rewriting import split_text

PIECES = [
    "a word. ",
    "two\n",
    "\n\n",
    "## 2. Gathered Context\n",
    "```\n",
    "| a | b |\n",
    "### Source References\n",
    "- [1] `x` - y\n",
    '{"a": 1}\n',
]
META = "```yaml\n_meta:\n  type: x\n```\n"


def words(text: str) -> int:
    return len(text.split()) or 1


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, META]), max_size=40), st.integers(1, 60))
def test_the_pieces_joined_are_the_text(parts, size):
    """For any text and any size."""
    text = "".join(parts)
    assert "".join(c.text for c in split_text(text, size=size, count=words)) == text


def test_pieces_end_at_borders_and_fit_a_call():
    """Paragraphs first, then lines, then sentences; every piece for a model is within its size."""
    text = "\n\n".join(" ".join(f"Sentence {n} of paragraph {p} is here." for n in range(9)) for p in range(9))
    chunks = split_text(text, size=80, count=words)
    assert all(c.tokens <= 80 and c.text.rstrip().endswith(".") for c in chunks) and len(chunks) > 3


@pytest.mark.parametrize("text", ['{"a": "' + "word " * 90 + '"}', "word " * 90, "```\n" + "x = 1\n" * 90 + "```"])
def test_what_has_no_border_inside_is_left_to_structure(text):
    """A JSON value, a line without sentences, a fence: never cut for a model."""
    assert {c.method for c in split_text(text, size=40, count=words)} == {"structure"}


def test_section_0_headings_and_meta_stand_verbatim():
    """They are no model's to shorten."""
    text = f"## 0. User Query\n\n{'hello ' * 90}\n\n## 2. Gathered Context\n\n{META}\n{'A sentence. ' * 90}\n"
    fixed = [c.text for c in split_text(text, size=60, count=words) if c.method == "verbatim"]
    assert fixed[0].startswith("## 0. User Query\n\nhello") and "## 2. Gathered Context\n" in fixed and META in fixed
