"""What a query asks for that the gathered text does not have, by words and values: the gaps of section 2 (specification 004, section 5.3).

Code compares forms. Whether a text that has all words of a query answers it is for the model of SYNTHESIS, which names gaps of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.compression.verification.forms import Form, FormKind, forms
from pandora_dagster.compression.verification.source_evidence import SourceEvidence
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.language.detection import short_text_language
from pandora_dagster.language.quantities import WANTED_VALUES, quantities
from pandora_dagster.language.relative_days import strip_days
from pandora_dagster.language.stop_words import ASKING_WORDS, stop_words
from pandora_dagster.language.terms import TermReader

_MAX_NAMED_PARTS = 8
_MAX_PART_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class QueryCoverage:
    """The parts of a query that a text does not have, of `parts` that could be compared."""

    missing: tuple[str, ...] = ()
    parts: int = 0

    def share(self, reported: Sequence[str] = ()) -> float:
        """The covered share; gaps that a model `reported` count as missing parts where they are more than those found by code."""
        return 1 - min(1.0, max(len(self.missing), len(reported)) / max(self.parts, len(reported), 1))

    @property
    def gaps(self) -> tuple[str, ...]:
        """One sentence that names what is missing, none where nothing is."""
        names = [name if len(name) <= _MAX_PART_CHARACTERS else f"{name[: _MAX_PART_CHARACTERS - 4]} ..." for name in self.missing]
        more = f" and {len(names) - _MAX_NAMED_PARTS} more" if len(names) > _MAX_NAMED_PARTS else ""
        return (f"nothing about: {', '.join(names[:_MAX_NAMED_PARTS])}{more}",) if names else ()


def query_coverage(query: str, text: str) -> QueryCoverage:
    """Which content words, values, names and codes of `query` the text has. Words count where query and text are in one language.

    A word that asks for a value, such as `cost`, is covered by a value of that kind.
    """
    asked, evidence = strip_days(own_words(query)), SourceEvidence(text)
    language = short_text_language(asked)
    parts = {form.key: form for form in forms(_without_answered_values(asked, text, language), language) if _is_part(form, language)}
    if language and language != (evidence.language or short_text_language(text)):
        parts = {key: form for key, form in parts.items() if form.is_hard}
    terms = frozenset(TermReader().terms(text))
    missing = [form.text for form in parts.values() if not _has(evidence, terms, form, language)]
    return QueryCoverage(tuple(missing), len(parts))


def _without_answered_values(asked: str, text: str, language: str) -> str:
    """The query without the words that ask for a kind of value which the text holds."""
    found = list(quantities(text, language))
    for pattern, is_of_kind in WANTED_VALUES:
        asked = pattern.sub(" ", asked) if any(map(is_of_kind, found)) else asked
    return asked


def _is_part(form: Form, language: str) -> bool:
    word = form.text.casefold()
    return form.is_content and word not in ASKING_WORDS and word not in stop_words(language)


def _has(evidence: SourceEvidence, terms: frozenset[str], form: Form, language: str) -> bool:
    """Whether the text has a form; a word also inflected, as the index of turns reads it (`terms`)."""
    if form.kind not in (FormKind.WORD, FormKind.NAME):
        return evidence.has(form, language)
    return evidence.has_word(form) or not terms.isdisjoint(TermReader().terms(form.text))
