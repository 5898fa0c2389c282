"""Dates as terms."""

import pytest

from pandora_dagster.language.dates import (
    date_terms,
    display_date,
    query_date_terms,
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


@pytest.mark.parametrize(("created", "shown"), [("2023-05-08T13:56:00Z", "8 May 2023"), ("once", "once")])
def test_a_day_is_shown_for_people(created: str, shown: str) -> None:
    """A header over messages says the day in words."""
    assert display_date(created) == shown
