"""Judges a text against the ledger of its original: a verdict for every fact, and one for everything invented.

Knows ledger, source and candidate; judges any text, a model's as well as our own. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pandora_dagster.compression.facts.canonical_values import is_negative
from pandora_dagster.compression.facts.fact_statements import distinguishing, is_same_force
from pandora_dagster.compression.facts.fact_types import LINES, NUMERIC, Fact, FactKind, Ledger, Outcome, Rank, Verdict, count_verdicts
from pandora_dagster.compression.facts.retractions import is_taken_back
from pandora_dagster.compression.facts.value_finder import FoundValue
from pandora_dagster.compression.judge.candidate import CandidateText
from pandora_dagster.compression.judge.grounding import SourceIndex, flipped, invented_values
from pandora_dagster.compression.judge.name_swaps import reversed_relations
from pandora_dagster.compression.judge.record_changes import moved_cells, turned_booleans
from pandora_dagster.compression.judge.value_swaps import swapped
from pandora_dagster.compression.read.dialogue_lines import SPEAKER_LINE
from pandora_dagster.compression.words.normalization import key, standing_in, ungrouped, words
from pandora_dagster.compression.words.word_classes import STOP_WORDS, content_stems

_LABEL = re.compile(r"^[\w ]{1,40}(?:=|: )")
_TELLS = STOP_WORDS - {"no", "not"}
_PASSES_FOR = 0.7
"""Share of a statement's content with which another passes for it: changed then; missing where less of it stands."""
_TAKEN_BACK = frozenset((FactKind.QUERY, FactKind.ERROR, FactKind.CONSTRAINT, FactKind.DECISION))
_SELF_EVIDENT = frozenset((FactKind.URL, FactKind.IDENTIFIER, FactKind.EVIDENCE, FactKind.QUOTE, FactKind.NAME))


@dataclass(frozen=True)
class Verification:
    """Verdicts of every fact, in the ledger's order, then of what was invented."""

    verdicts: tuple[Verdict, ...]
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", count_verdicts(self.verdicts))

    def of(self, *outcomes: Outcome) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.outcome in outcomes)

    @property
    def lost(self) -> tuple[Fact, ...]:
        """Facts that are missing or changed."""
        return tuple(v.fact for v in self.of(Outcome.MISSING, Outcome.MUTATED) if v.fact)

    @property
    def lost_critical(self) -> tuple[Fact, ...]:
        return tuple(f for f in self.lost if f.rank is Rank.CRITICAL)

    @property
    def facts_preserved(self) -> bool:
        """Nothing critical is lost and nothing was changed or invented."""
        return not self.lost_critical and not self.of(Outcome.MUTATED, Outcome.INVENTED)


def verify(ledger: Ledger, source: str | SourceIndex, candidate: str, *, reference: str = "") -> Verification:
    """A verdict for each fact of `ledger`, and for each value of `candidate` that neither ledger nor `source` has.

    `reference` is the line that leads to the stored original: details may rest on that one, and on no other that says so."""
    original = source if isinstance(source, SourceIndex) else SourceIndex(source)
    judge = _Judge(original.candidate(candidate), original, ledger, reference)
    return Verification(tuple(judge.verdicts()))


def absent(facts: Iterable[Fact], ledger: Ledger, source: SourceIndex, candidate: str) -> tuple[Fact, ...]:
    """Those of `facts` that neither stand in `candidate` nor have an equal there."""
    asked = tuple(facts)
    judge = _Judge(source.candidate(candidate), source, ledger, asked=asked)
    return tuple(fact for fact in asked if not judge.stands(fact))


