"""The days that a question means by `yesterday`, `last week` or `29 October`, relative to its own day. English and German.

Returns date terms (`language.dates`); the index finds the year of a date without one.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from pandora_dagster.language.dates import MONTH_WORD, MONTHS, WEEKDAYS, Moment, days, months_named, names_year
from pandora_dagster.language.timestamps import parse_timestamp

_DAY_ADVERBS = {
    **{"today": 0, "tonight": 0, "yesterday": -1, "last night": -1, "day before yesterday": -2},
    **{"heute": 0, "gestern": -1, "vorgestern": -2},
}
_GERMAN_WEEKDAYS = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_WEEKDAY_NUMBERS = {name: day for names in (WEEKDAYS, _GERMAN_WEEKDAYS) for day, name in enumerate(names)} | {"sonnabend": 5}
_UNITS = {"day": "day", "week": "week", "month": "month", "year": "year", "tag": "day", "woche": "week", "monat": "month", "jahr": "year"}
_COUNT_WORDS = "a an one ein einem einer eine;two zwei;three drei;four vier;five fünf;six sechs;seven sieben;eight acht"
_COUNTS = {word: count for count, words in enumerate(_COUNT_WORDS.split(";"), 1) for word in words.split()}
_VAGUE_COUNTS = {"couple of": 2, "few": 3, "paar": 3}
_NUMBER = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_DAY_ADVERB = re.compile(rf"\b(?:{'|'.join(sorted(_DAY_ADVERBS, key=len, reverse=True))})\b")
_AGO = re.compile(
    rf"\b{_NUMBER} (?P<unit>day|week|month|year)s? ago\b"
    rf"|\bvor {_NUMBER.replace('count', 'zahl')} (?P<einheit>tag|woche|monat|jahr)(?:en|e|n)?\b"
)
_GERMAN_LAST = r"(?:letzt|vorig|vergangen)e[nrsm]?"
_NOT_A_PART = rf"(?! (?:(?:of|des)\b|(?:in|im|vom|von) (?:(?:{MONTH_WORD})\b|(?:\d{{4}})\b)))"
"""What follows is no whole whose last part is meant: `the last week of May` is not last week."""
_LAST = re.compile(
    rf"\b(?:(?P<last>last|previous|this past|past(?= (?:weekend|{'|'.join(WEEKDAYS)}))|{_GERMAN_LAST})|this|diese[nrsm]?)"
    rf" (?P<what>weekend|wochenende|week|month|year|woche|monat|jahr|{'|'.join(_WEEKDAY_NUMBERS)})"
    rf"(?:(?<=jahr)es|(?<=monat)s|(?<=ende)s)?\b{_NOT_A_PART}"
)
_STRETCH = re.compile(
    rf"\b(?:last|past|previous|{_GERMAN_LAST}) (?P<number>\d{{1,3}}|{'|'.join(sorted(_COUNTS | _VAGUE_COUNTS, key=len, reverse=True))})"
    rf" (?P<many>day|week|month|year|tag|woche|monat|jahr)(?:en|e|s|n)?\b{_NOT_A_PART}"
    rf"|(?:\b(?:in|over|during|within|for) the (?:last|past)|(?<!this )\bpast) (?P<one>week|month|year)\b{_NOT_A_PART}"
)
_CONVERSATION_WORD = re.compile(
    r"\b(?:discuss(?:ed|ions?)?|talk(?:ed)?|sp(?:eak|oke|oken)|conversations?|chat(?:s|ted)?"
    r"|(?:i|we|you) (?:say|said|tell|told|mention(?:ed)?|ask(?:ed)?)"
    r"|(?:be|ge)sprochen|sprachen|geredet|gesagt|erzählt|gespräch\w*|unterh[aie]lt\w*|unterhielten)\b",
    re.IGNORECASE,
)
"""What was said: beside it a date is that of the talk, not of what was talked about."""
_PREPOSITIONS = re.compile(r"(?:\b(?:in|on|at|of|from|over|during|within|for|since|the|im|am|vom|seit|den|der)\s+)+", re.IGNORECASE)
_MAX_YEARS_BACK = 9
"""Within so many years every day of the calendar comes."""
_MAX_LISTED_DAYS = 62
"""A longer stretch is described by its months."""


def relative_day_terms(query: str, today: date) -> tuple[str, ...]:
    """The date terms of the days that the query names by their distance from `today`; each once, () where it names none.

    A week runs from Monday to Sunday; `last Friday` is the latest before today, `last weekend` the one before this week's.
    A stretch (`in the last 3 days`) reaches up to today.
    """
    periods = _past_periods(" ".join(query.lower().split()))
    return tuple(dict.fromkeys(term for found in periods for term in _terms_or_none(found, today)))


def query_day_terms(query: str, today: date) -> tuple[str, ...]:
    """As `relative_day_terms`, and the dates of conversations in the query: a date without a year is the newest up to `today`."""
    dated = tuple(term for found in _talk_days(" ".join(query.lower().split())) for term in _calendar_day_terms(found, today))
    return tuple(dict.fromkeys((*relative_day_terms(query, today), *dated)))


def mentioned_date_terms(text: str, created_at: str) -> tuple[str, ...]:
    """The date terms of expressions such as `last week` in a text written at `created_at`, each as exact as it is: a day, month or year.

    () where `created_at` is no ISO time.
    """
    periods = list(_past_periods(" ".join(text.lower().split())))
    try:
        day = parse_timestamp(created_at).date() if periods else date.min
    except ValueError:
        return ()
    return tuple(dict.fromkeys(term for found in periods for term in _calendar_terms(_terms_or_none(found, day))))


def _calendar_terms(terms: tuple[str, ...]) -> Iterator[str]:
    """The years and months of these terms, and the day where they are one day."""
    for term in terms:
        year, month, day = (*term[1:].split("-"), "", "")[:3]
        yield f"@{year}"
        if month:
            yield from (f"@{year}-{month}", f"@{MONTHS[int(month) - 1]}")
        if day and len(terms) == 1:
            yield from (term, f"@{int(day)}")


def strip_days(query: str) -> str:
    """The query without the words that name such days."""
    text = " ".join(query.split())
    lower = text.lower()
    spans = {found.span() for found in _past_periods(lower)} | {(day.start, day.end) for day in _talk_days(lower)}
    for start, end in sorted(spans, reverse=True) if len(text) == len(lower) else ():
        text = _without_last_prepositions(text[:start]) + text[end:]
    return " ".join(text.split())


def _without_last_prepositions(text: str) -> str:
    return _PREPOSITIONS.sub(lambda run: "" if run.end() == len(text) else run[0], text)


def refers_to_past(query: str) -> bool:
    """Whether the query names a past day: `today` and `this week` may refer to plans."""
    present = ("this ", "diese", "today", "tonight", "heute")
    text = " ".join(query.lower().split())
    return bool(_talk_days(text)) or any(not m[0].startswith(present) or m[0].startswith("this past") for m in _past_periods(text))


def yearless_days(query: str) -> tuple[str, ...]:
    """`10-29` or `10` for every day or month without a year in the query; () where it names a year."""
    if names_year(query):
        return ()
    return tuple(dict.fromkeys(f"{month:02d}-{day:02d}" if day else f"{month:02d}" for month, day in months_named(query)))


def _past_periods(text: str) -> Iterator[re.Match[str]]:
    for form in (_DAY_ADVERB, _AGO, _LAST, _STRETCH):
        yield from form.finditer(text)


def _talk_days(text: str) -> list[Moment]:
    return list(days(text)) if _CONVERSATION_WORD.search(text) else []


def _terms_or_none(found: re.Match[str], today: date) -> tuple[str, ...]:
    """The terms of a period; () outside the calendar."""
    try:
        return _terms(found, today)
    except (OverflowError, ValueError):
        return ()


def _terms(found: re.Match[str], today: date) -> tuple[str, ...]:
    if found.re is _DAY_ADVERB:
        return _days(today + timedelta(_DAY_ADVERBS[found[0]]), 1)
    if found.re is _AGO:
        return _period_before(today, _count(found["count"] or found["zahl"]), _UNITS[found["unit"] or found["einheit"]])
    if found.re is _LAST:
        return _last_period(today, found["what"], before=bool(found["last"]))
    return _recent_stretch(today, _count(found["number"] or "1"), _UNITS[found["many"] or found["one"]])


def _calendar_day_terms(found: Moment, today: date) -> tuple[str, ...]:
    """() for a day that no such year has."""
    year, month, day = found.key
    for one in (year,) if year else range(today.year, max(today.year - _MAX_YEARS_BACK, 1), -1):
        try:
            said = date(one, month, day)
        except ValueError:
            continue
        if year or said <= today:
            return _days(said, 1)
    return ()


def _count(word: str) -> int:
    return int(word) if word.isdigit() else (_COUNTS | _VAGUE_COUNTS)[word]


def _last_period(today: date, what: str, *, before: bool) -> tuple[str, ...]:
    if what in _WEEKDAY_NUMBERS:
        away = (today.weekday() - _WEEKDAY_NUMBERS[what]) % 7
        return _days(today - timedelta(away or 7 * before), 1)
    if what in ("weekend", "wochenende"):
        return _days(today - timedelta(today.weekday() + 7 * before - 5), 2)
    return _period_before(today, int(before), _UNITS[what])


def _period_before(today: date, count: int, unit: str) -> tuple[str, ...]:
    """The day, week, month or year that lies `count` of them back."""
    if unit == "year":
        return (f"@{today.year - count:04d}",) if count < today.year else ()
    if unit == "month":
        months = today.year * 12 + today.month - 1 - count
        return (f"@{months // 12:04d}-{months % 12 + 1:02d}",) if months >= 12 else ()
    if unit == "week":
        return _days(today - timedelta(7 * count + today.weekday()), 7)
    return _days(today - timedelta(count), 1)


def _recent_stretch(today: date, count: int, unit: str) -> tuple[str, ...]:
    """Everything from `count` of the unit ago up to today."""
    day_count = count * {"day": 1, "week": 7, "month": 31, "year": 366}[unit]
    if unit in ("day", "week") and day_count <= _MAX_LISTED_DAYS:
        return _days(today - timedelta(day_count), day_count + 1)
    if unit == "year":
        return tuple(term for back in range(min(count, today.year - 1) + 1) for term in _period_before(today, back, "year"))
    first = today - timedelta(day_count)
    return tuple(
        term
        for back in range((today.year - first.year) * 12 + today.month - first.month + 1)
        for term in _period_before(today, back, "month")
    )


def _days(first: date, count: int) -> tuple[str, ...]:
    return tuple(f"@{first + timedelta(ahead):%Y-%m-%d}" for ahead in range(count))
