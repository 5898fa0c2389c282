"""Verifies a shortened text against its original, whoever shortened it: what is kept, missing, changed, left out and invented, with places.

Deterministic and linear in both texts. A verdict `kept` needs value, unit, sign and subject together in one unit. Whether other words turn
the meaning of a statement is not judged: such statements are listed in `for_review`, beside the units that they were made from.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from pandora_dagster.compression.verification.alignment import Alignment, align
from pandora_dagster.compression.verification.comparison import Difference, find_differences, find_exchanged_values, find_unsourced_words
from pandora_dagster.compression.verification.facts import (
    SELF_EVIDENT,
    STATEMENTS,
    Fact,
    Omission,
    Outcome,
    Place,
    Statement,
    Verdict,
    count_verdicts,
    labelled,
)
from pandora_dagster.compression.verification.forms import Form, FormKind, subject_of
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.unit_index import UnitIndex
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.language.cues import Cue, cues

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MIN_EQUAL_SHARE = 0.7
"""Share of a rule's words, by weight, with which a statement that differs in no form states the same rule."""
_FORCE_WINDOW_UNITS = 2
"""Units on either side of a source whose force a statement may have."""
_MAX_HOLDERS = 100
"""Units with a value that are looked at for its subject."""
_MIN_COVERED_SHARE = 0.3
"""Share of a unit's words, by weight, with which a statement represents it: it is not left out then."""


@dataclass(frozen=True)
class Verification:
    """A verdict for every fact, in the order of the text, then for other changes and for what was invented."""

    verdicts: tuple[Verdict, ...]
    left_out: tuple[Omission, ...] = ()
    for_review: tuple[Statement, ...] = ()

    @cached_property
    def counts(self) -> dict[str, int]:
        return count_verdicts(self.verdicts)

    def of(self, *outcomes: Outcome) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.outcome in outcomes)

    @property
    def kept(self) -> tuple[Verdict, ...]:
        return self.of(Outcome.KEPT)

    @property
    def missing(self) -> tuple[Verdict, ...]:
        return self.of(Outcome.MISSING)

    @property
    def changed(self) -> tuple[Verdict, ...]:
        return self.of(Outcome.MUTATED)

    @property
    def invented(self) -> tuple[Verdict, ...]:
        return self.of(Outcome.INVENTED)

    @property
    def lost(self) -> tuple[Fact, ...]:
        """Facts that are missing or changed."""
        return tuple(v.fact for v in self.of(Outcome.MISSING, Outcome.MUTATED) if v.fact)

    @property
    def no_fact_changed(self) -> bool:
        """Nothing that the text says was changed or invented. What it leaves out is counted in `missing` and named in `left_out`."""
        return not self.of(Outcome.MUTATED, Outcome.INVENTED)


def verify(original: TextFacts | str, shortened: str, *, reference: str = "") -> Verification:
    """A verdict for each fact of `original`, and for each value, name and link of `shortened` that it does not have.

    `reference` is a line of `shortened` that leads to the stored original: what is missing is recoverable then."""
    text_facts = original if isinstance(original, TextFacts) else find_facts(original)
    plain = redact(shortened)
    if plain == text_facts.text:
        index = text_facts.index
        kept = (Verdict(Outcome.KEPT, f, f.text, "", p := index.place(f.start, f.end), p) for f in text_facts.facts)
        return Verification(tuple(kept))
    return _Verifier(text_facts, index_shortened(plain, text_facts), reference).result()


def find_unsupported(original: TextFacts, statement: str) -> tuple[Verdict, ...]:
    """What a statement, or a few, changes or invents; it need not hold any fact of the original."""
    plain = redact(statement)
    return () if plain == original.text else tuple(_Verifier(original, index_shortened(plain, original), "").find_untrue())


def is_stated(statement: str, text: str) -> bool:
    """Whether `text` has all facts of a statement: word for word, or in other words that change no form."""
    return bool(text.strip()) and all(v.outcome in (Outcome.KEPT, Outcome.EQUAL) for v in verify(statement, text).verdicts if v.fact)


