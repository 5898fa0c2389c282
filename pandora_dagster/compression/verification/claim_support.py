"""Compares each statement of an answer with the text of the sources that it cites (specification 000, section 14).

Compares forms: values with units, dates, names, codes, links, quotations, force and negation. A statement is refused where it cites
nothing, where a form is in none of its sources, and where another source says it: code can tell that. It is doubtful where the forms are
there and the words beside them differ, where the source is in another script than the answer, or where it cites nothing, has no form and
is negated or speaks to the reader, as an absence or an offer does. Whether the source says it is then for a model.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from pandora_dagster.compression.verification.comparison import find_differences
from pandora_dagster.compression.verification.forms import Form, FormKind, forms
from pandora_dagster.compression.verification.source_evidence import SourceEvidence, numbers_of
from pandora_dagster.compression.verification.statements import Statement, StatementKind, read_statements
from pandora_dagster.language.cues import addresses_reader, ends_as_question, negations
from pandora_dagster.language.dates import days, times
from pandora_dagster.language.detection import language_of, script_language
from pandora_dagster.language.quantities import quantities
from pandora_dagster.language.sentences import sentences
from pandora_dagster.language.stop_words import stop_words
from pandora_dagster.language.tokens import all_words, numeral_value

UNCITED_FACT = "states a fact and cites no source"
_MIN_COVERED_SHARE = 0.5
"""Share of a statement's content words, those of the query apart, that its sources have at least."""
_MIN_SAID_SHARE = 0.8
"""Share of them that another source has, which then is the one to cite."""
_MIN_COMPARED_WORDS = 2
"""Content words below which a share says nothing."""
_TURNING_REASONS = ("another polarity", "another force", "exchanged with each other", "another sign of its line")
"""Changes of comparison that turn a statement although all its values are in the source."""
_QUOTATION = re.compile(r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb\n]{12,})[\"\u201d\u201c\u00bb]")
_MAX_SHOWN_UNITS = 3
"""Units of a source that are shown beside a statement."""
_MAX_SHOWN_CHARACTERS = 160
"""Characters of a source that a reason shows."""
_MIN_POLARITY_WORDS = 3
"""Content words below which a negation may be of another word than the source's: `Jonah: no gluten`, `Jonah: gluten`."""
_MAX_LENGTH_RATIO = 1.5
"""How much longer than the statement a unit is whose negation and force are its statement_forms: a longer one says other things too."""
_TOLERANCE = 0.006
"""How far a computed value may be from its result: it is rounded to two places."""
_NO_EVIDENCE = SourceEvidence("")


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """A statement of fact, the labels that it cites, and why it is refused or doubtful; "" where its sources support it."""

    statement: str
    labels: tuple[str, ...]
    reason: str = ""
    source: str = ""
    """What the source says of it, or says instead; "" where nothing is near."""
    outcome: Literal["refused", "doubtful", "verbatim", "supported", "not compared"] = "refused"
    is_kind_open: bool = False
    """Whether its form does not show what it does: it cites nothing and has no value, name or code, so it need not be a fact."""

    @property
    def needs_model(self) -> bool:
        """Whether a model has to say if the cited source says it: code found no fault, and it is not verbatim there."""
        return self.outcome in ("supported", "doubtful") and bool(self.labels)

    @property
    def row(self) -> dict[str, str]:
        """The verdict as a row of a table, each text shortened."""
        cited = ", ".join(f"[{label}]" for label in self.labels)
        return {
            "statement": _shorten(self.statement),
            "cited": cited,
            "verdict": self.outcome,
            "reason": _shorten(self.reason),
            "source": _shorten(self.source),
        }

    def __str__(self) -> str:
        says = f"; the source says: {_shorten(self.source)}" if self.source else ""
        return f'"{_shorten(self.statement)}": {self.reason}{says}'


def judge_claims(answer: str, sources: Mapping[str, str], *, query: str = "", is_greeting: bool = False) -> tuple[ClaimVerdict, ...]:
    """A verdict for each statement of fact in `answer`; `sources` is the text under each label.

    A value that the query holds needs no source, nor does a statement that only repeats what the user stated. In the answer to a greeting
    only values, names and codes are claims. A statement that cites a source whose text is not given is not compared.
    """
    language = _language_among(answer, [*map(language_of, sources.values()), language_of(query), language_of(answer)])
    judge = _Judge(answer, sources, query, language, is_greeting=is_greeting)
    return tuple(verdict for statement in read_statements(answer, language) if (verdict := judge.verdict(statement)) is not None)


def _language_among(answer: str, languages: Sequence[str]) -> str:
    """The one of `languages` of which most words of an answer are stop words; the first of those that have as many."""
    words = all_words(answer)
    return max(dict.fromkeys(filter(None, languages)), key=lambda language: sum(w in stop_words(language) for w in words), default="")


