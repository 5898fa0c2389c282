"""Date terms: of the time when a text was written, and of the dates in a question. English calendar words, and German months."""

import re

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
