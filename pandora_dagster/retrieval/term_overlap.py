"""Scores a few texts by the terms that they share with a query, without an index."""

from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.language.bm25 import Bm25
from pandora_dagster.language.detection import clear_language, language_of
from pandora_dagster.language.terms import TermReader


@dataclass(frozen=True, slots=True)
class TermOverlap:
    """Scores texts against a query: rare shared terms count most; the best text scores 1."""

    reader: TermReader

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text in 0..1; all 0 where nothing is shared."""
        raw = Bm25([self.reader.terms(text) for text in texts]).scores(self.reader.terms(query))
        best = max(raw, default=0.0)
        return [value / best if best else 0.0 for value in raw]


def language_gap(query: str, texts: Sequence[str]) -> str:
    """A warning that most of the texts are in another language than the query; "" where no difference is known."""
    query_language, text = clear_language(query), "\n".join(texts)
    text_language = language_of(text)
    # few words have stop words of another language by chance: `Noted: Mia is allergic to nuts.`, twice, has Danish ones
    if not query_language or text_language in ("", query_language) or clear_language(text) != text_language:
        return ""
    return f"the question is in {query_language}, the sources are in {text_language}: what they say in words of their own may be missed"
