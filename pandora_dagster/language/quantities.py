"""Numbers with sign, unit and currency: `9 €`, `$697.00`, `-3 °C`, `140/90`, `20 mg`, `5 %`, `2-3 km`, `1 ½ cups`, `6:30 pm`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pandora_dagster.language.stems import stem
from pandora_dagster.language.stop_words import stop_words

_CURRENCY_SIGNS = r"$€£¥₹₽₩₪₺฿₫₴"
_CURRENCY_WORDS = [
    "chf",
    "cad",
    "aud",
    "sek",
    "nok",
    "dkk",
    "pln",
    "zł",
    "kč",
    "inr",
    "cny",
    "rmb",
    "brl",
    "mxn",
    "hkd",
    "nzd",
    "sgd",
    "twd",
]
_UNIT_WORDS = {
    **{word: "$" for word in ("usd", "dollar", "dollars")},
    **{word: "€" for word in ("eur", "euro", "euros", "euroa")},
    **{word: "%" for word in ("percent", "prozent", "procent", "pct")},
    **{word: "year" for word in ("year", "years")},
    **{word: "second" for word in ("second", "seconds", "sec", "secs")},
    **{word: "£" for word in ("gbp", "sterling")},
    **{word: "¥" for word in ("jpy", "yen", "円")},
    **{word: word for word in (*_CURRENCY_WORDS, "元", "원")},
}
_CURRENCY_PREFIXES = {
    **{
        "US$": "$",
        "A$": "aud",
        "AU$": "aud",
        "C$": "cad",
        "CA$": "cad",
        "HK$": "hkd",
        "MX$": "mxn",
        "NT$": "twd",
        "NZ$": "nzd",
        "R$": "brl",
    },
    **{"S$": "sgd", "CN¥": "cny", "JP¥": "¥"},
}
"""Currency signs with the letters of their country."""
_UNIT_SYMBOLS = """
% ‰ ° °c °f k m mm cm km mi ft in yd m² m2 m³ m3 km² km2 ha l ml cl dl g mg µg μg kg t lb lbs oz s ms µs ns h min d hz khz mhz ghz w kw mw
kwh wh v mv a ma mah ah j kj kcal cal pa kpa bar psi n nm b kb mb gb tb kib mib gib bit bps mbps gbps mph rpm rps qps db px pt am pm uhr x
mmhg mmol iu ie dpi mio mrd mia bn mn 人 日 月 年 時 分 秒 件 名 回 個 台 万 億 週
"""
_UNITS = frozenset(_UNIT_SYMBOLS.split())
_DIGITS = r"(?>\d{1,3}(?:[ \u00a0\u202f'’]\d{3}(?!\d))+|\d+)(?:[.,:]\d++)*+"
_FRACTION = r"[½⅓⅔¼¾⅛⅜⅝⅞]"
_WIDE_SCRIPTS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts without spaces between words: a number may begin behind any of their signs."""
_CURRENCY_CODES = "USD|EUR|GBP|CHF|JPY|CAD|AUD|SEK|NOK|DKK|PLN|INR|CNY|BRL|MXN|HKD|NZD|SGD|TWD"
_WORD = rf"[^\W\d_{_WIDE_SCRIPTS}]{{1,40}}"
_UNIT_AFTER = rf"[%‰{_CURRENCY_SIGNS}]|° ?[CF]?(?!\w)|[ap]\.m\.|{_WORD}[²³23]?(?:/{_WORD})?(?![^\W{_WIDE_SCRIPTS}])|[{_WIDE_SCRIPTS}]"
_PREFIXED = f"(?-i:{'|'.join(map(re.escape, _CURRENCY_PREFIXES))})"
_AMOUNT_START = rf"[{_CURRENCY_SIGNS}\d]|{_PREFIXED}"
_NUMBER = re.compile(
    rf"(?:(?<![^\W{_WIDE_SCRIPTS}])(?<!\d[.,:])(?P<sign>[-−+±](?={_AMOUNT_START})|[~≈<>≤≥]\s?(?={_AMOUNT_START}))?|(?=[{_CURRENCY_SIGNS}]))"
    rf"(?P<before>{_PREFIXED}\s?|[{_CURRENCY_SIGNS}]\s?|(?:{_CURRENCY_CODES})[ \u00a0](?=\d))?"
    rf"(?P<number>(?:{_DIGITS}(?:\s?{_FRACTION})?|{_FRACTION})(?:\s?[-–—/×x]\s?(?=\d)(?:{_DIGITS}))*)"
    rf"(?:(?P<ordinal>st|nd|rd|th|er|ère|ème|º|ª)(?!\w)"
    rf"|(?(before)(?![ \u00a0\u202f]?[{_CURRENCY_SIGNS}])|(?![ \u00a0\u202f][{_CURRENCY_SIGNS}]\d))[ \u00a0\u202f]?(?P<after>{_UNIT_AFTER})"
    rf"|(?!{_WORD}))",
    re.IGNORECASE,
)
"""The unit may be any word; which ones are units is looked up. In `£92.00 £74.99` the second sign is of the second amount.
A number begins at a word's begin, an amount with a sign before it at any place: `£92.00£74.99`, `Now£74.99`."""
_THOUSANDS_GAPS = re.compile(r"(?<=\d)[  \u202f'’](?=\d{3}(?!\d))")
_POINT_GROUPS, _COMMA_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3})+"), re.compile(r"\d{1,3}(?:,\d{3})+")
_COMMA_LANGUAGES = {"de", "fr", "es", "it", "nl", "pt", "pl", "da", "no", "sv", "fi", "cs", "ru", "uk", "ro", "tr", "hu", "id"}
"""Languages that write a comma before the decimals."""


