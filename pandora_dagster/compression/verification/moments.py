"""Days and times of day in a text, in any of their spellings.

`14 March`, `March 14, 2026`, `14.03.2026`, `2026-03-14`; `1 pm`, `13:00`, `13 h`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
_MONTHS = {word: number for number, words in enumerate(_MONTH_WORDS, 1) for word in words.split()}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = r"(?P<{0}>0?[1-9]|[12]\d|3[01])"
_DATE = re.compile(
    r"(?<![\d.])(?P<iso>(?P<y0>\d{4})-(?P<m0>\d\d)-(?P<d0>\d\d))(?!\d)"
    rf"|(?<![\d.,:]){_DAY.format('d1')}\.\s?(?P<m1>0?[1-9]|1[0-2])\.(?:\s?(?P<y1>(?:19|20)\d\d))?(?![\d])"
    rf"|(?<![\d.,:])(?:(?P<d4>0?[1-9]|[12]\d|3[01])\.?\s?[-\u2013]\s?)?{_DAY.format('d2')}(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?(?P<m2>{_MONTH})\b\.?(?:,?\s+(?:de\s+)?(?P<y2>(?:19|20)\d\d)\b)?"
    rf"|\b(?P<m3>{_MONTH})\.?\s+{_DAY.format('d3')}(?:st|nd|rd|th)?\b(?![.,:]\d)(?:,?\s+(?P<y3>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_TIME = re.compile(
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
    return _MONTHS.get(word.lower().rstrip("."), 0)


def days(text: str) -> Iterator[Moment]:
    """The days that `text` names."""
    for m in _DATE.finditer(text):
        for n in "0123":
            if m[f"d{n}"]:
                month = int(m[f"m{n}"]) if m[f"m{n}"].isdigit() else _MONTHS[m[f"m{n}"].lower()]
                year = int(m[f"y{n}"] or 0)
                yield Moment(*m.span(), (year, month, int(m[f"d{n}"])))
                if n == "2" and m["d4"]:
                    yield Moment(*m.span(), (year, month, int(m["d4"])))


def times(text: str) -> Iterator[Moment]:
    """The times of day that `text` names: with minutes, or with a word of the clock."""
    for m in _TIME.finditer(text):
        if m["half"] or m["clock"] or (m["minute"] and ":" in m[0]):
            hour = int(m["hour"]) % 12 + 12 * (m["half"].lower() == "p") if m["half"] else int(m["hour"])
            yield Moment(*m.span(), (0, hour * 60 + int(m["minute"] or 0)))
