"""A question as the ranking of passages reads it: its content words in the language of each source, and the kind of value it wants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.language.detection import short_text_language
from pandora_dagster.language.relative_days import refers_to_past, strip_days
from pandora_dagster.runtime.extractive.queries.content_words import common_keys, content_keys
from pandora_dagster.runtime.extractive.queries.query_intent import asks_of_days, looks_back

_DATE_FORM = (
    r"\d{4}-\d\d-\d\d|\b\d{1,2}\.? ?(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|ene|abr|ago|dic|janv|févr|avr|juin"
    r"|juil|août|déc)|(?:january|february|march|april|june|july|august|september|october|november|december) \d"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|\b(?:yesterday|tomorrow|last|next|ago|since)\b|\b(?:19|20)\d\d\b"
    r"|\b\d{1,2}[:h] ?\d\d|月|日|\b\d{1,2} (?:am|pm|uhr)\b"
)
_COUNT_FORM = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|once|twice|zwei|drei|vier"
    r"|fünf|sechs)\b"
)
_NAME_FORM = r"(?<!^)(?<![.!?] )(?-i:\b[A-ZÀ-Ý][\w'-]+)|@\w+"
_CAUSE_FORM = (
    r"\b(?:because|since|due to|so that|caused?|reason|weil|wegen|denn|damit"
    r"|parce que|car|à cause|porque|omdat|want|bo|ponieważ)\b|ため|から"
)
_VALUE_KINDS = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(shown, re.IGNORECASE))
    for asked, shown in (
        (
            r"\b(?:when|what time|which (?:day|date|month|year)|what (?:day|date|month|year)|by when|deadline|wann|welche[mnrs]? tag|quand"
            r"|quelle (?:heure|date)|cuándo|qué día|wanneer|kiedy|quando)\b|いつ",
            _DATE_FORM,
        ),
        (
            r"\b(?:costs?|prices?|pa(?:y|id)|spen[dt]|fees?|fares?|budget|kostet|kosten|preis|bezahl\w*|coûte\w*|prix|cuesta\w*|precio|costa|prezzo"
            r"|kost|prijs|kosztuje|cena|custa|preço)\b|いくら",
            r"[€$£¥円]|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|francs?|yen|zł)\b"
            r"|\b(?:prices?|amounts?|totals?|fares?|fees?|preis|betrag|prix|precio|importe)\b[^.]{0,60}\d",
        ),
        (
            r"\b(?:how (?:many|much|long|far|high|large|big|often|old|warm|heavy|wide)"
            r"|what (?:share|price|amount|percentage|dose|rate|version)"
            r"|wie (?:viel|viele|hoch|lange|groß|weit|oft|alt)|combien|cuánt\w+|hoeveel|hoe (?:lang|veel|oud)|ile|quant\w+)\b"
            r"|いくら|何[人円件]",
            _COUNT_FORM,
        ),
        (r"\b(?:who|whom|whose|wer|wem|wen|qui|quién|wie (?:is|heeft)|kto|chi)\b|誰", _NAME_FORM),
        (
            r"\b(?:why|what caused|what was the (?:root )?cause|reason|warum|wieso|weshalb|pourquoi|por qué|waarom|dlaczego|perché)\b|なぜ",
            _CAUSE_FORM,
        ),
    )
)
"""What closed-class words of a question ask for, and the form of what answers it."""
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
    def matter(self) -> str:
        """Its words without those of the days, and what it refers to."""
        return " ".join((strip_days(self.text) if self.days else self.text, *self.more))

    @property
    def all_of_days(self) -> bool:
        """Whether all that was said on its days may answer."""
        return bool(self.days) and asks_of_days(self.matter)

    def keys(self, languages: Sequence[str] = ()) -> frozenset[str]:
        """Its content words as stems of its own language and of `languages`."""
        return frozenset(key for code in {*languages, self.language} for key in content_keys(self.matter, code, asking=True))

    def common(self, languages: Sequence[str] = ()) -> frozenset[str]:
        """Those of `keys` that say little."""
        return frozenset(key for code in {*languages, self.language} for key in common_keys(self.matter, code))

    def words(self) -> frozenset[str]:
        return frozenset(word.lower() for word in _WORD.findall(self.matter))

    def kinds(self) -> tuple[re.Pattern[str], ...]:
        """The forms of what it asks for."""
        return tuple(shown for asked, shown in _VALUE_KINDS if asked.search(self.text))


def read_question(text: str, *, more: Sequence[str] = (), days: Sequence[str] = ()) -> Question:
    """Read a query; `days` count where it looks back."""
    return Question(text, tuple(m for m in more if m), tuple(days) if refers_to_past(text) or looks_back(text) else ())
