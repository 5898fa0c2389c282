"""Names, ids, numbers, dates and addresses inside a text, verbatim. Knows their shapes only."""

import re

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*"
_UNIT = r"(?:kg|g|km|m|cm|mm|mi|miles?|GB|MB|TB|GHz|hours?|minutes?|days?|weeks?|months?|years?|people|passengers?|bags?|nights?|%)"
QUOTED = re.compile(r"\"([^\"\n]{1,120})\"|“([^”\n]{1,120})”|(?<!\w)'([^'\n]{2,120})'(?!\w)")
URL = re.compile(r"https?://[^\s<>()\[\]\"'`|]+[^\s<>()\[\]\"'`|.,;:!?]")
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
DATE = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}/\d{1,2}(?:/\d{2,4})?\b"
    rf"|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}(?:,? \d{{4}})?\b"
)
MONEY = re.compile(r"[$€£]\s?\d[\d,]*(?:\.\d+)?(?:\s?-\s?[$€£]?\d[\d,]*)?|\b\d[\d,]*(?:\.\d+)? ?(?:USD|EUR|GBP|dollars?|euros?)\b")
MEASURE = re.compile(rf"\b\d[\d,]*(?:\.\d+)? ?{_UNIT}(?!\w)")
IDENTIFIER = re.compile(r"(?<![\w.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z_-])[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*(?![\w-])")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
NAME = re.compile(r"(?<![.!?] )(?<!^)(?<![\w'])[A-Z][\w'’]*[^\W_](?: [A-Z][\w'’]*\w)*(?: \d{1,4}\b)?", re.MULTILINE)
_TIMEY = re.compile(
    rf"\b(?:yesterday|today|tomorrow|tonight|ago|last|next|since|week(?:end)?s?|months?|years?|mornings?|evenings?|\d{{4}}|{_MONTH}"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|\b\d{1,2}(?::\d{2})? ?(?:am|pm)\b|\b\d{1,2}:\d{2}\b",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\b(?:\d[\d,.]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|dozen|several)\b", re.IGNORECASE
)
_MIDDLE_NAME = re.compile(r"(?<=[a-z,:] )[A-Z][\w'’]+")
_SHAPES = (QUOTED, URL, EMAIL, DATE, MONEY, MEASURE, IDENTIFIER, NAME, NUMBER)


def entities(text: str) -> tuple[str, ...]:
    """Quoted strings, addresses, dates, money, measures, ids, names and numbers of `text`, each once, in order."""
    found: list[tuple[int, str]] = []
    taken = bytearray(len(text))
    for shape in _SHAPES:
        for m in shape.finditer(text):
            value = next((g for g in m.groups() if g), m.group(0))
            if not any(taken[m.start() : m.end()]):
                taken[m.start() : m.end()] = b"x" * (m.end() - m.start())
                found.append((m.start(), value))
    kept = (v for _, v in sorted(found) if v.strip() and v.lower() not in _NO_NAMES)
    return tuple(dict.fromkeys(kept))


_NO_NAMES = frozenset(("i", "i'm", "i'd", "i'll", "i've", "ok", "what", "which", "who", "when", "where", "how", "why", "the", "yes", "no"))


def identifiers(text: str) -> tuple[str, ...]:
    """What must not be invented: addresses, ids and numbers of `text`, each once; a number without its sign and commas."""
    addresses = [m for shape in (URL, EMAIL) for m in shape.findall(text)]
    rest = EMAIL.sub(" ", URL.sub(" ", text))
    ids = IDENTIFIER.findall(rest)
    numbers = [n.replace(",", "").rstrip(".") for n in NUMBER.findall(IDENTIFIER.sub(" ", rest))]
    return tuple(dict.fromkeys([*addresses, *ids, *numbers]))


def has_kind(kind: str, text: str) -> bool:
    """Whether `text` holds something of `kind`: money, time, count, person or place (the last two: a name inside a sentence)."""
    if kind == "money":
        return bool(MONEY.search(text))
    if kind == "time":
        return bool(_TIMEY.search(text) or DATE.search(text))
    if kind == "count":
        return bool(_COUNT.search(text))
    return bool(_MIDDLE_NAME.search(text))
