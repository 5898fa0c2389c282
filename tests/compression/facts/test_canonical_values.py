"""Values that are equal though spelled differently."""

import pytest

from pandora_dagster.compression.facts.canonical_values import canonical
from pandora_dagster.compression.facts.fact_types import FactKind


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (FactKind.MONEY, "$1,299.00", "1299 USD"),
        (FactKind.MONEY, "€2.5k", "2500 euros"),
        (FactKind.DATE, "May 20, 2024", "2024-05-20"),
        (FactKind.DATE, "20th of May 2024", "May 20 2024"),
        (FactKind.TIME, "3 pm", "15:00"),
        (FactKind.PERCENTAGE, "12.0 %", "12%"),
        (FactKind.QUANTITY, "5 hours", "5 hrs"),
        (FactKind.NUMBER, "1,000", "1000.0"),
    ],
)
def test_equal_values_have_one_spelling(kind: FactKind, one: str, other: str) -> None:
    """Two spellings of one value are canonically the same."""
    assert canonical(kind, one) == canonical(kind, other) != ""


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (FactKind.MONEY, "$1,299", "€1,299"),
        (FactKind.MONEY, "$12.99", "$1299"),
        (FactKind.DATE, "May 20", "May 21"),
        (FactKind.QUANTITY, "5 days", "5 hours"),
        (FactKind.TIME, "3 pm", "3 am"),
    ],
)
def test_different_values_differ(kind: FactKind, one: str, other: str) -> None:
    """Another currency, unit, day or half of the day is another value."""
    assert canonical(kind, one) != canonical(kind, other)


def test_a_name_has_no_other_spelling() -> None:
    """Kinds without amounts have no canonical spelling."""
    assert canonical(FactKind.NAME, "Ada") == ""
