"""Finds the facts of a text in its units: every value with its subject, every name and code, every rule, decision and error.

Headings, and capital letters at the beginning of a sentence, are no facts. Pure, linear in the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pandora_dagster.compression.verification.facts import Fact, FactKind, Rank, labelled
from pandora_dagster.compression.verification.forms import Form, FormKind, subject_of
from pandora_dagster.compression.verification.omission_rules import OmissionRules
from pandora_dagster.compression.verification.unit_index import LITERAL, UnitIndex
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.detection import language_of

_MONEY = re.compile(r"[$\u20ac\u00a3\u00a5\u20b9]|\b(?:usd|eur|gbp|chf|jpy|euros?|dollars?|pounds?|z\u0142|pln)\b")
_DATE = re.compile(r"[^\W\d_]{3,4} \d{1,2}(?: \d{4})?|\d{4}-\d\d(?:-\d\d)?|\d{1,2}\.\d{1,2}\.(?:\d{2,4})?|\d{1,2}/\d{1,2}/\d{2,4}")
_TIME = re.compile(r"-?\d{1,2}(?::\d\d){1,2}(?: ?[ap]m)?|\d{1,2} ?(?:[ap]m|h|uhr)(?: ?\d\d)?")
_LINK = re.compile(r"https?://|www\.")
_MIN_COURTESY_WORDS = 4
"""A sentence with a word of courtesy is a claim from this number of content words on: not `Thanks, see you soon!`"""
_RECORDS = frozenset((UnitKind.ROW, UnitKind.LOG, UnitKind.CODE, UnitKind.HUNK))
_PROSE = frozenset((UnitKind.SENTENCE, UnitKind.ITEM, UnitKind.QUOTE))
_WITHOUT_CUES = LITERAL | {UnitKind.CALL}
"""Kinds in which a word such as `must` says nothing of a rule or decision."""
_CONSTRAINT_CUES = frozenset((Cue.FORCE, Cue.EXCEPTION))


@dataclass(frozen=True)
class TextFacts:
    """The facts of `text` in order, and its units. Every later compression of the text is verified against them."""

    index: UnitIndex
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        return self.index.text

    @property
    def units(self) -> Sequence[Unit]:
        return self.index.units

    @cached_property
    def critical(self) -> tuple[Fact, ...]:
        return tuple(f for f in self.facts if f.rank is Rank.CRITICAL)

    def statement(self, fact: Fact) -> str:
        """The whole unit that holds a fact, with its speaker before it."""
        return labelled(self.units[fact.unit])


def find_facts(text: str, *, language: str = "") -> TextFacts:
    """The facts of `text`, in order. Credentials are removed first: places are those of the redacted text."""
    plain = redact(text)
    index = UnitIndex(plain, language or language_of(plain))
    seen: set[tuple[FactKind, str, tuple[str, ...]]] = set()
    facts: list[Fact] = []
    rules = OmissionRules(plain, index.content)
    for unit in index.content:
        for fact in _facts(unit, index):
            identity = fact.kind, fact.key, fact.subject if fact.kind is FactKind.NAME else (str(fact.unit),)
            if identity not in seen:
                seen.add(identity)
                rule = rules.of(unit.order, fact.start, fact.end)
                facts.append(replace(fact, rule=rule, rank=Rank.DETAIL) if rule else fact)
    return TextFacts(index, tuple(facts))


def _facts(unit: Unit, index: UnitIndex) -> Iterator[Fact]:
    if kind := statement_kind(unit, index):
        rank = Rank.DETAIL if kind is FactKind.CLAIM else Rank.IMPORTANT if unit.kind in _RECORDS else Rank.CRITICAL
        yield Fact(kind, unit.text.strip(), unit.start, unit.end, index.keys[unit.order], rank=rank, unit=unit.order)
    rank = Rank.DETAIL if unit.kind in _RECORDS else Rank.IMPORTANT
    forms = index.forms(unit.order)
    for position, form in enumerate(forms):
        if (kind := value_kind(form)) is not None:
            start, end = index.span(unit.order, form)
            subject = () if kind in (FactKind.NAME, FactKind.URL) else (*subject_of(position, forms), *_row_subject(unit, index))
            yield Fact(kind, form.text, start, end, form.key, subject, rank, unit.order)


def statement_kind(unit: Unit, index: UnitIndex) -> FactKind | None:
    """The kind of fact that a whole unit is: an error, a decision or a constraint by its words, else a claim. None for a question, a
    courtesy, and for a row, a line or code that has values: those are the facts then."""
    if unit.kind is UnitKind.ERROR:
        return FactKind.ERROR
    found_cues = cues(unit.text, index.language) if unit.kind not in _WITHOUT_CUES else frozenset[Cue]()
    if Cue.QUESTION in found_cues:
        return None
    if Cue.ERROR in found_cues and unit.kind is UnitKind.LOG:
        return FactKind.ERROR
    if Cue.DECISION in found_cues:
        return FactKind.DECISION
    if found_cues & _CONSTRAINT_CUES or (unit.kind in _PROSE and index.forbids(unit.order)):
        return FactKind.CONSTRAINT
    is_introduction = unit.text.rstrip("*_ ").endswith(":")
    min_words = _MIN_COURTESY_WORDS if Cue.COURTESY in found_cues and unit.kind in _PROSE and not is_introduction else 1
    is_claim = unit.kind in _PROSE or not any(f.is_hard for f in index.forms(unit.order))
    return FactKind.CLAIM if is_claim and len(index.content_keys(unit.order)) >= min_words else None


def value_kind(form: Form) -> FactKind | None:
    """The kind of fact that a form is, None for a word."""
    if form.kind is FormKind.NAME:
        return None if form.is_letter else FactKind.NAME
    if form.kind is FormKind.CODE:
        return FactKind.URL if _LINK.match(form.key) else FactKind.DATE if _DATE.fullmatch(form.key) else FactKind.IDENTIFIER
    # a date in words has its month first in its key; other keys lack what tells the kind, such as the spelling `1.299,00 €`
    return _kind_of_number(form.key if form.key[:1].isalpha() else form.text.lower()) if form.kind is FormKind.VALUE else None


def _kind_of_number(key: str) -> FactKind:
    if _MONEY.search(key):
        return FactKind.MONEY
    if "%" in key:
        return FactKind.PERCENTAGE
    if _DATE.fullmatch(key):
        return FactKind.DATE
    if _TIME.fullmatch(key):
        return FactKind.TIME
    return FactKind.QUANTITY if any(sign.isalpha() or sign == "\u00b0" for sign in key) else FactKind.NUMBER


def _row_subject(unit: Unit, index: UnitIndex) -> tuple[str, ...]:
    """The key of the first content word of a row, which is the subject of its values; () for another unit."""
    if unit.kind is not UnitKind.ROW:
        return ()
    first = next((f for f in index.forms(unit.order) if f.is_content), None)
    return (first.key,) if first else ()
