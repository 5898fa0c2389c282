"""Stop words."""

from pandora_dagster.language.stop_words import stop_words


def test_one_list_a_language() -> None:
    """Unknown codes and "" have none."""
    assert "the" in stop_words("en") and "und" in stop_words("de")
    assert stop_words("") == stop_words("xx") == frozenset()
