"""A question as the ranking of passages reads it: its content words in the language of each source, and the kind of value it wants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.language.dates import query_date_terms
from pandora_dagster.language.detection import question_language
from pandora_dagster.language.quantities import WANTED_VALUES, is_time, quantities
from pandora_dagster.language.relative_days import refers_to_past, strip_days
from pandora_dagster.runtime.extractive.queries.content_words import content_keys
from pandora_dagster.runtime.extractive.queries.query_intent import asks_of_days, looks_back

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
        return question_language(self.text)

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
        for pattern, _ in WANTED_VALUES if has_value else ():
            text = pattern.sub(" ", text)
        return frozenset(content_keys(text, language, asking=True))

    def words(self) -> frozenset[str]:
        return frozenset(word.lower() for word in _WORD.findall(self.matter))

    def is_value(self, text: str) -> bool:
        """Whether `text` holds a value of a kind that the question asks for: a time, an amount of money, a number."""
        kinds = [is_of_kind for asked, is_of_kind in WANTED_VALUES if asked.search(self.text)]
        if not kinds:
            return False
        is_dated = is_time in kinds and bool(query_date_terms(text))
        return is_dated or any(is_of_kind(quantity) for quantity in quantities(text) for is_of_kind in kinds)


def read_question(text: str, *, more: Sequence[str] = (), days: Sequence[str] = ()) -> Question:
    """Read a query; `days` count where it looks back."""
    return Question(text, tuple(m for m in more if m), tuple(days) if refers_to_past(text) or looks_back(text) else ())
