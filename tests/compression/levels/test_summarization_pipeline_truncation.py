"""003's cut, for callers outside."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.levels.summarization_pipeline import truncate_entries


@pytest.mark.parametrize(
    ("entries", "most", "cut"),
    [
        ([], 2000, ""),
        (["", ""], 2000, ""),
        (["one"], 2000, "one"),
        (["one", "", "two"], 2000, "one | two"),
        (["a" * 201], 2000, "a" * 200),
        (["a" * 300, "b" * 300], 2000, "a" * 200 + " | " + "b" * 200),
        (["one", "two"], 5, "one |"),
        (["one"], 0, ""),
        (["one"], -3, ""),
    ],
)
def test_entries_are_cut_and_joined(entries: list[str], most: int, cut: str) -> None:
    """200 characters an entry, pipes between them, the whole within its limit."""
    assert truncate_entries(entries, most) == cut


@given(st.lists(st.text(max_size=300), max_size=15), st.integers(-5, 2500))
@settings(max_examples=60)
def test_never_over_its_limit(entries: list[str], most: int) -> None:
    """No input makes it longer than asked for."""
    assert len(truncate_entries(entries, most)) <= max(0, most)