_LETTER_UNITS = frozenset("ghlmkvw")
"""Single letters that are a unit behind a space too. `in` is a preposition there: `$1,299.00 in total`."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, verbatim from `text[start:end]`, unit included."""

    start: int
    end: int
    number: str
    """With its sign, without marks between thousands, a point before decimals: `-1234.5`, `2-3`, `140/90`."""
    unit: str
    """Currency sign or symbol of a unit, in lower case: `€`, `mg`, `°c`; "" where there is none."""
    counted: str
    """Stem of the word behind a number without a unit: `9 years` counts `year`; "" where there is none."""

    @property
    def key(self) -> str:
        """Number with unit, or with what it counts."""
        return f"{self.number} {self.unit or self.counted}".rstrip()


def quantities(text: str, language: str = "") -> Iterator[Quantity]:
    """The quantities of `text` in order. Digits inside a word (`4WQ150`) are none."""
    stops = stop_words(language) | stop_words("en")
    for found in _NUMBER.finditer(text):
        number, end = _normalize_number(found["number"], language), found.end("number")
        before = (found["before"] or "").strip()
        unit = _CURRENCY_PREFIXES.get(before) or _UNIT_WORDS.get(before.lower(), before.lower())
        counted = ""
        after = (found["after"] or "").lower().replace(" ", "")
        if found["ordinal"]:
            number, end = number + ".", found.end()
        elif after:
            symbol = _UNIT_WORDS.get(after, after).replace(".", "")
            is_unit = "/" in after or after in _UNIT_WORDS or symbol in _UNITS or after in _CURRENCY_SIGNS
            is_joined = text[found.end("number")] == found["after"][0]
            if is_unit and (not after.isalpha() or is_joined or (after in _LETTER_UNITS if len(after) == 1 else after != "in")):
                unit, end = f"{unit}{symbol}", found.end()
            elif after not in stops and len(after) > 1:
                counted = stem(after, language or "en")
                end = found.end() if is_joined else end
            elif is_joined and len(after) == 1:
                unit, end = after, found.end()
        sign = (found["sign"] or "").strip().replace("−", "-")
        yield Quantity(found.start(), end, sign + number, unit, counted)


def spellings(unit: str) -> tuple[str, ...]:
    """The ways to write a currency or unit: its sign and its words."""
    return (unit, *(word.lower() for word, symbol in (_UNIT_WORDS | _CURRENCY_PREFIXES).items() if symbol == unit))


def is_currency(unit: str) -> bool:
    """Whether a unit is a currency."""
    return unit != "" and (unit in _CURRENCY_SIGNS or unit.upper() in _CURRENCY_CODES.split("|"))


def _normalize_number(number: str, language: str) -> str:
    """`1,234.50` and, in German, `1.234,50` as `1234.50`."""
    number = _THOUSANDS_GAPS.sub("", number.strip()).replace("–", "-").replace("—", "-").replace("×", "x")
    if "," in number and "." in number:
        last = max(number.rfind(","), number.rfind("."))
        return re.sub(r"[.,]", "", number[:last]) + "." + number[last + 1 :]
    if _COMMA_GROUPS.fullmatch(number) and language not in _COMMA_LANGUAGES:
        return number.replace(",", "")
    if _POINT_GROUPS.fullmatch(number) and language in _COMMA_LANGUAGES:
        return number.replace(".", "")
    return re.sub(r"\s+", " ", number.replace(",", "."))


_TIME_UNITS = frozenset(("am", "pm", "uhr", "h", "年", "月", "日", "時"))
_MONEY = re.compile(rf"[$€£¥₹₩円元원]|\b(?:{'|'.join(_CURRENCY_WORDS)})\b", re.IGNORECASE)


def is_time(quantity: Quantity) -> bool:
    """Whether a quantity is a time of day or of the calendar."""
    return quantity.unit in _TIME_UNITS or ":" in quantity.number


def _is_money(quantity: Quantity) -> bool:
    return bool(_MONEY.search(quantity.unit))


def _is_number(quantity: Quantity) -> bool:
    return True


WANTED_VALUES: tuple[tuple[re.Pattern[str], Callable[[Quantity], bool]], ...] = tuple(
    (re.compile(asked, re.IGNORECASE), is_of_kind)
    for asked, is_of_kind in (
        (
            r"\b(?:when|what time|which (?:day|date|month|year)|what (?:day|date|month|year)|by when|deadline|wann|welche[mnrs]? tag|quand"
            r"|quelle (?:heure|date)|cuándo|qué día|wanneer|kiedy|quando)\b|いつ",
            is_time,
        ),
        (
            r"\b(?:costs?|prices?|pa(?:y|id)|spen[dt]|fees?|fares?|budget|kostet|kosten|preis|bezahl\w*|coûte\w*|prix|cuesta\w*|precio|costa|prezzo"
            r"|kost|prijs|kosztuje|cena|custa|preço)\b|いくら",
            _is_money,
        ),
        (
            r"\b(?:how (?:many|much|long|far|high|large|big|often|old|warm|heavy|wide)"
            r"|what (?:share|price|amount|percentage|dose|rate|version)"
            r"|wie (?:viel|viele|hoch|lange|groß|weit|oft|alt)|combien|cuánt\w+|hoeveel|hoe (?:lang|veel|oud)|ile|quant\w+)\b"
            r"|いくら|何[人円件]",
            _is_number,
        ),
    )
)
"""What closed-class words of a question ask for, and the numbers that answer it."""
