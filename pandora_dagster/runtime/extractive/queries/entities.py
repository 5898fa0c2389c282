"""Names, ids, numbers, dates and addresses inside a text, verbatim, by their form."""

import re
from itertools import chain

from pandora_dagster.language.quantities import quantities

QUOTED = re.compile(r"\"([^\"\n]{1,120})\"|“([^”\n]{1,120})”|(?<!\w)'([^'\n]{2,120})'(?!\w)")
URL = re.compile(r"https?://[^\s<>()\[\]\"'`|]+[^\s<>()\[\]\"'`|.,;:!?]")
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
IDENTIFIER = re.compile(r"(?<![\w.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z_-])[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*(?![\w-])")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
NAME = re.compile(r"(?<![.!?] )(?<!^)(?<![\w'])[A-Z][\w'’]*[^\W_](?: [A-Z][\w'’]*\w)*(?: \d{1,4}(?:st|nd|rd|th)?\b)?", re.MULTILINE)
_NOT_NAMES = frozenset(("i", "i'm", "i'd", "i'll", "i've", "ok", "what", "which", "who", "when", "where", "how", "why", "the", "yes", "no"))


def entities(text: str) -> tuple[str, ...]:
    """Quoted strings, addresses, ids, names and numbers with their units in `text`, each once, in order."""
    addressed = ((m.span(), next((g for g in m.groups() if g), m[0])) for shape in (QUOTED, URL, EMAIL) for m in shape.finditer(text))
    named = ((m.span(), m[0]) for shape in (NAME, IDENTIFIER) for m in shape.finditer(text))
    counted = (((q.start, q.end), text[q.start : q.end]) for q in quantities(text))
    is_taken, values_at = bytearray(len(text)), list[tuple[int, str]]()
    for (start, end), value in chain(addressed, named, counted):
        if value.strip() and value.lower() not in _NOT_NAMES and not any(is_taken[start:end]):
            is_taken[start:end] = b"x" * (end - start)
            values_at.append((start, value))
    return tuple(dict.fromkeys(value for _, value in sorted(values_at)))


def identifiers(text: str) -> tuple[str, ...]:
    """What must not be invented: addresses, ids and numbers of `text`, each once; a number without its sign and commas."""
    addresses = [m for shape in (URL, EMAIL) for m in shape.findall(text)]
    rest = EMAIL.sub(" ", URL.sub(" ", text))
    ids = IDENTIFIER.findall(rest)
    numbers = [n.replace(",", "").rstrip(".") for n in NUMBER.findall(IDENTIFIER.sub(" ", rest))]
    return tuple(dict.fromkeys([*addresses, *ids, *numbers]))
