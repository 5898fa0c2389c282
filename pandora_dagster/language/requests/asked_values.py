"""The kind of value that a question asks for, and the values of that kind in a text, each with a key under which equal ones meet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pandora_dagster.language.dates import days
from pandora_dagster.language.quantities import Quantity, is_currency, quantities


class AskedKind(StrEnum):
    """What a question asks for."""

    MONEY = "money"
    DATE = "date"
    MASS = "mass"
    LENGTH = "length"
    DURATION = "duration"
    TEMPERATURE = "temperature"
    PRESSURE = "pressure"
    TORQUE = "torque"
    PHONE = "phone"
    NUMBER = "number"
    YES_NO = "yes or no"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value, verbatim from `text[start:end]`."""

    start: int
    end: int
    key: str


_ASKED: tuple[tuple[AskedKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for kind, words in (
        (AskedKind.PHONE, r"(?:tele)?phone numbers?|telefonnummer|rufnummer|numéro de téléphone"),
        (AskedKind.TEMPERATURE, r"temperatures?|temperatur\w*|how (?:cold|hot|warm)|wie (?:kalt|heiß|warm)|température"),
        (AskedKind.PRESSURE, r"pressure|(?:\w*druck)|pression"),
        (AskedKind.TORQUE, r"torque|drehmoment|anzugsmoment"),
        (
            AskedKind.DATE,
            r"when|what (?:day|date)|which (?:day|date)|until when|deadline|wann|welche[mnrs]? tag|quand|quelle date|wanneer|cuándo",
        ),
        (AskedKind.MASS, r"weighs?|how heavy|weight|mass|masse|wiegt|wie schwer|gewicht|pèse|poids|pesa|peso"),
        (
            AskedKind.MONEY,
            r"costs?|prices?|pay|paid|how much (?:is|are|does|do|was)|fees?|kostet|kosten|preise?|bezahl\w*|zahl(?:e|t|en)|coûte\w*|prix"
            r"|cuesta\w*|precio|costa|prezzo|kost|prijs",
        ),
        (
            AskedKind.DURATION,
            r"how long (?:is|does|do|did|will|can)|how (?:many )?(?:hours|minutes|days|years|months)|wie lange?|combien de temps",
        ),
        (
            AskedKind.LENGTH,
            r"how (?:thick|wide|tall|far|deep|high|long)|wie (?:dick|breit|hoch|weit|tief|lang)|diameter|durchmesser|thickness",
        ),
        (AskedKind.NUMBER, r"how (?:many|much)|wie viele?|combien|cuánt\w+|hoeveel"),
        (AskedKind.YES_NO, r"^(?:is|are|was|were|does|do|did|can|could|has|have|will|may|ist|sind|hat|kann|darf|gibt)"),
    )
)
_SCALES: dict[AskedKind, dict[str, float]] = {
    AskedKind.MASS: {"mg": 0.001, "g": 1, "kg": 1000, "t": 1e6, "lb": 453.592, "lbs": 453.592, "oz": 28.3495},
    AskedKind.LENGTH: {"mm": 1, "cm": 10, "m": 1000, "km": 1e6, "in": 25.4, "ft": 304.8, "yd": 914.4, "mi": 1609344},
    AskedKind.DURATION: {
        **{"s": 1, "second": 1, "sekund": 1, "min": 60, "minut": 60, "h": 3600, "hour": 3600, "stund": 3600, "day": 86400, "tag": 86400},
        **{"week": 604800, "woch": 604800, "month": 2.592e6, "monat": 2.592e6, "year": 3.1536e7, "jahr": 3.1536e7},
    },
    AskedKind.TEMPERATURE: {"°c": 1, "°f": 1, "°": 1},
    AskedKind.PRESSURE: {"bar": 1, "psi": 0.0689476, "kpa": 0.01, "pa": 1e-5},
    AskedKind.TORQUE: {"nm": 1},
}
"""Units of each kind, with their size in the first one. What a number counts is given by its stem."""
_AMOUNT_GAP = re.compile(r"(?<=\d)\s(?=[$€£¥]\d)")
"""Between two amounts with their signs before them: `£92.00 £74.99`."""
_PHONE = re.compile(r"(?<![\w.])(?:\+\d{1,3}[\s/-]?)?(?:\(0?\d{1,5}\)|0\d{1,5})[\s/-]?\d{2,5}(?:[\s/-]?\d{2,5}){1,3}(?!\w)")


def asked_kind(question: str) -> AskedKind:
    """The kind of value that answers `question`; TEXT where its words do not say it."""
    return next((kind for kind, pattern in _ASKED if pattern.search(question)), AskedKind.TEXT)


def without_asking_words(question: str, kind: AskedKind) -> str:
    """The question without the words that say what kind of value it asks for."""
    return next((pattern.sub(" ", question) for listed, pattern in _ASKED if listed is kind), question)


def names_kind(text: str, kind: AskedKind) -> bool:
    """Whether `text` has a word that names a kind, such as `weight`."""
    return any(pattern.search(text) for listed, pattern in _ASKED if listed is kind)


def has_asked_value(kind: AskedKind) -> bool:
    """Whether an answer of this kind is one value of a text."""
    return kind not in (AskedKind.YES_NO, AskedKind.TEXT)


def values_of(kind: AskedKind, text: str, language: str) -> Iterator[FoundValue]:
    """The values of a kind in `text`, in order."""
    if kind is AskedKind.DATE:
        for moment in sorted(days(text), key=lambda m: m.start):
            yield FoundValue(moment.start, moment.end, "{:04d}-{:02d}-{:02d}".format(*moment.key))
    elif kind is AskedKind.PHONE:
        for found in _PHONE.finditer(text):
            yield FoundValue(*found.span(), re.sub(r"\D", "", found[0]))
    else:
        for quantity in quantities(_AMOUNT_GAP.sub(";", text), language):
            if key := _key(kind, quantity):
                yield FoundValue(quantity.start, _end(quantity, text), key)


def _key(kind: AskedKind, quantity: Quantity) -> str:
    """The key of a quantity of a kind; "" where it is of another one."""
    if kind is AskedKind.MONEY:
        return f"{_plain(quantity.number, 1)} {quantity.unit}" if is_currency(quantity.unit) else ""
    if kind is AskedKind.NUMBER:
        return f"{_plain(quantity.number, 1)} {quantity.unit or quantity.counted}"
    scale = _SCALES.get(kind, {}).get(quantity.unit or quantity.counted)
    return _plain(quantity.number, scale) if scale else ""


def _plain(number: str, scale: float) -> str:
    try:
        return f"{float(number) * scale:.6g}"
    except ValueError:
        return f"{number} x{scale:g}"


def _end(quantity: Quantity, text: str) -> int:
    """The end of a quantity with the word that it counts."""
    if quantity.unit or not quantity.counted:
        return quantity.end
    word = re.match(r"[ \u00a0\u202f]?\w+", text[quantity.end :])
    return quantity.end + (word.end() if word else 0)
