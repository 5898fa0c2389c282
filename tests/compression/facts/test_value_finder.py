"""Where values stand in prose."""

import pytest

from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.facts.value_finder import find_values


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("it costs $1,299.00 now", FactKind.MONEY, "$1,299.00"),
        ("it costs 1299 USD now", FactKind.MONEY, "1299 USD"),
        ("they met on May 20, 2024.", FactKind.DATE, "May 20, 2024"),
        ("at 2024-05-20T10:00:00Z it", FactKind.DATE, "2024-05-20T10:00:00Z"),
        ("leave at 3:15 pm please", FactKind.TIME, "3:15 pm"),
        ("grew by 12.5% since", FactKind.PERCENTAGE, "12.5%"),
        ("about 12 GB of it", FactKind.QUANTITY, "12 GB"),
        ("see https://a.example/x?y=1, then", FactKind.URL, "https://a.example/x?y=1"),
        ("write to ada@b.example today", FactKind.IDENTIFIER, "ada@b.example"),
        ("order #W2378156 is late", FactKind.IDENTIFIER, "#W2378156"),
        ("as shown in [12] above", FactKind.EVIDENCE, "[12]"),
        ('she read "The Long Way" twice', FactKind.QUOTE, '"The Long Way"'),
        ("then we met Ada Berg there", FactKind.NAME, "Ada Berg"),
    ],
)
def test_a_value_is_found_with_its_kind(text: str, kind: FactKind, value: str) -> None:
    """Each kind of value is found whole, where it stands."""
    found = next(f for f in find_values(text) if f.kind is kind)
    assert (found.text, text[found.start : found.end]) == (value, value)


def test_a_first_word_is_no_name() -> None:
    """A capital at the beginning of a sentence names nothing; a quantity does not reach over a line."""
    assert [f.kind for f in find_values("Trains leave early. Buses too: 12\ncalls")] == [FactKind.NUMBER]


def test_credentials_are_no_values() -> None:
    """A password and a key are never values."""
    text = "password: tr0ub4dor3 and key sk-live-abcdefghijklmnop1234 for card 4111 1111 1111 1111"
    assert not [f.text for f in find_values(text) if any(c.isdigit() for c in f.text)]
