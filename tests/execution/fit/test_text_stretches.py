"""What of a text stays verbatim: joined, the stretches are the text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.execution.fit.text_stretches import section_stretches, stretches_within, text_stretches

META = "```yaml\n_meta:\n  type: x\n```\n"
PARTS = ["a word. ", "\n\n", "## 0. User Query\n\nq\n", "## 2. Gathered Context\n", "### Source References\n", "- [1] `x` - y\n", META]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=40))
def test_the_stretches_joined_are_the_text(parts):
    """For any text and any body of a section."""
    text = "".join(parts)
    assert "".join(s.text for s in text_stretches(text)) == text
    assert "".join(s.text for s in section_stretches(text)) == text


def test_section_0_headings_sources_and_meta_are_fixed():
    """Everything else may be shortened."""
    sources = "### Source References\n\n- [1] `turns/turn_000001/context.md` - a turn\n\n"
    text = f"## 0. User Query\n\nhello\n\n## 2. Gathered Context\n\n### Findings\n\n{META}\nA sentence.\n\n{sources}"
    loose = [s.text.strip() for s in text_stretches(text) if not s.is_fixed]
    assert loose == ["A sentence."]
    assert [s.text for s in text_stretches(text) if s.is_fixed and META in s.text]


def test_headings_of_another_text_may_be_left_out():
    """Only in context.md are they structure that later phases read."""
    assert [s.is_fixed for s in text_stretches("### Findings\n\nA sentence.\n")] == [False]


def test_the_newest_section_is_fixed_where_the_target_has_tokens_for_it():
    """000 section 24: the latest section stays; where it alone is over the target, or nothing else is left to shorten, it is shortened."""
    text = "## 0. User Query\n\nhello\n\n## 2. Gathered Context\n\nOld words.\n\n## 4. Tool Execution\n\nNew words.\n\n## 5. Synthesis\n\n"

    def loose(target: int, given: str = text) -> list[str]:
        return [s.text.strip() for s in stretches_within(given, target, len) if not s.is_fixed]

    assert loose(200) == ["Old words."]
    assert loose(40) == ["Old words.", "New words."]
    assert loose(200, text.replace("Old words.", "")) == ["New words."]