class _Judge:
    def __init__(
        self, candidate: CandidateText, source: SourceIndex, ledger: Ledger, reference: str = "", asked: Iterable[Fact] | None = None
    ) -> None:
        self._candidate = candidate
        self._ledger = ledger
        self._source = source
        self._is_same = candidate.text == source.text
        self._reference = reference
        self._has_reference = bool(reference) and reference in candidate.lines
        self._used: set[int] = set()
        self._reworded: dict[str, bool] = {}
        self._asked = ledger.facts if asked is None else asked

    @cached_property
    def _literal(self) -> frozenset[str]:
        """Texts of sentences and of values that speak for themselves, where they stand sign for sign."""
        return standing_in((f.text for f in self._asked if f.kind in LINES or f.kind in _SELF_EVIDENT), self._candidate.text)

    @cached_property
    def _invented(self) -> tuple[FoundValue, ...]:
        return () if self._is_same else tuple(invented_values(self._candidate, self._source, self._ledger.keys, self._reference))

    @cached_property
    def _flipped(self) -> tuple[str, ...]:
        return () if self._is_same else tuple(flipped(self._candidate, self._source))

    def stands(self, fact: Fact) -> bool:
        """Whether a fact is kept or equal, without asking what else became of it."""
        return self._present(fact).outcome in (Outcome.KEPT, Outcome.EQUAL)

    def verdicts(self) -> Iterator[Verdict]:
        for fact in self._ledger.facts:
            yield self._verdict(fact)
        for found in self._invented:
            if found.start not in self._used:
                yield Verdict(Outcome.INVENTED, None, found.text, f"{found.kind.value} that the source does not have")
        for sentence in self._flipped:
            yield Verdict(Outcome.INVENTED, None, sentence, "negation turned around")
        if not self._is_same:
            for sentence in reversed_relations(self._candidate.text, self._candidate.values, self._source.text, self._source.values):
                yield Verdict(Outcome.INVENTED, None, sentence, "names changed places")
            told = dict(self._source.told.changed(self._candidate.text, self._candidate.values))
            named = [*self._flipped, *(found.text for found in self._invented)]
            for sentence in (sentence for sentence in told if not any(text in sentence for text in named)):
                yield Verdict(Outcome.INVENTED, None, sentence, told[sentence])
            for counted in self._source.counts.miscounted(self._candidate.text):
                if not any(self._source.passages(key(counted).split())):
                    yield Verdict(Outcome.INVENTED, None, counted, "another number stands there")
            for member in turned_booleans(self._candidate.text, self._source.text):
                yield Verdict(Outcome.INVENTED, None, member, "true and false changed places")
            for member in moved_cells(self._candidate.text, self._source.text):
                yield Verdict(Outcome.INVENTED, None, member, "stands in another record or column")
            for entry in self._source.owners.misplaced(self._candidate.text):
                yield Verdict(Outcome.INVENTED, None, entry, "stands in another record or under another name")

    @cached_property
    def _swapped(self) -> frozenset[int]:
        return frozenset() if self._is_same else swapped(self._ledger.facts, self._candidate, self._source)

    def _verdict(self, fact: Fact) -> Verdict:
        found = self._present(fact)
        if fact.start in self._swapped:
            return Verdict(Outcome.MUTATED, fact, fact.text, "stands where another value of its kind stood")
        if fact.kind in NUMERIC and not self._is_same and (reason := self._turned(fact)):
            return Verdict(Outcome.MUTATED, fact, fact.text, reason)
        return self._absent(fact, found.reason) if found.outcome is Outcome.MISSING else found

    def _turned(self, fact: Fact) -> str:
        """Whether a value stands with another sign only, or rises where it fell; "" where it does not."""
        negative = is_negative(fact.text)
        signs = self._candidate.signs.get(fact.key, {negative})
        if negative not in signs and not signs <= self._source.signs.get(fact.key, set()):
            return "another sign"
        ways = self._source.directions.get(fact.key)
        return "another direction" if ways and self._candidate.directions.get(fact.key, ways) - ways else ""

    def _present(self, fact: Fact) -> Verdict:
        """Kept, equal or changed in its force; missing where it needs a closer look."""
        if self._is_same:
            return Verdict(Outcome.KEPT, fact)
        if (fact.kind in LINES or fact.kind in _SELF_EVIDENT) and fact.text in self._literal:
            return self._standing(fact)
        if fact.kind in LINES:
            return self._line(fact)
        lines = list(self._candidate.lines_of(fact.key)) if fact.key else []
        if lines and (fact.kind in _SELF_EVIDENT or self._with_subject(fact, lines)):
            return Verdict(Outcome.KEPT, fact)
        if equal := self._equal(fact):
            return Verdict(Outcome.EQUAL, fact, equal.text)
        reason = "stands without its subject" if lines else ""
        return Verdict(Outcome.MISSING, fact, reason=reason)

    def _standing(self, fact: Fact) -> Verdict:
        """A fact whose words stand: kept, unless the words around it take it back."""
        if fact.kind in _TAKEN_BACK and is_taken_back(fact.text, self._candidate.text, self._source.keys):
            return Verdict(Outcome.MUTATED, fact, fact.text, "stands in words that take it back")
        return Verdict(Outcome.KEPT, fact)

    def _with_subject(self, fact: Fact, lines: list[int]) -> bool:
        """Whether a value stands on a line with a word it is about; long numbers and values without a subject speak for themselves."""
        if not fact.subject or len(fact.key.replace(" ", "")) >= 6:
            return True
        wanted = {part for word in fact.subject for part in word.split()}
        return any(wanted & self._candidate.stems[line] for line in lines)

    def _equal(self, fact: Fact) -> FoundValue | None:
        spelling = self._source.spelling(fact) if fact.kind in NUMERIC and self._candidate.equals else ""
        found = self._candidate.equals.get((fact.kind, spelling)) if spelling else None
        if found is None or not self._with_subject(fact, [self._line_number(found)]):
            return None
        return found

    def _line(self, fact: Fact) -> Verdict:
        """A sentence: literally, or in one statement with all that distinguishes it, its force and its polarity."""
        if fact.key and f" {fact.key} " in self._candidate.padded:
            return self._standing(fact)
        if fact.kind in (FactKind.QUERY, FactKind.ERROR, FactKind.META):
            return Verdict(Outcome.MISSING, fact, reason="does not stand verbatim")
        wanted = distinguishing(fact.text)
        if not wanted:
            return Verdict(Outcome.KEPT, fact)
        content = frozenset(content_stems(ungrouped(fact.text.replace("_", " "))))
        changed: Verdict | None = None
        for statement, stems in self._candidate.statements_with(wanted, content, _PASSES_FOR):
            lacks = wanted - stems
            if not lacks and is_same_force(fact.text, statement):
                return Verdict(Outcome.EQUAL, fact, statement)
            if changed is None and len(content & stems) >= _PASSES_FOR * len(content) and self._is_reworded(statement):
                if lacks and distinguishing(SPEAKER_LINE.sub("", statement)) - self._source.stems:
                    changed = Verdict(Outcome.MUTATED, fact, statement, "other words")
                elif not lacks and fact.kind is FactKind.CONSTRAINT:
                    changed = Verdict(Outcome.MUTATED, fact, statement, "another force or polarity")
        return changed or Verdict(Outcome.MISSING, fact)

    def _is_reworded(self, statement: str) -> bool:
        """Whether a statement says something in words of its own: no other sentence of the source, whole or shortened, no list of values.
        Many facts ask the same of it."""
        if (known := self._reworded.get(statement)) is None:
            said = _LABEL.sub("", statement)
            spoken = key(said)
            known = any(word in _TELLS for word in words(said)) and not self._source.keys.has(spoken)
            known = known and not any(is_same_force(passage, spoken) for passage in self._source.passages(spoken.split()))
            self._reworded[statement] = known
        return known

    def _absent(self, fact: Fact, reason: str) -> Verdict:
        if fact.rank is not Rank.CRITICAL:
            if fact.rule and self._has_instead(fact):
                return Verdict(Outcome.DROPPED_BY_RULE, fact, reason=fact.rule)
            if self._has_reference:
                return Verdict(Outcome.RECOVERABLE, fact, reason="the reference leads to it")
        if changed := self._changed(fact):
            return Verdict(Outcome.MUTATED, fact, changed.text, "another value stands in its place")
        return Verdict(Outcome.MISSING, fact, reason=reason)

    def _has_instead(self, fact: Fact) -> bool:
        """Whether what has to stand for a dropped fact does."""
        instead = Fact(FactKind.CLAIM, fact.instead, 0, 0, key(fact.instead))
        return not fact.instead or self._present(instead).outcome in (Outcome.KEPT, Outcome.EQUAL)

    def _changed(self, fact: Fact) -> FoundValue | None:
        """An invented value of the same kind on a line about the same subject."""
        rivals = [found for found in self._invented if found.kind is fact.kind and found.start not in self._used]
        wanted = {part for word in fact.subject for part in word.split()} if rivals else set[str]()
        for found in rivals:
            if len(wanted & self._line_stems(found)) >= min(2, len(wanted)):
                self._used.add(found.start)
                return found
        return None

    def _line_stems(self, found: FoundValue) -> frozenset[str]:
        return self._candidate.stems[self._line_number(found)]

    def _line_number(self, found: FoundValue) -> int:
        return bisect_right(self._candidate.line_starts, found.start) - 1
