"""Date terms: of the time when a text was written, and of the dates in a question. English calendar words, and German months."""

import re
from collections.abc import Set as AbstractSet
from datetime import date, timedelta

from pandora_dagster.language.timestamps import parse_timestamp

_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTH_NAMES.split())
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ISO = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b(?!-\d\d)")
_GERMAN_MONTH_WORD = "januar|februar|märz|maerz|mai|juni|juli|okt(?:ober)?|dez(?:ember)?"
MONTH_WORD = "|".join([*(f"{m[:3]}(?:{m[3:]})?" if len(m) > 3 else m for m in MONTHS), "sept", _GERMAN_MONTH_WORD])
_GERMAN_MONTHS = {"mär": "march", "mae": "march", "mai": "may", "okt": "october", "dez": "december"}
"""The first three letters of German months where they are others."""
_MONTH = re.compile(
    rf"(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+of)?\s+)?\b(?P<month>{MONTH_WORD})\b\.?(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?",
    re.IGNORECASE,
)
_AMBIGUOUS_MONTH_WORDS = frozenset({"may", "mar", "march", "sep", "dec", "jan", "mai", "juli"})
"""Words that are not always months (verbs, names): they count with a day or year beside them, or a capital and a preposition before."""
_PREPOSITION_BEFORE = re.compile(
    r"\b(?:in|on|of|since|until|last|next|this|during|by|from|im|seit|bis|ab|letzten|diesen)\s+$", re.IGNORECASE
)
_YEAR_AFTER = re.compile(r"^\.?,?\s+(?:19|20)\d\d\b")
_WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAYS)})s?\b", re.IGNORECASE)

_DAY_ADVERBS = frozenset({"yesterday", "today", "tonight", "tomorrow"})
_DIRECTIONS = frozenset({"last", "this", "next", "past"})
_PERIODS = ("night", "morning", "evening", "week", "weekend", "month", "year", *WEEKDAYS)
_TIME_WORDS = frozenset(
    (*_DAY_ADVERBS, "last", "next", "ago", "since", "recently", "lately", "week", "weekend", "month", "year", *WEEKDAYS, *MONTHS)
) - {"may"}
_DATE_TOKEN = re.compile(r"\d{4}(?:-\d\d-\d\d)?|\d{1,2}(?:st|nd|rd|th)")
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30}
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_VAGUE_COUNTS = {"couple of": 2, "a couple of": 2, "few": 3, "a few": 3}
_AGO = re.compile(
    rf"\b(\d{{1,3}}|{'|'.join(sorted(_COUNTS | _VAGUE_COUNTS, key=len, reverse=True))}) (day|week|month|year)s? ago\b", re.IGNORECASE
)
_NEAR_PERIOD = re.compile(
    rf"\b({'|'.join(sorted(_DAY_ADVERBS))}|(?:{'|'.join(sorted(_DIRECTIONS))}) (?:{'|'.join(_PERIODS)}))\b", re.IGNORECASE
)
_DAY_OFFSETS = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0, "this evening": 0, "tomorrow": 1}
_DIRECTION_STEPS = {"last": -1, "past": -1, "this": 0, "next": 1}


def date_terms(created_at: str) -> tuple[str, ...]:
    """The date terms of a text written at `created_at`; () where that is not an ISO time."""
    try:
        day = parse_timestamp(created_at)
    except ValueError:
        return ()
    return (f"@{day:%Y}", f"@{day:%Y-%m}", f"@{day:%Y-%m-%d}", f"@{MONTHS[day.month - 1]}", f"@{day.day}", f"@{WEEKDAYS[day.weekday()]}")


def query_date_terms(query: str) -> tuple[str, ...]:
    """The date terms that a question names: years, months with their days, weekdays, ISO dates; each once."""
    found = [f"@{year}" for year in _YEAR.findall(query)]
    found += ["@" + "-".join(part for part in iso if part) for iso in _ISO.findall(query)]
    found += [f"@{day.lower()}" for day in _WEEKDAY.findall(query)]
    for match in _MONTH.finditer(query):
        found += _month_terms(match, query)
    return tuple(dict.fromkeys(found))


def months_named(query: str) -> tuple[tuple[int, int], ...]:
    """The months in a question, each with its day or 0."""
    named = [terms for found in _MONTH.finditer(query) if (terms := _month_terms(found, query))]
    return tuple((MONTHS.index(month[1:]) + 1, int(day[0][1:]) if day else 0) for month, *day in named)


def names_year(query: str) -> bool:
    """Whether a question names a year."""
    return bool(_YEAR.search(query) or _ISO.search(query))


