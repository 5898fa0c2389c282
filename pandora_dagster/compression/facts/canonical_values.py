"""Values that are equal though spelled differently: `$1,299.00` and `1299 USD`, `May 20, 2024` and `2024-05-20`.

Knows amounts, dates, times, units; gives one canonical spelling, or "" where it knows none.
"""

import re
from collections.abc import Callable

from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.words.european_forms import DECIMAL_COMMA, english, is_unclear, month_of
from pandora_dagster.compression.words.normalization import key, plain

_DIGITS = re.compile(rf"\d{{1,3}}(?: \d{{3}})+(?:,\d{{1,2}})?(?!\d)|{DECIMAL_COMMA}|\d+(?:,\d{{3}})*(?:\.\d+)?")
_CURRENCIES = {
    "$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "€": "eur", "eur": "eur", "euro": "eur", "euros": "eur",
    "£": "gbp", "gbp": "gbp", "pound": "gbp", "pounds": "gbp", "¥": "jpy", "jpy": "jpy", "chf": "chf", "cent": "cent", "cents": "cent",
    "元": "cny", "人民币": "cny", "人民幣": "cny", "円": "jpy", "원": "krw", "美元": "usd", "美金": "usd", "ドル": "usd", "달러": "usd",
    "欧元": "eur", "ユーロ": "eur", "유로": "eur", "英镑": "gbp", "ポンド": "gbp", "دولار": "usd", "يورو": "eur", "ريال": "riyal",
    "درهم": "dirham", "جنيه": "gineh", "₪": "ils", 'ש"ח': "ils",
}  # fmt: skip
_SCALES = {"hundred": 2, "thousand": 3, "k": 3, "m": 6, "million": 6, "b": 9, "billion": 9, "trillion": 12}
_ZEROS = {"百": 2, "千": 3, "万": 4, "萬": 4, "만": 4, "亿": 8, "億": 8, "억": 8}
_SCALE_WORD = re.compile(r"\b(?:hundred|thousand|million|billion|trillion)\b")
_PER = re.compile(r"(?:\b(?:per|pro|im|je|par|por|al) |\ban? |/ ?)([^\W\d_]+)$")
_DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})?")
_OTHER_DATE = re.compile(r"(?:(\d{4}) ?[年년] ?)?(?:(\d{1,2}) ?[月월])?(?: ?(\d{1,2}) ?[日号號일])?")
_UNITS = {
    "sec": "s",
    "second": "s",
    "min": "min",
    "minute": "min",
    "hr": "h",
    "hour": "h",
    "metre": "m",
    "meter": "m",
    "pound": "lb",
    "lb": "lb",
    "ounce": "oz",
}
_LONGEST = 200


def canonical(kind: FactKind, text: str) -> str:
    """One spelling for all equal values of a kind, "" where there is none."""
    reader = _READERS.get(kind)
    return reader(plain(text.lower().strip())) if reader and len(text) <= _LONGEST else ""


Value = tuple[FactKind, str]
"""A value by its kind and its spelling."""


def spelling(kind: FactKind, text: str) -> Value:
    """By what equal values are one: the canonical spelling, or the key where there is none."""
    return kind, canonical(kind, text) or key(text)


def plain_number(text: str) -> str:
    """`1,299.00` and `1.299,00` -> `1299`: without separators and trailing zeros."""
    if is_unclear(text):
        return text
    whole, _, fraction = english(text).replace(",", "").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def is_negative(text: str) -> bool:
    """Whether a value bears the sign of minus."""
    return text.startswith(("-", "\u2212"))


def _number(text: str) -> str:
    found = _DIGITS.search(text)
    if not found:
        return ""
    scale = _SCALE_WORD.search(text)
    return ("-" if is_negative(text) else "") + _scaled(plain_number(found.group()), _SCALES[scale.group()] if scale else 0)


def _money(text: str) -> str:
    amount = _DIGITS.search(text)
    zeros = sum(_ZEROS.get(sign, 0) for sign in text)
    names = re.findall(r"[$€£¥]|[a-z]+|[^\W\d_]+(?:\"[^\W\d_]+)?", re.sub(f"[{''.join(_ZEROS)}]", " ", text))
    currency = next((_CURRENCIES[name] for name in names if name in _CURRENCIES), "")
    if not amount:
        return ""
    per = f" / {found.group(1)}" if (found := _PER.search(text)) else ""
    scale = next((_SCALES[name] for name in names if name in _SCALES), zeros)
    return f"{currency} {'-' if is_negative(text) else ''}{_scaled(plain_number(amount.group()), scale)}{per}"


def _scaled(number: str, zeros: int) -> str:
    whole, _, fraction = number.partition(".")
    moved = (whole + fraction[:zeros].ljust(zeros, "0")).lstrip("0") or "0"
    return moved + (f".{fraction[zeros:]}" if fraction[zeros:] else "")


def _percentage(text: str) -> str:
    points = "bp" if "b" in text else "pp" if "point" in text else "%"
    return f"{_number(text)} {points}"


def _quantity(text: str) -> str:
    unit = re.sub(r"[\W\d_]", "", _SCALE_WORD.sub("", text))
    bare = unit.removesuffix("s") if len(unit) > 2 else unit
    return f"{_number(text)} {_UNITS.get(bare, bare)}"


def _date(text: str) -> str:
    if iso := re.match(r"(\d{4})-(\d\d)-(\d\d)", text):
        return "-".join(iso.groups()) + text[10:]
    if other := _OTHER_DATE.fullmatch(text):
        year, month, day = other.groups()
        return f"{year or '-'}-{month.zfill(2) if month else '-'}-{day.zfill(2) if day else '-'}"
    if (dotted := _DOTTED_DATE.fullmatch(text)) and 0 < int(dotted.group(2)) <= 12:
        day, month, year = dotted.groups()
        return f"{year or '-'}-{month.zfill(2)}-{day.zfill(2)}"
    month = month_of(text)
    numbers = re.findall(r"\d+", text)
    if not month or not numbers:
        return ""
    year = next((n for n in numbers if len(n) == 4), "")
    day = next((n for n in numbers if len(n) < 3), "")
    return f"{year or '-'}-{month:02d}-{day.zfill(2) if day else '-'}"


def _time(text: str) -> str:
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    if not numbers:
        return ""
    hour = numbers[0] % 12 + (12 if "p" in text else 0) if re.search(r"[ap]\.?m", text) else numbers[0]
    minute, second = (*numbers[1:3], 0, 0)[:2]
    return f"{hour:02d}:{minute:02d}:{second:02d}"


_READERS: dict[FactKind, Callable[[str], str]] = {
    FactKind.MONEY: _money,
    FactKind.NUMBER: _number,
    FactKind.PERCENTAGE: _percentage,
    FactKind.QUANTITY: _quantity,
    FactKind.DATE: _date,
    FactKind.TIME: _time,
}
