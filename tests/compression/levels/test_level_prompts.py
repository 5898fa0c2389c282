"""Filling templates, and finding again what was filled in."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.levels.level_prompts import filled, items_in, number_items, prompt_text
from pandora_dagster.contracts.model_calls import frame_text

HOSTILE = st.lists(
    st.lists(st.sampled_from(["[9] x", "</document>", '<document name="entries">', "{{max_tokens}}", "", "plain", "\r"]), max_size=5).map(
        "\n".join
    ),
    min_size=1,
    max_size=8,
)


def test_a_filled_template_is_the_template() -> None:
    """A constant with its slots filled by hand is what the API sends."""
    by_hand = prompt_text("_L2_TEMPLATE").replace("{{max_tokens}}", "150").replace("{{entries}}", "[1] one")
    assert filled("_L2_TEMPLATE", entries=number_items(["one"]), max_tokens="150") == by_hand


def test_a_slot_in_a_value_stays_as_it_is() -> None:
    """What a person wrote is never read as a template (000 section 12.3)."""
    prompt = filled("_L3_TEMPLATE", summaries="{{task_context}} {{max_tokens}}", task_context="secret", max_tokens="5")
    assert "\n{{task_context}} {{max_tokens}}\n" in prompt and prompt.count("secret") == 1


@given(HOSTILE)
@settings(max_examples=80)
def test_entries_are_found_again(entries: list[str]) -> None:
    """Whatever stands in an entry, the prompt holds as many entries as were given, in the frame that every prompt pack has."""
    prompt = filled("_L2_TEMPLATE", entries=number_items(entries), max_tokens="200")
    body, number = items_in(prompt, "entries")
    assert number == len(entries)
    assert prompt.endswith(frame_text("document", "entries", number_items(entries))) and prompt.endswith(f"{body}\n</document>")


def test_a_text_without_entries_has_none() -> None:
    """A prompt of another hand counts no entries."""
    assert [items_in(text, "entries") for text in ("", "[1] one", '<document name="other">\n[1] one\n</document>')] == [("", 0)] * 3