def has_date_words(words: AbstractSet[str]) -> bool:
    """Whether a text of these lower-cased words contains a date, a calendar word, `last` or `ago`."""
    return not _TIME_WORDS.isdisjoint(words) or any(word[0].isdigit() and _DATE_TOKEN.fullmatch(word) for word in words)


def has_relative_date_words(words: AbstractSet[str]) -> bool:
    """Whether a text of these words may contain an expression that `relative_date_terms` reads: a fast check before the slow one."""
    return "ago" in words or not _DAY_ADVERBS.isdisjoint(words) or not (_DIRECTIONS.isdisjoint(words) or words.isdisjoint(_PERIODS))


def relative_date_terms(text: str, created_at: str) -> tuple[str, ...]:
    """The date terms that expressions such as `last week` or `two months ago` mean in a text written at `created_at`.

    Each as exactly as it is said: a day, a month, or a year. () where `created_at` is no ISO time.
    """
    said = [m[0].lower() for m in _NEAR_PERIOD.finditer(text)]
    ago = [((_COUNTS | _VAGUE_COUNTS).get(m[1].lower()) or int(m[1]), m[2].lower()) for m in _AGO.finditer(text)]
    if not said and not ago:
        return ()
    try:
        day = parse_timestamp(created_at).date()
        found = [term for words in said for term in _near_period_terms(words, day)]
        found += [term for count, unit in ago for term in _ago_terms(day, count, unit)]
    except (ValueError, OverflowError):
        return ()
    return tuple(dict.fromkeys(found))


def _ago_terms(day: date, count: int, unit: str) -> tuple[str, ...]:
    if unit == "year":
        return (f"@{day.year - count}",) if count < day.year else ()
    return _terms_at_precision(day - timedelta(_UNIT_DAYS[unit] * count), unit)


def _near_period_terms(words: str, day: date) -> tuple[str, ...]:
    if words in _DAY_OFFSETS:
        return _terms_at_precision(day + timedelta(_DAY_OFFSETS[words]), "day")
    way, _, unit = words.partition(" ")
    if unit in WEEKDAYS or unit == "weekend":
        wanted = 5 if unit == "weekend" else WEEKDAYS.index(unit)
        return _terms_at_precision(_nearest_weekday(day, wanted, _DIRECTION_STEPS[way]), "day" if unit in WEEKDAYS else "week")
    if unit == "month":
        middle = day.replace(day=15)
        return _terms_at_precision(middle + timedelta(30 * _DIRECTION_STEPS[way]), unit)
    if unit == "year":
        return (f"@{day.year + _DIRECTION_STEPS[way]}",)
    return _terms_at_precision(day + timedelta(7 * _DIRECTION_STEPS[way]), "week")


def _nearest_weekday(day: date, wanted: int, way: int) -> date:
    """The last, this coming or the next such weekday; never the day itself unless it is `this` one."""
    if way < 0:
        return day - timedelta((day.weekday() - wanted) % 7 or 7)
    ahead = (wanted - day.weekday()) % 7
    return day + timedelta(ahead or 7 * way)


def _terms_at_precision(day: date, unit: str) -> tuple[str, ...]:
    year, month = f"@{day:%Y}", (f"@{day:%Y-%m}", f"@{MONTHS[day.month - 1]}")
    return (year, *month, f"@{day:%Y-%m-%d}", f"@{day.day}") if unit == "day" else (year, *month)


def display_date(created_at: str) -> str:
    """A readable day, e.g. `8 May 2023`; the text unchanged where it is not an ISO time."""
    try:
        day = parse_timestamp(created_at)
    except ValueError:
        return created_at
    return f"{day.day} {MONTHS[day.month - 1].capitalize()} {day.year}"


def _month_terms(match: re.Match[str], query: str) -> list[str]:
    word, day = match["month"], match["before"] or match["after"]
    if word.lower() in _AMBIGUOUS_MONTH_WORDS and not day and not _is_month_by_context(match, query):
        return []
    month = _GERMAN_MONTHS.get(word.lower()[:3]) or next(m for m in MONTHS if m.startswith(word.lower()[:3]))
    return [f"@{month}", *([f"@{int(day)}"] if day and 1 <= int(day) <= 31 else [])]


def _is_month_by_context(match: re.Match[str], query: str) -> bool:
    if _YEAR_AFTER.match(query[match.end() : match.end() + 8]):
        return True
    return match["month"][0].isupper() and bool(_PREPOSITION_BEFORE.search(query[max(0, match.start("month") - 12) : match.start("month")]))
