"""Days that a question names by their distance from its own."""

from datetime import date

import pytest

from pandora_dagster.text.said_days import said_days, yearless_days

TODAY = date(2026, 11, 22)  # a Sunday


@pytest.mark.parametrize(
    ("query", "first", "count"),
    [
        ("What did I say yesterday?", "@2026-11-21", 1),
        ("what did we plan the day before yesterday", "@2026-11-20", 1),
        ("Was habe ich vorgestern gesagt?", "@2026-11-20", 1),
        ("What did I say last week?", "@2026-11-09", 7),
        ("Was war letzte  Woche?", "@2026-11-09", 7),
        ("this week", "@2026-11-16", 7),
        ("last month", "@2026-10", 1),
        ("im letzten Monat", "@2026-10", 1),
        ("last Friday", "@2026-11-20", 1),
        ("letzten Sonntag", "@2026-11-15", 1),
        ("this sunday", "@2026-11-22", 1),
        ("two weeks ago", "@2026-11-02", 7),
        ("vor 3 Tagen", "@2026-11-19", 1),
        ("a month ago, 11 months ago", "@2026-10", 2),
    ],
)
def test_days_are_counted_from_today(query: str, first: str, count: int) -> None:
    """A day, the days of a week, or a month."""
    found = said_days(query, TODAY)
    assert (found[0], len(found)) == (first, count)


@pytest.mark.parametrize("query", ["", "at last we met", "the weekly plan", "diese Dinge"])
def test_other_words_name_no_day(query: str) -> None:
    """Words that only look alike are left alone."""
    assert said_days(query, TODAY) == ()


def test_days_before_the_calendar_are_none() -> None:
    """What can not be reckoned is left out."""
    assert said_days("999 weeks ago, 30 months ago", date(1, 2, 1)) == ()


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What did we discuss on 29 October?", ("10-29",)),
        ("Was war am 29. Oktober und im Mai?", ("10-29", "05")),
        ("am 3. März", ("03-03",)),
        ("in October 2025", ()),
        ("may I ask Juli?", ()),
    ],
)
def test_days_without_a_year(query: str, named: tuple[str, ...]) -> None:
    """A month with its day or alone, where no year stands in the question."""
    assert yearless_days(query) == named
