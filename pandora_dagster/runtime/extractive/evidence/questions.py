"""A question as the ranking of passages reads it: its content words in the language of each source, and the kind of value it wants."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pandora_dagster.language.dates import query_date_terms
from pandora_dagster.language.detection import short_text_language
from pandora_dagster.language.quantities import Quantity, quantities
from pandora_dagster.language.relative_days import refers_to_past, strip_days
from pandora_dagster.runtime.extractive.queries.content_words import content_keys
from pandora_dagster.runtime.extractive.queries.query_intent import asks_of_days, looks_back

_TIME_UNITS = frozenset(("am", "pm", "uhr", "h", "年", "月", "日", "時"))
_MONEY = re.compile(r"[$€£¥₹₩円元원]|\b(?:chf|zł|kč|sek|nok|dkk|pln|cad|aud|inr|cny|rmb|brl|mxn)\b", re.IGNORECASE)


def _is_time(quantity: Quantity) -> bool:
    return quantity.unit in _TIME_UNITS or ":" in quantity.number


def _is_money(quantity: Quantity) -> bool:
    return bool(_MONEY.search(quantity.unit))


def _is_number(quantity: Quantity) -> bool:
    return True


_VALUE_KINDS: tuple[tuple[re.Pattern[str], Callable[[Quantity], bool]], ...] = tuple(
    (re.compile(asked, re.IGNORECASE), is_of_kind)
    for asked, is_of_kind in (
        (
            r"\b(?:when|what time|which (?:day|date|month|year)|what (?:day|date|month|year)|by when|deadline|wann|welche[mnrs]? tag|quand"
            r"|quelle (?:heure|date)|cuándo|qué día|wanneer|kiedy|quando)\b|いつ",
            _is_time,
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
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    """A query. `more` are texts whose words are asked for too: what a reference resolves to."""

    text: str
    more: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    """The days on which what it asks for was said, as `language.relative_days` writes them."""

    @property
    def language(self) -> str:
        return short_text_language(self.text)

    @property
    def dayless_text(self) -> str:
        return strip_days(self.text) if self.days else self.text

    @property
    def matter(self) -> str:
        """Its words without those of the days, and what it refers to."""
        return " ".join((self.dayless_text, *self.more))

    @property
    def all_of_days(self) -> bool:
        """Whether all that was said on its days may answer."""
        return bool(self.days) and asks_of_days(self.matter)

    def keys(self, languages: Sequence[str] = ()) -> frozenset[str]:
        """Its content words as stems of its own language and of `languages`."""
        return frozenset(key for code in {*languages, self.language} for key in content_keys(self.matter, code, asking=True))

    def needed_keys(self, language: str, *, has_value: bool) -> frozenset[str]:
        """Its own content words, which an answer holds; without those that ask for a value (`cost`) where the answer `has_value`."""
        text = self.dayless_text
        for pattern, _ in _VALUE_KINDS if has_value else ():
            text = pattern.sub(" ", text)
        return frozenset(content_keys(text, language, asking=True))

    def words(self) -> frozenset[str]:
        return frozenset(word.lower() for word in _WORD.findall(self.matter))

    def is_value(self, text: str) -> bool:
        """Whether `text` holds a value of a kind that the question asks for: a time, an amount of money, a number."""
        kinds = [is_of_kind for asked, is_of_kind in _VALUE_KINDS if asked.search(self.text)]
        if not kinds:
            return False
        is_dated = _is_time in kinds and bool(query_date_terms(text))
        return is_dated or any(is_of_kind(quantity) for quantity in quantities(text) for is_of_kind in kinds)


def read_question(text: str, *, more: Sequence[str] = (), days: Sequence[str] = ()) -> Question:
    """Read a query; `days` count where it looks back."""
    return Question(text, tuple(m for m in more if m), tuple(days) if refers_to_past(text) or looks_back(text) else ())
