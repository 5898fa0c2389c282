"""Days that a question names by their distance from its own."""

from datetime import date

import pytest

from pandora_dagster.language.relative_days import (
    mentioned_date_terms,
    query_day_terms,
    refers_to_past,
    relative_day_terms,
    strip_days,
    yearless_days,
)

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
        ("What did we do in the last 3 days?", "@2026-11-19", 4),
        ("in den letzten drei Tagen", "@2026-11-19", 4),
        ("the past few days", "@2026-11-19", 4),
        ("in the last two weeks", "@2026-11-08", 15),
        ("in den vergangenen zwei Wochen", "@2026-11-08", 15),
        ("over the past week", "@2026-11-15", 8),
        ("in the last 2 months", "@2026-11", 3),
        ("in the last two years", "@2026", 3),
        ("What happened last weekend?", "@2026-11-14", 2),
        ("this past weekend", "@2026-11-14", 2),
        ("am letzten Wochenende", "@2026-11-14", 2),
        ("dieses Wochenende", "@2026-11-21", 2),
        ("Where did I live last year?", "@2025", 1),
        ("im letzten Jahr", "@2025", 1),
        ("vor zwei Jahren", "@2024", 1),
        ("two years ago", "@2024", 1),
        ("What did I do last week in Berlin?", "@2026-11-09", 7),
    ],
)
def test_days_are_counted_from_today(query: str, first: str, count: int) -> None:
    """A day, the days of a week, or a month."""
    found = relative_day_terms(query, TODAY)
    assert (found[0], len(found)) == (first, count)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "at last we met",
        "the weekly plan",
        "diese Dinge",
        "the last week of May",
        "in der letzten Woche des Urlaubs",
        "letzte Woche im Mai",
        "on the last weekend in June",
        "the last Friday of 2025",
        "the last 3 days of the trip",
        "the last years",
    ],
)
def test_other_words_name_no_day(query: str) -> None:
    """Words that only look alike are left alone."""
    assert relative_day_terms(query, TODAY) == ()


def test_days_before_the_calendar_are_none() -> None:
    """What has no day in the calendar is left out."""
    assert relative_day_terms("999 weeks ago, 30 months ago", date(1, 2, 1)) == ()


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


@pytest.mark.parametrize(
    ("query", "without", "back"),
    [
        ("What did I sell last week?", "What did I sell ?", True),
        ("Was war vor 3 Tagen im Büro?", "Was war im Büro?", True),
        ("What did we talk about in the last 3 days?", "What did we talk about ?", True),
        ("In der letzten Woche war Regen", "war Regen", True),
        ("What is planned today?", "What is planned ?", False),
        ("What happened this past weekend?", "What happened ?", True),
        ("The last week of May", "The last week of May", False),
    ],
)
def test_the_words_of_days_are_known_from_the_others(query: str, without: str, back: bool) -> None:
    """What is asked, and whether it lies behind."""
    assert (strip_days(query), refers_to_past(query)) == (without, back)


@pytest.mark.parametrize(
    ("query", "days", "without"),
    [
        ("What did we discuss on 29 October?", ("@2026-10-29",), "What did we discuss ?"),
        ("Worüber haben wir am 29. Oktober gesprochen?", ("@2026-10-29",), "Worüber haben wir gesprochen?"),
        ("Summarise our conversation of December 5th", ("@2025-12-05",), "Summarise our conversation"),
        ("What did I say on 3 March 2024 and yesterday?", ("@2026-11-21", "@2024-03-03"), "What did I say and ?"),
        ("Did we talk on 29 February?", ("@2024-02-29",), "Did we talk ?"),
        ("Did we talk on 31 April?", (), "Did we talk ?"),
        ("Book a flight for 5 December", (), "Book a flight for 5 December"),
    ],
)
def test_a_talk_s_days_by_their_dates(query: str, days: tuple[str, ...], without: str) -> None:
    """The newest such day up to today where no year stands; a date on which nobody talked is one of the matter."""
    assert query_day_terms(query, TODAY) == days and strip_days(query) == without


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("I went yesterday", ("@2023", "@2023-05", "@may", "@2023-05-07", "@7")),
        ("last week was fun", ("@2023", "@2023-05", "@may")),
        ("two weeks ago", ("@2023", "@2023-04", "@april")),
        ("last month", ("@2023", "@2023-04", "@april")),
        ("last year", ("@2022",)),
        ("3 years ago", ("@2020",)),
        ("last Friday", ("@2023", "@2023-05", "@may", "@2023-05-05", "@5")),
        ("vor zwei Wochen", ("@2023", "@2023-04", "@april")),
        ("this Monday", ("@2023", "@2023-05", "@may", "@2023-05-08", "@8")),
        ("last weekend", ("@2023", "@2023-05", "@may")),
        ("999 years ago", ("@1024",)),
        ("at last, next to me", ()),
    ],
)
def test_relative_expressions_are_dates_of_when_they_were_said(text: str, terms: tuple[str, ...]) -> None:
    """Said on Monday, 8 May 2023: as exactly as it is meant, a day, a month or a year."""
    assert mentioned_date_terms(text, "2023-05-08T13:56:00Z") == terms


@pytest.mark.parametrize(
    ("text", "created"), [("yesterday", "once"), ("yesterday", "0001-01-01T00:00:00Z"), ("999 years ago", "0900-01-01")]
)
def test_dates_outside_the_calendar_are_no_terms(text: str, created: str) -> None:
    """What has no day in the calendar is left out."""
    assert mentioned_date_terms(text, created) == ()
