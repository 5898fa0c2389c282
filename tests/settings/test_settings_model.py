"""The settings as the documentation lists them."""

from pandora_dagster.settings import settings_table


def test_every_row_is_complete() -> None:
    """Each setting has a name of its own, a default in words, a meaning, and what a value must look like."""
    rows = settings_table()
    assert len({row.name for row in rows}) == len(rows) == 52
    assert all(row.default and row.meaning.endswith(".") and row.expected for row in rows)


def test_defaults_stand_as_they_are_written() -> None:
    """A default reads as one would set it."""
    shown = {row.name: row.default for row in settings_table()}
    assert (shown["PANDORA_RUNTIME"], shown["COMPRESSION_ENABLED"], shown["DEFAULT_CONTEXT_BUDGET"]) == ("extractive", "true", "12000")
    assert shown["DAGSTER_HOME"] == "<root>/dagster"
