"""What a query may say of a user: nothing of memory, facts and earlier turns that the user's own question does not say.

Queries are written from the question. A model that writes one may have read more than the question; this is checked by code, and a query
that fails is not sent.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pandora_dagster.contracts.web.search import SearchHits, SearchProvider
from pandora_dagster.errors import FetchRefusedError
from pandora_dagster.language.terms import TermReader

RULE = "privacy"
_READER = TermReader()
_WORD = re.compile(r"[^\W_]+(?:[-_@.+][^\W_]+)*")
_PUNCTUATION = re.compile(r"[@._+/-]")


@dataclass(frozen=True, slots=True)
class QueryPrivacy:
    """The rule for the queries of one question of one user."""

    question: frozenset[str]
    """Terms of the user's own words in this turn: consent for each of them."""
    stored: frozenset[str]
    """Terms of memory and facts; every one is private."""
    said: Callable[[str], Iterable[str]]
    """The user's words in those earlier turns that match a text; their names, numbers and addresses are private."""
    shown: frozenset[str] = frozenset()
    """Terms of titles of pages that earlier turns visited: they are public, although the user may have said them too."""

    def refusal(self, query: str) -> str:
        """Why `query` is not sent; "" where it is. The private words themselves are not repeated."""
        added = private_terms(query) - self.question
        private = added & self.stored
        if unseen := added - self.shown:
            words = " ".join(word for word in _WORD.findall(query) if private_terms(word) & unseen)
            private |= unseen & frozenset(t for text in self.said(words) for t in private_terms(" ".join(_identifying_words(text))))
        if not private:
            return ""
        return "the query has words of the user's memory or earlier turns that the question does not have; it was not sent"


def private_terms(text: str) -> frozenset[str]:
    """The terms of a text, words with punctuation inside both whole and in parts: `anna@example.org` has `example` too."""
    return frozenset(_READER.terms(text)) | frozenset(_READER.terms(_PUNCTUATION.sub(" ", text)))


def _identifying_words(text: str) -> list[str]:
    """Words with a digit or `@`, and words with a capital letter that begin no sentence."""
    found: list[str] = []
    for word in _WORD.finditer(text):
        before = text[: word.start()].rstrip()
        begins_sentence = not before or before[-1] in ".!?:\n"
        if any(c.isdigit() or c == "@" for c in word[0]) or (word[0][0].isupper() and not begins_sentence):
            found.append(word[0])
    return found


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
        return self.provider.search(query, page=page, language=language)