def index_shortened(shortened: str, text_facts: TextFacts) -> UnitIndex:
    """The units of a shortened text, read as those of its original: its language and speakers."""
    return UnitIndex(shortened, text_facts.index.language, speakers=text_facts.index.speakers)


class _Verifier:
    def __init__(self, text_facts: TextFacts, shortened: UnitIndex, reference: str) -> None:
        self._text_facts, self._original, self._shortened = text_facts, text_facts.index, shortened
        self._has_reference = bool(reference) and reference in shortened.text
        self._alignments = [self._compare(a) for a in align(text_facts.index, shortened, reference=reference)]
        self._verbatim_of: dict[int, list[Alignment]] = defaultdict(list)
        self._reworded_of: dict[int, list[Alignment]] = defaultdict(list)
        self._explained: set[tuple[int, int]] = set()
        for alignment in self._alignments:
            for source in alignment.sources:
                (self._verbatim_of if alignment.is_verbatim else self._reworded_of)[source].append(alignment)

    def _compare(self, alignment: Alignment) -> Alignment:
        if alignment.is_verbatim or not alignment.sources:
            return alignment
        units, near = self._original.units, alignment.sources[0]
        changes = find_differences(
            units[near].text,
            self._original.forms(near),
            self._shortened.units[alignment.order].text,
            self._shortened.forms(alignment.order),
            self._original.language,
            forbids=self._original.forbids(near),
        )
        source_forms = [self._original.forms(source) for source in alignment.sources]
        statement_forms = self._shortened.forms(alignment.order)
        exchanges = (*self._other_speaker(alignment), *find_exchanged_values(source_forms, statement_forms))
        for_review = (*find_unsourced_words(source_forms, statement_forms), *self._foreign_values(alignment.order))
        return replace(alignment, differences=(*changes, *exchanges, *(for_review if not changes else ())))

    def _foreign_values(self, order: int) -> Iterator[Difference]:
        """Values of a statement that the original has only of other things."""
        statement_forms = self._shortened.forms(order)
        for n, form in enumerate(statement_forms):
            subject = subject_of(n, statement_forms) if form.kind is FormKind.VALUE else ()
            holders = self._original.holders.get(form.key, ())[:_MAX_HOLDERS] if subject else ()
            if holders and not any(self._original.is_of(holder, form.key, subject) for holder in holders):
                yield Difference("", form.text, "of something else in the original", is_change=False)

    def _other_speaker(self, alignment: Alignment) -> Iterator[Difference]:
        was, now = self._original.units[alignment.sources[0]].speaker, self._shortened.units[alignment.order].speaker
        source_speakers = {self._original.units[source].speaker for source in alignment.sources}
        if was and now and now not in source_speakers and len(alignment.sources) == 1 and now in self._original.speakers:
            yield Difference(was, now, "another speaker", is_change=True)

    def result(self) -> Verification:
        verdicts = [self._verdict(fact) for fact in self._text_facts.facts]
        verdicts += self._other_changes(verdicts)
        verdicts += self._inventions()
        return Verification(tuple(verdicts), tuple(self._omissions()), tuple(self._review_statements()))

    def find_untrue(self) -> Iterator[Verdict]:
        """Changes and inventions, also those that concern no fact of the original."""
        yield from self._other_changes([])
        yield from self._inventions()

    # verdicts of facts

    def _verdict(self, fact: Fact) -> Verdict:
        place = self._original.place(fact.start, fact.end)
        if whole := next((c for c in self._verbatim_of.get(fact.unit, ()) if not c.changes), None):
            order = whole.order
            if fact.kind in STATEMENTS and self._original.keys[fact.unit] not in self._shortened.keys[order]:
                return self._absence_verdict(fact, place, "stands in part")
            here = self._here(order, fact.key)
            if here is not None or fact.kind in STATEMENTS:
                return Verdict(Outcome.KEPT, fact, fact.text, "", place, here or self._shortened.place_of(order))
        if fact.kind in STATEMENTS:
            return self._statement_verdict(fact, place)
        return self._value_verdict(fact, place)

    def _alignments_of(self, unit: int) -> tuple[Alignment, ...]:
        """The alignments with a unit of the original as a source, verbatim ones first."""
        return (*self._verbatim_of.get(unit, ()), *self._reworded_of.get(unit, ()))

    def _statement_verdict(self, fact: Fact, place: Place) -> Verdict:
        for alignment in self._alignments_of(fact.unit):
            order = alignment.order
            here, text = self._shortened.place_of(order), self._shortened.units[order].text
            if alignment.sources[0] == fact.unit and alignment.changes:
                self._explained.add((order, fact.unit))
                return Verdict(Outcome.MUTATED, fact, text, alignment.changes[0], place, here)
            if self._share(fact.unit, order) >= _MIN_EQUAL_SHARE and self._force(fact.unit, self._original) == self._force(
                order, self._shortened
            ):
                return Verdict(Outcome.EQUAL, fact, text, "in other words", place, here)
        return self._absence_verdict(fact, place, "")

    def _value_verdict(self, fact: Fact, place: Place) -> Verdict:
        for alignment in self._alignments_of(fact.unit):
            order = alignment.order
            for difference in alignment.differences:
                if difference.is_change and any(f.key == fact.key for f in difference.forms):
                    self._explained.add((order, fact.unit))
                    here = self._here_text(order, difference.is_now) or self._shortened.place_of(order)
                    return Verdict(Outcome.MUTATED, fact, difference.is_now, difference.reason, place, here)
            if alignment.label:
                self._explained.add((order, fact.unit))
                return Verdict(Outcome.MUTATED, fact, fact.text, alignment.changes[-1], place, self._shortened.place_of(order))
        without_subject = None
        for order in self._shortened.holders.get(fact.key, ())[:_MAX_HOLDERS]:
            here = self._here(order, fact.key)
            if here is not None and self._is_of(fact, order):
                spelled = self._shortened.text[here.start : here.end]
                return Verdict(Outcome.KEPT if spelled == fact.text else Outcome.EQUAL, fact, spelled, "", place, here)
            without_subject = without_subject or here
        return self._absence_verdict(fact, place, "without its subject" if without_subject else "", without_subject)

    def _is_of(self, fact: Fact, order: int) -> bool:
        is_clear = fact.kind in SELF_EVIDENT or not fact.subject
        return is_clear or self._shortened.is_of(order, fact.key, fact.subject)

    def _absence_verdict(self, fact: Fact, place: Place, reason: str, here: Place | None = None) -> Verdict:
        if fact.rule:
            return Verdict(Outcome.DROPPED_BY_RULE, fact, "", fact.rule, place)
        if self._has_reference:
            return Verdict(Outcome.RECOVERABLE, fact, "", "the reference leads to it", place)
        return Verdict(Outcome.MISSING, fact, "", reason, place, here)

    def _share(self, unit: int, order: int) -> float:
        """The share of a unit's content words, by weight, that a statement has."""
        keys = self._original.content_keys(unit)
        total = sum(map(self._original.weight, keys))
        return sum(map(self._original.weight, keys & self._shortened.content_keys(order))) / total if total else 0.0

    def _force(self, order: int, index: UnitIndex) -> tuple[bool, bool]:
        """Whether a unit has a word of force or forbids, and whether it has a negation."""
        unit_cues = cues(index.units[order].text, index.language)
        return Cue.FORCE in unit_cues or index.forbids(order), Cue.NEGATION in unit_cues

    # changes and additions that concern no single fact

    def _other_changes(self, verdicts: list[Verdict]) -> Iterator[Verdict]:
        """Changes that concern no fact of the original: a letter, a sign, a negation, a speaker, a label of a plain sentence."""
        reported_starts = {v.here.start for v in verdicts if v.outcome is Outcome.MUTATED and v.here}
        for alignment in self._alignments:
            order, sources = alignment.order, alignment.sources
            if not alignment.changes or any((order, source) in self._explained for source in sources):
                continue
            here = self._shortened.place_of(order)
            if here.start not in reported_starts:
                place = self._original.place_of(sources[0]) if sources else None
                yield Verdict(Outcome.MUTATED, None, self._shortened.units[order].text, "; ".join(alignment.changes), place, here)

    def _inventions(self) -> Iterator[Verdict]:
        """Values, codes, links and names that the original does not have, and force that a statement adds; those that replaced another
        one are changes."""
        replaced = {d.is_now for alignment in self._alignments for d in alignment.differences if d.is_change}
        for alignment in self._alignments:
            order = alignment.order
            if alignment.is_verbatim:
                continue
            for form in self._shortened.forms(order):
                is_known = not self._original.everywhere.isdisjoint((form.key, form.text.lower())) or form.text in replaced
                if form.is_hard and not is_known and not self._is_spelled(form):
                    here = self._shortened.place(*self._shortened.span(order, form))
                    yield self._addition(alignment, form.text, f"{form.kind.value} that the original does not have", here)
            if alignment.sources and not alignment.changes and self._adds_force(alignment):
                text, here = self._shortened.units[order].text, self._shortened.place_of(order)
                yield self._addition(alignment, text, "force that its source does not have", here)

    def _addition(self, alignment: Alignment, text: str, reason: str, here: Place) -> Verdict:
        place = self._original.place_of(alignment.sources[0]) if alignment.sources else None
        return Verdict(Outcome.INVENTED, None, text, reason, place, here)

    def _adds_force(self, alignment: Alignment) -> bool:
        window = range(-_FORCE_WINDOW_UNITS, _FORCE_WINDOW_UNITS + 1)
        near = {source + offset for source in alignment.sources for offset in window}
        has_force = any(self._force(order, self._original)[0] for order in near if 0 <= order < len(self._original.units))
        return self._force(alignment.order, self._shortened)[0] and not has_force

    def _is_spelled(self, form: Form) -> bool:
        """Whether the original has a name or code in other letters, or a number apart from what it counts: `rows: 20` for `20 rows`."""
        if form.kind is not FormKind.VALUE:
            return form.text.casefold() in self._lower
        parts = form.key.split()
        numbers, words = [p for p in parts if any(map(str.isdigit, p))], [p for p in parts if p.isalpha()]
        is_plain = len(numbers) + len(words) == len(parts)
        return is_plain and self._numbers.issuperset(numbers) and self._original.everywhere.issuperset(words)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        key_numbers = (part for key in self._original.everywhere for part in key.split() if any(map(str.isdigit, part)))
        return frozenset((*key_numbers, *_NUMBER.findall(self._original.text)))

    @cached_property
    def _lower(self) -> str:
        return self._original.text.casefold()

    def _omissions(self) -> Iterator[Omission]:
        for unit in self._original.content:
            parts = self._reworded_of.get(unit.order, ())
            if unit.order not in self._verbatim_of and not any(self._share(unit.order, c.order) >= _MIN_COVERED_SHARE for c in parts):
                yield self._original.shown(unit.order)

    def _review_statements(self) -> Iterator[Statement]:
        for alignment in self._alignments:
            if not alignment.is_verbatim:
                order = alignment.order
                text = labelled(self._shortened.units[order])
                sources = tuple(self._original.shown(source) for source in alignment.sources)
                yield Statement(text, self._shortened.place_of(order), sources, tuple(map(str, alignment.differences)))

    # places

    def _here(self, order: int, key: str) -> Place | None:
        places = self._shortened.positions(order).get(key)
        return self._shortened.place(*self._shortened.span(order, self._shortened.forms(order)[places[0]])) if places else None

    def _here_text(self, order: int, text: str) -> Place | None:
        form = next((f for f in self._shortened.forms(order) if f.text == text), None)
        return self._shortened.place(*self._shortened.span(order, form)) if form else None
