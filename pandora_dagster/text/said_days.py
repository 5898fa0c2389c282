"""The days that a question means by `yesterday`, `last week` or `29 October`, seen from its own day. English and German.

Knows calendars and date terms (`text.dates`); knows nothing of who said what when: the year of a day that has none is the index's to find.
"""

import re
from datetime import date, timedelta

from pandora_dagster.text.dates import WEEKDAYS, months_named, names_year

_MOMENTS = {
    "today": 0,
    "tonight": 0,
    "yesterday": -1,
    "last night": -1,
    "day before yesterday": -2,
    "heute": 0,
    "gestern": -1,
    "vorgestern": -2,
}
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_WEEKDAY = {**{name: at for at, name in enumerate(WEEKDAYS)}, **{name: at for at, name in enumerate(_TAGE)}, "sonnabend": 5}
_UNITS = {"day": "day", "week": "week", "month": "month", "tag": "day", "woche": "week", "monat": "month"}
_COUNTED = ("a an one ein einem einer eine", "two zwei", "three drei", "four vier", "five fünf", "six sechs", "seven sieben", "eight acht")
_COUNTS = {word: count for count, words in enumerate(_COUNTED, 1) for word in words.split()}
_NUMBER = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_MOMENT = re.compile(rf"\b(?:{'|'.join(sorted(_MOMENTS, key=len, reverse=True))})\b")
_AGO = re.compile(
    rf"\b{_NUMBER} (?P<unit>day|week|month)s? ago\b|\bvor {_NUMBER.replace('count', 'zahl')} (?P<einheit>tag|woche|monat)(?:en|n)?\b"
)
_BEFORE_IT = r"last|previous|(?:letzt|vorig|vergangen)e[nrsm]?"
_LAST = re.compile(rf"\b(?:(?P<last>{_BEFORE_IT})|this|diese[nrsm]?) (?P<what>week|month|woche|monat|{'|'.join(_WEEKDAY)})\b")


def said_days(query: str, today: date) -> tuple[str, ...]:
    """The date terms of the days that the query names by their distance from `today`; each once, () where it names none.

    A week runs from Monday to Sunday; `last Friday` is the latest before today.
    """
    text = " ".join(query.lower().split())
    try:
        spans = [_days(today + timedelta(_MOMENTS[found[0]]), "day") for found in _MOMENT.finditer(text)]
        for found in _AGO.finditer(text):
            count, unit = found["count"] or found["zahl"], _UNITS[found["unit"] or found["einheit"]]
            spans.append(_before(today, int(count) if count.isdigit() else _COUNTS[count], unit))
        for found in _LAST.finditer(text):
            spans.append(_last(today, found["what"], before=bool(found["last"])))
    except OverflowError:
        return ()
    return tuple(dict.fromkeys(term for span in spans for term in span))


def yearless_days(query: str) -> tuple[str, ...]:
    """`10-29` or `10` for every day or month that the query names without a year; () where it names one."""
    if names_year(query):
        return ()
    return tuple(dict.fromkeys(f"{month:02d}-{day:02d}" if day else f"{month:02d}" for month, day in months_named(query)))


def _last(today: date, what: str, *, before: bool) -> tuple[str, ...]:
    if what in _WEEKDAY:
        away = (today.weekday() - _WEEKDAY[what]) % 7
        return _days(today - timedelta(away or 7 * before), "day")
    return _before(today, int(before), _UNITS[what])


def _before(today: date, count: int, unit: str) -> tuple[str, ...]:
    if unit == "month":
        months = today.year * 12 + today.month - 1 - count
        return (f"@{months // 12:04d}-{months % 12 + 1:02d}",) if months >= 12 else ()
    return _days(today - timedelta(count * (7 if unit == "week" else 1)), unit)


def _days(day: date, unit: str) -> tuple[str, ...]:
    first = day - timedelta(day.weekday()) if unit == "week" else day
    return tuple(f"@{first + timedelta(ahead):%Y-%m-%d}" for ahead in range(7 if unit == "week" else 1))