class _Judge:
    def __init__(self, answer: str, sources: Mapping[str, str], query: str, language: str, *, is_greeting: bool) -> None:
        self._sources, self._language, self._is_greeting = sources, language, is_greeting
        self._script = script_language(answer)
        self._query = SourceEvidence(query)
        self._stated = SourceEvidence(" ".join(s for s in sentences(query, language) if not ends_as_question(s)))
        self._texts: dict[tuple[str, ...], SourceEvidence] = {}

    def verdict(self, statement: Statement) -> ClaimVerdict | None:
        """None where the statement makes no claim."""
        statement_forms = forms(statement.text, self._language)
        labels = tuple(label for label in statement.labels if label in self._sources)
        evidence = self._evidence(labels)
        if statement.kind is StatementKind.QUESTION:
            return None
        is_silent = statement.kind is not StatementKind.FACT or self._is_greeting
        if is_silent and not self._unknown_values(statement, statement_forms, evidence):
            return None
        if not any(f.is_content for f in statement_forms) or (not statement.labels and self._repeats_user(statement_forms)):
            return None
        if not statement.labels:
            may_claim_nothing = negations(statement.text) > 0 or addresses_reader(statement.text)
            has_forms = self._unknown_values(statement, statement_forms, _NO_EVIDENCE)
            outcome = "doubtful" if may_claim_nothing and not has_forms else "refused"
            return ClaimVerdict(statement.text, (), UNCITED_FACT, outcome=outcome, is_kind_open=not has_forms)
        if not labels:
            return ClaimVerdict(statement.text, statement.labels, outcome="not compared")
        if evidence.quotes(statement.text):
            return ClaimVerdict(statement.text, statement.labels, outcome="verbatim")
        cited = ", ".join(f"[{label}]" for label in statement.labels)
        if fault := next(self._missing_forms(statement, statement_forms, evidence, cited), None):
            return ClaimVerdict(statement.text, statement.labels, *fault, "refused" if evidence.script == self._script else "doubtful")
        if right_label := self._source_that_says(statement, statement_forms, evidence):
            reason = f"{cited} does not say this, [{right_label}] does"
            return ClaimVerdict(statement.text, statement.labels, reason, self._sources_text(right_label, statement_forms))
        if doubt := next(self._doubts(statement, statement_forms, evidence, cited), None):
            return ClaimVerdict(statement.text, statement.labels, *doubt, "doubtful")
        near = evidence.nearest_units(statement_forms)[:_MAX_SHOWN_UNITS]
        passage = "\n".join(evidence.index.units[order].text for order in sorted(near))
        return ClaimVerdict(statement.text, statement.labels, source=passage, outcome="supported")

    def _evidence(self, labels: tuple[str, ...]) -> SourceEvidence:
        if labels not in self._texts:
            self._texts[labels] = SourceEvidence("\n\n".join(self._sources[label] for label in labels))
        return self._texts[labels]

    def _repeats_user(self, statement_forms: Sequence[Form]) -> bool:
        """Whether all that a statement says is what the user stated."""
        return bool(self._stated.text) and all(
            self._stated.has_word(f) if f.kind is FormKind.WORD else self._stated.has(f, self._language)
            for f in statement_forms
            if f.is_content
        )

    def _unknown_values(self, statement: Statement, statement_forms: Sequence[Form], evidence: SourceEvidence) -> list[str]:
        """Values, dates, codes and names of a statement that neither its sources nor the query have, and that it does not compute."""
        moments = [*days(statement.text), *times(statement.text)]
        unknown_moments = [m for m in moments if not evidence.has_moment(m) and not self._query.has_moment(m)]
        other_forms = [
            f for f in statement_forms if f.is_hard and f.text != "I" and not any(m.start < f.end and f.start < m.end for m in moments)
        ]
        if not evidence.is_comparable_in(self._language):
            other_forms = [f for f in other_forms if f.kind is not FormKind.NAME]
        missing = [f for f in other_forms if not evidence.has(f, self._language) and not self._query.has(f, self._language)]
        unknown_forms = [
            f for f in missing if not _is_counted(f, statement) and not _is_computed(f, statement_forms, missing, self._language)
        ]
        unknown_at = {m.start: f"date or time {statement.text[m.start : m.end]}" for m in unknown_moments} | {
            f.start: f"{f.kind.value} {f.text}" for f in unknown_forms
        }
        return [unknown_at[start] for start in sorted(unknown_at)]

    def _missing_forms(
        self, statement: Statement, statement_forms: Sequence[Form], evidence: SourceEvidence, cited: str
    ) -> Iterator[tuple[str, str]]:
        """What the cited sources do not have: values, dates, names, codes, quotations; and the nearest text."""
        near = evidence.nearest_units(statement_forms)
        if unknown := self._unknown_values(statement, statement_forms, evidence):
            yield f"{', '.join(unknown)}: not in {cited}", evidence.nearest_text(near)
        for quotation in _QUOTATION.findall(statement.text):
            if not evidence.quotes(quotation) and not self._query.quotes(quotation):
                yield f'the quotation "{_shorten(quotation)}" is not in {cited}', evidence.nearest_text(near)

    def _source_that_says(self, statement: Statement, statement_forms: Sequence[Form], evidence: SourceEvidence) -> str:
        """The label of another source that has nearly all of a statement's words, where the cited ones lack half of them; "" for none."""
        words = self._own_words(statement_forms)
        if len(words) < _MIN_COMPARED_WORDS or _covered_share(words, evidence) >= _MIN_COVERED_SHARE:
            return ""
        others = {label: _covered_share(words, self._evidence((label,))) for label in self._sources if label not in statement.labels}
        return next((label for label, share in others.items() if share >= _MIN_SAID_SHARE), "")

    def _own_words(self, statement_forms: Sequence[Form]) -> list[Form]:
        """The words and names of a statement that the query does not have."""
        return [f for f in statement_forms if f.kind in (FormKind.WORD, FormKind.NAME) and not self._query.has_word(f)]

    def _sources_text(self, label: str, statement_forms: Sequence[Form]) -> str:
        evidence = self._evidence((label,))
        return evidence.nearest_text(evidence.nearest_units(statement_forms))

    def _doubts(
        self, statement: Statement, statement_forms: Sequence[Form], evidence: SourceEvidence, cited: str
    ) -> Iterator[tuple[str, str]]:
        """What differs beside the forms that the sources have: most words, negation or force."""
        if not evidence.is_comparable_in(self._language):
            return
        near = evidence.nearest_units(statement_forms)
        words = self._own_words(statement_forms)
        missing_words = [f for f in words if not evidence.has_word(f)]
        if len(words) >= _MIN_COMPARED_WORDS and len(missing_words) > (1 - _MIN_COVERED_SHARE) * len(words):
            yield f"{cited} has nothing of: {', '.join(f.text for f in missing_words)}", evidence.nearest_text(near)
        yield from self._turned_meanings(statement, statement_forms, evidence, near)

    def _turned_meanings(
        self, statement: Statement, statement_forms: Sequence[Form], evidence: SourceEvidence, near: Sequence[int]
    ) -> Iterator[tuple[str, str]]:
        """The negation, force or value that the nearest unit of the source turns, where no other one says what the statement says."""
        turned_units: list[tuple[str, str]] = []
        if sum(f.is_content for f in statement_forms) < _MIN_POLARITY_WORDS:
            return
        for order in near:
            unit = evidence.index.units[order]
            if len(evidence.index.forms(order)) > _MAX_LENGTH_RATIO * len(statement_forms):
                continue
            changes = [
                d
                for d in find_differences(
                    unit.text,
                    evidence.index.forms(order),
                    statement.text,
                    statement_forms,
                    evidence.language,
                    forbids=evidence.index.forbids(order),
                )
                if d.is_change and d.reason in _TURNING_REASONS
            ]
            if not changes and evidence.covers(order, statement_forms) and (negations(unit.text) > 0) == (negations(statement.text) > 0):
                return
            turned_units += [(f"{d.reason}: {d.is_now or '(nothing)'}", unit.text) for d in changes]
        yield from turned_units[:1]


