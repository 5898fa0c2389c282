"""Dates as pages write them, as ISO 8601 days."""

import re
from datetime import date

from pandora_dagster.language.dates import MONTH_NUMBERS, days

_STAMP = re.compile(r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)(?=T|\b)")
_SLASHES = re.compile(r"(?<![\d/])(?:(\d{4})[/.](\d{1,2})[/.](\d{1,2})|(\d{1,2})/(\d{1,2})/(\d{4}))(?![\d/])")
_MONTH_OF_YEAR = re.compile(rf"(?<!\w)({'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\.?\s+((?:19|20)\d\d)\b", re.IGNORECASE)
_CJK = re.compile(r"((?:19|20)\d\d)\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]")


def first_date(text: str, language: str = "") -> str:
    """The first day with a year that a text names; "" for none. `01/02/2026` is read by language: English with `en-US` month first."""
    if not any(ch.isdigit() for ch in text):
        return ""
    found: list[tuple[int, tuple[int, int, int]]] = [(m.start, (m.key[0], m.key[1], m.key[2])) for m in days(text) if m.key[0]]
    for m in _SLASHES.finditer(text):
        if m[1]:
            found.append((m.start(), (int(m[1]), int(m[2]), int(m[3]))))
        else:
            first, second, year = int(m[4]), int(m[5]), int(m[6])
            american = (language.lower() == "en-us" and first <= 12) or second > 12
            found.append((m.start(), (year, first, second) if american else (year, second, first)))
    found += [(m.start(), (int(m[1]), int(m[2]), int(m[3]))) for pattern in (_STAMP, _CJK) for m in pattern.finditer(text)]
    for _, parts in sorted(found):
        if day := _iso(*parts):
            return day
    return ""


def month_of_year(text: str) -> str:
    """The first month with a year, as `2026-03`; "" for none."""
    found = _MONTH_OF_YEAR.search(text)
    return f"{int(found[2]):04d}-{MONTH_NUMBERS[found[1].lower()]:02d}" if found else ""


def _iso(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat() if 1900 <= year <= 2100 else ""
    except ValueError:
        return ""
