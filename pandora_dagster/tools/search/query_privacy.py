"""What a query may say of a user: no word of memory, facts and earlier turns that the user's own question does not say.

Queries are written from the question. A model that writes one may know more than the question; this is checked by code, and a query that
fails is not sent.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from pandora_dagster.contracts.web.search import SearchHits, SearchProvider
from pandora_dagster.errors import FetchRefusedError
from pandora_dagster.language.detection import question_language
from pandora_dagster.language.stop_words import function_words
from pandora_dagster.language.terms import TermReader

RULE = "privacy"
WEB = ("http://", "https://")
"""How the address of a page begins whose text is public: a document of a folder is the user's own."""
_READER = TermReader()
_PUNCTUATION = re.compile(r"[@._+/-]")


@dataclass(frozen=True, slots=True)
class QueryPrivacy:
    """The rule for the queries of one question of one user."""

    question: str
    """The user's own words in this turn: consent for each of them."""
    stored: frozenset[str]
    """Terms of memory and facts; public text does not make one sendable."""
    is_said: Callable[[str, frozenset[str]], bool]
    """Whether the user said one of the terms of a word in an earlier turn, or the turn was given it from what is the user's own."""
    shown: set[str] = field(default_factory=set[str])
    """Terms of public text: of pages that earlier turns visited and of results of this question, although the user may have said them."""

    def refusal(self, query: str) -> str:
        """Why `query` is not sent; "" where it is. The private words themselves are not repeated."""
        asked = private_terms(self.question) | _function_terms(question_language(self.question))
        if not any(self._is_private(word, private_terms(word) - asked) for word in query.split()):
            return ""
        return "the query has words of the user's memory or earlier turns that the question does not have; it was not sent"

    def _is_private(self, word: str, added: frozenset[str]) -> bool:
        unseen = added - self.shown
        return bool(added & self.stored or (unseen and self.is_said(word, unseen)))


def private_terms(text: str) -> frozenset[str]:
    """The terms of a text, words with punctuation inside both whole and in parts: `anna@example.org` has `example` too."""
    return frozenset(_READER.terms(text)) | frozenset(_READER.terms(_PUNCTUATION.sub(" ", text)))


@cache
def _function_terms(language: str) -> frozenset[str]:
    """The terms of words without matter of their own; those of English have none."""
    return frozenset(term for word in function_words(language) for term in _READER.terms(word))


@dataclass(frozen=True, slots=True)
class PrivateProvider:
    """A provider that sends no query which the privacy rule refuses."""

    provider: SearchProvider
    privacy: QueryPrivacy

    @property
    def name(self) -> str:
        return self.provider.name

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        if reason := self.privacy.refusal(query):
            raise FetchRefusedError(f"{RULE}: {reason}", rule=RULE)
        found = self.provider.search(query, page=page, language=language)
        for hit in found.hits:
            if hit.url.startswith(WEB):
                self.privacy.shown.update(private_terms(f"{hit.title} {hit.snippet}"))
        return found
