"""Dates as terms: when a text was written, and which dates a question names. Knows calendars in English; knows nothing of ranking."""

import re
from datetime import UTC, datetime

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ISO = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b(?!-\d\d)")
_MONTH_WORD = "|".join(f"{m[:3]}(?:{m[3:]})?" if len(m) > 3 else m for m in MONTHS) + "|sept"
_MONTH = re.compile(
    rf"(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+)?\b(?P<month>{_MONTH_WORD})\b\.?(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?",
    re.IGNORECASE,
)
_VERBS = frozenset({"may", "mar", "march", "sep", "dec", "jan"})
"""Words that are not always months: they count where a day or year stands beside them, or a capital and a preposition before them."""
_IN_BEFORE = re.compile(r"\b(?:in|on|of|since|until|last|next|this|during|by|from)\s+$", re.IGNORECASE)
_YEAR_AFTER = re.compile(r"^\.?,?\s+(?:19|20)\d\d\b")
_WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAYS)})s?\b", re.IGNORECASE)


def moment(text: str) -> datetime:
    """An ISO 8601 time as an aware UTC datetime; without an offset it is taken as UTC; raises ValueError."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(time: datetime) -> str:
    """ISO 8601 UTC as the manifests write it, e.g. `2026-01-04T14:30:00Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def date_terms(created_at: str) -> tuple[str, ...]:
    """The terms under which a text written at `created_at` is found by its date; () where that is no ISO time."""
    try:
        day = moment(created_at)
    except ValueError:
        return ()
    return (f"@{day:%Y}", f"@{day:%Y-%m}", f"@{day:%Y-%m-%d}", f"@{MONTHS[day.month - 1]}", f"@{day.day}", f"@{WEEKDAYS[day.weekday()]}")


def asked_dates(query: str) -> tuple[str, ...]:
    """The date terms that a question names: years, months with their days, weekdays, ISO dates; each once."""
    found = [f"@{year}" for year in _YEAR.findall(query)]
    found += ["@" + "-".join(part for part in iso if part) for iso in _ISO.findall(query)]
    found += [f"@{day.lower()}" for day in _WEEKDAY.findall(query)]
    for match in _MONTH.finditer(query):
        found += _month_terms(match, query)
    return tuple(dict.fromkeys(found))


def _month_terms(match: re.Match[str], query: str) -> list[str]:
    word, day = match["month"], match["before"] or match["after"]
    if word.lower() in _VERBS and not day and not _surely_month(match, query):
        return []
    month = next(m for m in MONTHS if m.startswith(word.lower()[:3]))
    return [f"@{month}", *([f"@{int(day)}"] if day and 1 <= int(day) <= 31 else [])]


def _surely_month(match: re.Match[str], query: str) -> bool:
    if _YEAR_AFTER.match(query[match.end() : match.end() + 8]):
        return True
    return match["month"][0].isupper() and bool(_IN_BEFORE.search(query[max(0, match.start("month") - 12) : match.start("month")]))
