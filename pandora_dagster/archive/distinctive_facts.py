"""The facts by which one person's documents can be told from everybody else's. Pure: texts in, facts out; nothing is kept."""

from collections.abc import Iterable

from pandora_dagster.compression import FactKind, build_ledger
from pandora_dagster.documents.redaction.user_traces import SHORTEST

_KINDS = frozenset((FactKind.MONEY, FactKind.QUANTITY, FactKind.URL, FactKind.IDENTIFIER, FactKind.NAME, FactKind.QUOTE, FactKind.NUMBER))
_LONGEST = 80
_DIGITS = 8
"""A bare number of fewer digits turns up by chance, in times and sizes."""
MOST_FACTS = 5_000
"""Facts that are looked for: those first that were told first in each document."""


def find_distinctive_facts(texts: Iterable[str]) -> tuple[str, ...]:
    """Names, numbers with units, identifiers, addresses and quotations of the texts, each once: what is long enough to be no chance."""
    found: dict[str, int] = {}
    for text in texts:
        for place, fact in enumerate(f for f in build_ledger(text).facts if f.kind in _KINDS):
            if _is_distinctive(fact.text):
                found[fact.text] = min(found.get(fact.text, place), place)
    return tuple(sorted(found, key=lambda fact: (found[fact], fact)))


def _is_distinctive(fact: str) -> bool:
    """Whether one may look for the fact byte by byte: on one line, without quotes, no number that turns up by chance."""
    if any(character in fact for character in '\n\r"\\') or not SHORTEST <= len(fact.encode(errors="surrogatepass")) <= _LONGEST:
        return False
    digits = sum(character.isdigit() for character in fact)
    return digits >= _DIGITS or any(character.isalpha() or character in "$€£¥%" for character in fact)
