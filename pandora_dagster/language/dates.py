"""Dates: the terms of the time when a text was written and of the dates in a question, and the days and times of day that a text names.

Terms are of English calendar words and German months. Days and times are in any of their spellings: `14 March`, `March 14, 2026`,
`14.03.2026`, `2026-03-14`; `1 pm`, `13:00`, `13 h`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.language.timestamps import parse_timestamp

_MONTH_WORDS = (
    "january januar jänner janvier enero gennaio januari janeiro jan ene",
    "february februar février febrero febbraio februari fevereiro feb",
    "march märz maerz mars marzo maart março mar mär",
    "april avril abril aprile apr avr abr",
    "may mai mayo maggio mei maio",
    "june juni juin junio giugno junho jun",
    "july juli juillet julio luglio julho jul",
    "august août aout agosto augustus aug",
    "september septembre septiembre settembre setembro sep sept",
    "october oktober octobre octubre ottobre outubro oct okt",
    "november novembre noviembre novembro nov",
    "december dezember décembre diciembre dicembre dezembro dec dez dic",
)
"""Months by number, each in English, German, French, Italian, Dutch, Portuguese and Spanish, with abbreviations."""
MONTHS = tuple(words.split()[0] for words in _MONTH_WORDS)
MONTH_NUMBERS = {word: number for number, words in enumerate(_MONTH_WORDS, 1) for word in words.split()}
"""Word -> number of the month."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ISO = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b(?!-\d\d)")
_GERMAN_MONTH_WORD = "januar|februar|märz|maerz|mai|juni|juli|okt(?:ober)?|dez(?:ember)?"
MONTH_WORD = "|".join([*(f"{m[:3]}(?:{m[3:]})?" if len(m) > 3 else m for m in MONTHS), "sept", _GERMAN_MONTH_WORD])
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
    month = MONTHS[MONTH_NUMBERS[word.lower()] - 1]
    return [f"@{month}", *([f"@{int(day)}"] if day and 1 <= int(day) <= 31 else [])]


def _is_month_by_context(match: re.Match[str], query: str) -> bool:
    if _YEAR_AFTER.match(query[match.end() : match.end() + 8]):
        return True
    return match["month"][0].isupper() and bool(_PREPOSITION_BEFORE.search(query[max(0, match.start("month") - 12) : match.start("month")]))


# Days and times of day with their places, for comparing two texts.

_ANY_MONTH = "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True))
_DAY_NUMBER = r"(?P<{0}>0?[1-9]|[12]\d|3[01])"
_DAY_OF_MONTH = re.compile(
    r"(?<![\d.])(?P<iso>(?P<y0>\d{4})-(?P<m0>\d\d)-(?P<d0>\d\d))(?!\d)"
    rf"|(?<![\d.,:]){_DAY_NUMBER.format('d1')}\.\s?(?P<m1>0?[1-9]|1[0-2])\.(?:\s?(?P<y1>(?:19|20)\d\d))?(?![\d])"
    rf"|(?<![\d.,:])(?:(?P<d4>0?[1-9]|[12]\d|3[01])\.?\s?[-\u2013]\s?)?{_DAY_NUMBER.format('d2')}(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?(?P<m2>{_ANY_MONTH})\b\.?(?:,?\s+(?:de\s+)?(?P<y2>(?:19|20)\d\d)\b)?"
    rf"|\b(?P<m3>{_ANY_MONTH})\.?\s+{_DAY_NUMBER.format('d3')}(?:st|nd|rd|th)?\b(?![.,:]\d)(?:,?\s+(?P<y3>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_TIME_OF_DAY = re.compile(
    r"(?<![\d.,:])(?P<hour>[01]?\d|2[0-3])(?:[:h.](?P<minute>[0-5]\d)(?!\d))?(?:\s?(?P<half>[ap])\.?m\b\.?|\s?(?P<clock>uhr|h|o['\u2019]clock)\b)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A day (`year` 0 where it is not named) or a time of day in minutes, at `start:end` of its text."""

    start: int
    end: int
    key: tuple[int, ...]

    def agrees(self, other: "Moment") -> bool:
        """Whether both are the same day or time; a day without a year agrees with that day of any year."""
        return self.key[1:] == other.key[1:] and (self.key[0] == other.key[0] or 0 in (self.key[0], other.key[0]))


def month_number(word: str) -> int:
    """The number of the month that a word names; 0 for another word."""
    return MONTH_NUMBERS.get(word.lower().rstrip("."), 0)


def days(text: str) -> Iterator[Moment]:
    """The days that `text` names."""
    for m in _DAY_OF_MONTH.finditer(text):
        for n in "0123":
            if m[f"d{n}"]:
                month = int(m[f"m{n}"]) if m[f"m{n}"].isdigit() else MONTH_NUMBERS[m[f"m{n}"].lower()]
                year = int(m[f"y{n}"] or 0)
                yield Moment(*m.span(), (year, month, int(m[f"d{n}"])))
                if n == "2" and m["d4"]:
                    yield Moment(*m.span(), (year, month, int(m["d4"])))


def times(text: str) -> Iterator[Moment]:
    """The times of day that `text` names: with minutes, or with a word of the clock."""
    for m in _TIME_OF_DAY.finditer(text):
        if m["half"] or m["clock"] or (m["minute"] and ":" in m[0]):
            hour = int(m["hour"]) % 12 + 12 * (m["half"].lower() == "p") if m["half"] else int(m["hour"])
            yield Moment(*m.span(), (0, hour * 60 + int(m["minute"] or 0)))
