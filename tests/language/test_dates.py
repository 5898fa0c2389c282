"""Dates as terms."""

import pytest

from pandora_dagster.language.dates import (
    date_terms,
    display_date,
    has_date_words,
    has_relative_date_words,
    query_date_terms,
    relative_date_terms,
)
from pandora_dagster.language.timestamps import format_timestamp, parse_timestamp


def test_a_time_gives_its_year_month_day_and_weekday() -> None:
    """A turn is found by every way its date is named."""
    assert date_terms("2023-05-08T13:56:00Z") == ("@2023", "@2023-05", "@2023-05-08", "@may", "@8", "@monday")


def test_what_is_no_time_gives_no_terms() -> None:
    """An unreadable time is no date."""
    assert date_terms("yesterday") == ()


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What happened on 8 May 2023?", ("@2023", "@may", "@8")),
        ("the trip of March 3rd", ("@march", "@3")),
        ("on the 3rd of Sept", ("@september", "@3")),
        ("what may I do, and we march on", ()),
        ("What did we plan in May?", ("@may",)),
        ("seen in december", ("@december",)),
        ("last Friday or Mondays", ("@friday", "@monday")),
        ("since 2024-05 or 2024-05-26", ("@2024-05", "@2024-05-26")),
        ("decide whether to marry", ()),
        ("", ()),
    ],
)
def test_the_dates_a_question_names(query: str, terms: tuple[str, ...]) -> None:
    """Years, months with days and weekdays are found; words that only look like months are not."""
    assert query_date_terms(query) == terms


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-05-15T15:00:00Z", "2024-05-15T15:00:00Z"),
        ("2024-05-15T15:00:00+02:00", "2024-05-15T13:00:00Z"),
        ("2024-05-15", "2024-05-15T00:00:00Z"),
    ],
)
def test_times_are_told_in_utc(text: str, utc: str) -> None:
    """Any ISO time becomes UTC; one without an offset is taken as UTC."""
    assert format_timestamp(parse_timestamp(text)) == utc


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("I went yesterday", ("@2023", "@2023-05", "@may", "@2023-05-07", "@7")),
        ("tomorrow!", ("@2023", "@2023-05", "@may", "@2023-05-09", "@9")),
        ("last week was fun", ("@2023", "@2023-05", "@may")),
        ("two weeks ago", ("@2023", "@2023-04", "@april")),
        ("last month", ("@2023", "@2023-04", "@april")),
        ("next month", ("@2023", "@2023-06", "@june")),
        ("last year", ("@2022",)),
        ("3 years ago", ("@2020",)),
        ("a few months ago", ("@2023", "@2023-02", "@february")),
        ("last Friday", ("@2023", "@2023-05", "@may", "@2023-05-05", "@5")),
        ("next monday", ("@2023", "@2023-05", "@may", "@2023-05-15", "@15")),
        ("this Monday", ("@2023", "@2023-05", "@may", "@2023-05-08", "@8")),
        ("last weekend", ("@2023", "@2023-05", "@may")),
        ("999 years ago", ("@1024",)),
        ("at last, next to me", ()),
    ],
)
def test_relative_expressions_are_dates_of_when_they_were_said(text: str, terms: tuple[str, ...]) -> None:
    """Said on Monday, 8 May 2023: as exactly as it is meant, a day, a month or a year."""
    assert relative_date_terms(text, "2023-05-08T13:56:00Z") == terms


@pytest.mark.parametrize(
    ("text", "created"), [("yesterday", "once"), ("yesterday", "0001-01-01T00:00:00Z"), ("999 years ago", "0900-01-01")]
)
def test_dates_outside_the_calendar_are_no_terms(text: str, created: str) -> None:
    """What can not be reckoned is left out."""
    assert relative_date_terms(text, created) == ()


@pytest.mark.parametrize(("created", "shown"), [("2023-05-08T13:56:00Z", "8 May 2023"), ("once", "once")])
def test_a_day_is_shown_for_people(created: str, shown: str) -> None:
    """A header over messages says the day in words."""
    assert display_date(created) == shown


@pytest.mark.parametrize(
    ("text", "tells", "points"),
    [
        ("we met last friday", True, True),
        ("two weeks ago", True, True),
        ("this was in 2019", True, False),
        ("on the 3rd", True, False),
        ("it is tonight", True, True),
        ("you may have this one", False, False),
        ("24 chairs", False, False),
    ],
)
def test_words_tell_whether_a_text_speaks_of_time(text: str, tells: bool, points: bool) -> None:
    """One look says that it names a time at all, the other that the time depends on when it was written."""
    words = frozenset(text.split())
    assert (has_date_words(words), has_relative_date_words(words)) == (tells, points)
    assert points or not relative_date_terms(text, "2023-05-08T13:56:00Z")