def _covered_share(words: Sequence[Form], evidence: SourceEvidence) -> float:
    return sum(map(evidence.has_word, words)) / len(words)


def _is_counted(form: Form, statement: Statement) -> bool:
    """Whether a number is that of the lines which the statement introduces."""
    number = numeral_value(form.text)
    return statement.items > 0 and (str(number) if number is not None else form.text) == str(statement.items)


def _is_computed(form: Form, statement_forms: Sequence[Form], missing: Sequence[Form], language: str) -> bool:
    """Whether a number is the sum of the other values of its statement, or the sum, difference, product or ratio of two of them."""
    result = _amount(form, language)
    given_values = [f for f in statement_forms if f.kind is FormKind.VALUE and f not in missing]
    operands = [float(part) for f in given_values for q in quantities(f.text, language) for part in numbers_of(q)]
    if result is None or len(operands) < 2:
        return False
    pairs = permutations(operands, 2)
    results = [sum(operands), *(x for a, b in pairs for x in (a + b, a - b, a * b, *([a / b] if b else [])))]
    return any(abs(x - result) <= _TOLERANCE for x in results)


def _amount(form: Form, language: str) -> float | None:
    numbers = [part for q in quantities(form.text, language) for part in numbers_of(q)]
    return float(numbers[0]) if len(numbers) == 1 else None


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _MAX_SHOWN_CHARACTERS else plain[: _MAX_SHOWN_CHARACTERS - 4].rsplit(" ", 1)[0] + " ..."
