"""Days as readable ranges."""

from datetime import date

import pytest

from pandora_dagster.language.relative_days import relative_day_terms
from pandora_dagster.phases.core.day_ranges import day_ranges, days_line, is_in_ranges, read_days_line

TODAY = date(2026, 11, 22)  # a Sunday


@pytest.mark.parametrize(
    ("query", "ranges"),
    [
        ("last week", ("2026-11-09 to 2026-11-15",)),
        ("last month or yesterday", ("2026-10", "2026-11-21")),
        ("last year", ("2025",)),
        ("next spring", ()),
    ],
)
def test_days_are_shown_as_ranges_and_read_back(query: str, ranges: tuple[str, ...]) -> None:
    """Every day of the terms is in the ranges, the days beside it are not."""
    terms = relative_day_terms(query, TODAY)
    assert day_ranges(terms) == ranges
    assert all(is_in_ranges(term[1:], ranges) for term in terms)
    assert not any(is_in_ranges(day, ranges) for day in ("2024-12-31", "2026-11-08", "2026-11-16", "2026-12-01", ""))
    assert read_days_line(f"{days_line(ranges)}\n\nText.") == ranges
