"""The compression of a text by whole units, with a verdict for every fact when it is asked for. Pure: no model, no file, no clock.

Within budget nothing changes. Else the units that cover most, weighted by what a reader needs, are kept with all that they need; a counted
mark is where something is left out. There is no text only where not one unit fits (a HALT).
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.compression.original_reference import reference_line
from pandora_dagster.compression.salience.salience import reading_salience
from pandora_dagster.compression.salience.text_reading import TextReading, read_text, tokenized
from pandora_dagster.compression.selection.budget_selection import BudgetSelector, Selection
from pandora_dagster.compression.selection.coverage import Candidates
from pandora_dagster.compression.selection.omission_marks import omissions_by_unit, without_marks
from pandora_dagster.compression.selection.passage_relevance import relevance
from pandora_dagster.compression.selection.term_weights import Term, has_tools, mandatory_terms, weighted_terms
from pandora_dagster.compression.selection.unnamed_codes import last_line, unnamed_codes
from pandora_dagster.compression.verification.omission_rules import weaker_claims
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.verifier import Verification, verify
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.errors import InputError

_META_BLOCK = re.compile(r"^```yaml\n_meta:\n(?:(?!```)[^\n]*\n)*+```[ \t]*$", re.MULTILINE)
_MANDATORY_SHARE, _LAST_LINE_SHARE = 0.9, 0.1
"""Shares of the target that the mandatory terms of a talk may take, and the codes in its last line."""
_MAX_MARK_TOKENS = 8
"""Tokens of the count of what is left out."""
_MAX_REFERENCE_SHARE = 0.25
"""Share of the target that the line with the name of the original may take."""


@dataclass(frozen=True)
class CompressedText:
    """The result of a compression. `text` is None where it halted, and `halted` says why. Facts and verdicts are made on first use, since a
    compression needs neither."""

    text: str | None
    tokens: int
    original_tokens: int
    halted: str | None
    request: CompressionRequest
    counter: TokenMeasure
    smallest_target: int = 0
    """After a halt: a target with which at least one unit fits."""
    known_facts: TextFacts | None = None
    """The facts of the first original, where they are known already."""

    @property
    def is_unchanged(self) -> bool:
        return self.text == self.request.text

    @property
    def halt_reason(self) -> str | None:
        """Why there is no text, and with how many tokens there would be one; None where there is one."""
        return f"{self.halted}; with {self.smallest_target} tokens one fits" if self.halted else None

    @cached_property
    def original_facts(self) -> TextFacts:
        """The facts of the first original."""
        return self.known_facts or find_facts(redact(self.request.source))

    @cached_property
    def verification(self) -> Verification:
        return verify(self.original_facts, self.text or "", reference=self._reference)

    @property
    def _reference(self) -> str:
        return reference_line(self.request.name, content_type_of(self.request))

    @cached_property
    def check(self) -> tuple[str, ...] | None:
        """The reasons why the text is no condensed one; None where there is no text, or an unchanged one."""
        if self.text is None or self.is_unchanged:
            return None
        return check_summary(self.text, self.original_facts, self.request.target, self.counter, reference=self._reference)


def compress(request: CompressionRequest, counter: TokenMeasure, *, original_facts: TextFacts | None = None) -> CompressedText:
    """Shorten the text of `request` to at most `request.target` tokens (specification 000, section 24, and specification 001).

    With a query, the units that are relevant to it come first. Credentials are removed. Where the text is a compression already and too
    long, or has what `request.original` does not have, the units are chosen from the original again, so that no loss or error adds up; the
    verdicts are about its facts. `original_facts` are those of that original, where they are known. A stored tool result or turn ends with
    a line that names it. Raises InputError for a target under 1.
    """
    text, target = request.text, request.target
    if target < 1:
        raise InputError(f"compress: target_tokens: {target}: expected at least 1 token")
    tokens = counter.count(text)
    result = CompressedText(text, tokens, tokens, None, request, counter, known_facts=original_facts)
    if tokens <= target and (not request.is_repeated or result.verification.no_fact_changed):
        return result
    shortened, smallest_target = _Compression(redact(request.source), request.query.strip(), counter).fit(
        target, _reference(request, counter)
    )
    if shortened:
        return replace(result, text=shortened, tokens=counter.count(shortened))
    name = request.name or content_type_of(request).value
    halted = f"compress: {name}: not one unit fits in {target} tokens"
    return replace(result, text=None, tokens=0, halted=halted, smallest_target=smallest_target)


def _reference(request: CompressionRequest, counter: TokenMeasure) -> str:
    """The line that names the original, where it leaves enough tokens for the text."""
    line = reference_line(request.name, content_type_of(request))
    return line if line and counter.count(line) <= _MAX_REFERENCE_SHARE * request.target else ""


class _Compression:
    """Fits one text to a target. Section 0 of a context.md stays byte for byte, its headings stay, and its newest section stays whole where
    it fits (specification 000, section 24)."""

    def __init__(self, text: str, query: str, counter: TokenMeasure) -> None:
        self._counter = counter
        self._query = query
        document = ContextDocument.parse(text)
        first = document.section(0)
        self._head = document.preamble + first.text if first and document.sections[0] is first else ""
        self._body, self._earlier = without_marks(text[len(self._head) :])

    def fit(self, target: int, last_line: str) -> tuple[str, int]:
        """The shortened text, or "" where not one unit fits; and a target with which one does."""
        tail = f"\n{last_line}" if last_line else ""
        body_target = target - self._counter.count(self._head) - self._counter.count(tail)
        if body_target < 1:
            return "", target - body_target + 1
        reading = read_text(self._body)
        always = newest = frozenset[int]()
        if self._head:
            units, always = _with_meta_blocks(self._body, reading.units)
            reading = tokenized(units, reading.language)
            newest = _units_of_newest_section(self._body, units) - always
        costs = [self._counter.count(u.text) + 1 for u in reading.units]
        # where no unit fits with what it needs, one may fit alone
        without_needs = tuple(replace(u, needs=()) for u in reading.units)
        attempts = [(units, always) for units in (reading.units, without_needs)]
        if newest and sum(costs[i] for i in newest | always) + _MAX_MARK_TOKENS <= body_target:
            attempts.insert(0, (reading.units, always | newest))
        for units, kept in attempts:
            body = self._select(replace(reading, units=units), costs, body_target, kept)
            text = f"{self._head}{body}{tail}"
            if body and self._counter.count(text) <= target:
                return text, target
        cheapest_unit = min((c for c, u in zip(costs, reading.units, strict=True) if not u.is_context), default=1)
        return "", target - body_target + cheapest_unit + _MAX_MARK_TOKENS

    def _select(self, reading: TextReading, costs: Sequence[int], target: int, always: frozenset[int]) -> str:
        relevant = relevance(reading, self._query, costs) if self._query else None
        candidates = Candidates(
            reading.units,
            weighted_terms(reading),
            costs,
            reading_salience(reading),
            relevance=relevant if relevant and any(relevant) else None,
            always=always,
            last=weaker_claims(reading.units) - always,
        )
        mandatory = {} if relevant else mandatory_terms(reading)
        selector = BudgetSelector(candidates, self._counter, omissions_by_unit(reading.units, self._earlier))

        def select(tokens: int) -> Selection:
            return selector.select(tokens, mandatory=mandatory, mandatory_share=_MANDATORY_SHARE)

        selection = select(target)
        return self._with_codes(reading, selection, mandatory, select, target) if mandatory and has_tools(reading) else selection.text

    def _with_codes(
        self, reading: TextReading, selection: Selection, mandatory: Mapping[Term, float], select: Callable[[int], Selection], target: int
    ) -> str:
        """The text of a talk with tools, with a last line that names codes of the units that are left out."""
        count = self._counter.count
        max_tokens = int(target * _LAST_LINE_SHARE)
        line = last_line(unnamed_codes(reading, selection.kept, mandatory), max_tokens, count)
        if not line or not selection.text:
            return selection.text
        shorter = select(target - count(line) - 1)
        text_tokens = count(shorter.text)  # the line may take its share of what is written, which may be less than the target
        max_tokens = min(int(text_tokens * _LAST_LINE_SHARE / (1 - _LAST_LINE_SHARE)), max_tokens, target - count(shorter.text + "\n"))
        line = last_line(unnamed_codes(reading, shorter.kept, mandatory), max_tokens, count)
        text = f"{shorter.text}\n{line}"
        return text if line and shorter.text and count(text) <= target else selection.text


def _units_of_newest_section(text: str, units: Sequence[Unit]) -> frozenset[int]:
    """The units of the newest section of a context.md."""
    document, start = ContextDocument.parse(text), 0
    newest = document.newest
    for section in document.sections:
        if section is newest:
            break
        start += len(section.text)
    start += len(document.preamble)
    return frozenset(u.order for u in units if newest and start <= u.start < start + len(newest.text))


def _with_meta_blocks(text: str, units: Sequence[Unit]) -> tuple[tuple[Unit, ...], frozenset[int]]:
    """The units of a context.md, each `_meta` block one of them, and those that stay: the sections' headings and those blocks."""
    spans = [match.span() for match in _META_BLOCK.finditer(text)]
    merged: list[Unit] = []
    always = {u.order for u in units if u.kind is UnitKind.HEADING and ContextDocument.parse(u.text + "\n").sections}
    seen: set[int] = set()
    for unit in units:
        block = bisect_right(spans, (unit.start, len(text))) - 1
        if block < 0 or unit.start >= spans[block][1]:
            merged.append(unit)
        elif block not in seen:
            seen.add(block)
            always |= {unit.order, *unit.needs}
            merged.append(replace(unit, kind=UnitKind.CODE, text=text[slice(*spans[block])]))
        else:  # the block is in its first unit; orders stay
            merged.append(replace(unit, kind=UnitKind.HEADER, text="", needs=()))
    return tuple(merged), frozenset(always)
