"""Facts that distinguish the documents of one user from those of all others. Stores nothing."""

from collections.abc import Iterable

from pandora_dagster.compression import FactKind, build_ledger
from pandora_dagster.documents.redaction.user_traces import SHORTEST

_KINDS = frozenset((FactKind.MONEY, FactKind.QUANTITY, FactKind.URL, FactKind.IDENTIFIER, FactKind.NAME, FactKind.QUOTE, FactKind.NUMBER))
_LONGEST = 80
_DIGITS = 8
"""A bare number of fewer digits occurs by chance, in times and sizes."""
MOST_FACTS = 5_000
"""Facts that are searched for; those that come first in their documents are preferred."""


def find_distinctive_facts(texts: Iterable[str]) -> tuple[str, ...]:
    """Names, numbers with units, identifiers, addresses and quotations of the texts, each once, if too long to occur by chance."""
    found: dict[str, int] = {}
    for text in texts:
        for place, fact in enumerate(f for f in build_ledger(text).facts if f.kind in _KINDS):
            if _is_distinctive(fact.text):
                found[fact.text] = min(found.get(fact.text, place), place)
    return tuple(sorted(found, key=lambda fact: (found[fact], fact)))


def _is_distinctive(fact: str) -> bool:
    """Whether a search for the bytes of the fact is reliable: on one line, without quotes, not a number that occurs by chance."""
    if any(character in fact for character in '\n\r"\\') or not SHORTEST <= len(fact.encode(errors="surrogatepass")) <= _LONGEST:
        return False
    digits = sum(character.isdigit() for character in fact)
    return digits >= _DIGITS or any(character.isalpha() or character in "$€£¥%" for character in fact)
