"""The budgets of a turn's texts as it grows (specification 000, sections 25 and 26).

    level 1    a section over the threshold of its budget is compressed to it
    section 4  older tool results are compressed before a new one is added; a new one alone over the budget is compressed too
    level 2    where context.md is over 8,600 tokens, its largest sections are compressed until 7,500 are left

These soft levels never stop a turn: where no sound compression fits, the text stays whole with a reason. The hard level, a call that does
not fit, is in the executor. The class implements the port `BudgetCompressor`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.contracts.compression_results import CompressionInput, CompressionReport, CompressionRequest, CompressionResult
from pandora_dagster.contracts.enums import SECTION_BUDGETS, ContentType
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.record_storage import Interventions
from pandora_dagster.errors import HaltError
from pandora_dagster.execution.call_faults import CallFault, CallFaultError
from pandora_dagster.execution.fit.compression_contract import with_original_margins
from pandora_dagster.execution.fit.compression_log import CompressionLog, CompressionOutcome
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.execution.fit.text_stretches import section_stretches

DOCUMENT_LIMIT = 8_600
"""Level 2 begins over this number of tokens of context.md, the sum of the budgets of its sections."""
DOCUMENT_TARGET = 7_500
SECTION_4_BUDGET = SECTION_BUDGETS[4]
SECTION_4_OLDER_RESULTS = 1_500
"""Older results are compressed to this number of tokens before a new one is added."""
UNCOMPRESSED_SECTIONS = frozenset({0})
"""Section 0 holds the user's words: no level compresses it."""
_LEVEL_1_SECTIONS = frozenset(SECTION_BUDGETS) - UNCOMPRESSED_SECTIONS - {4}
"""Section 4 is kept within its budget while it is written."""
_MIN_SECTION_SHARE = 0.25
"""Level 2 compresses no section below this share of its tokens."""


@dataclass(frozen=True, slots=True)
class SoftLimits:
    """The settings of the soft levels (decision 6: docs/decisions/06-soft-and-hard-levels.md)."""

    threshold: float = 0.9
    """Share of a section's budget over which the section is compressed, and to which."""
    min_savings: int = 500
    """A compression that saves fewer tokens is not made."""


class SectionBudgets:
    """Decides which texts of a turn are compressed, and to what size."""

    def __init__(
        self, engine: SummarizationEngine, counter: TokenMeasure, interventions: Interventions, log: CompressionLog, limits: SoftLimits
    ) -> None:
        self._engine, self._count, self._limits = engine, counter.count, limits
        self._interventions, self._log = interventions, log

    async def fit_text(self, content: CompressionInput, *, target: int, site: CallSite) -> CompressionResult:
        """`content` within `target` tokens; unchanged where it fits, or where no sound text fits."""
        request = content.within(target)
        outcome = await self._compress(request, site)
        if outcome.text is None:
            self._record_overflow(content, outcome.original_tokens - target, site)
        return self._result(request, outcome)

    async def compress_for_archive(self, content: CompressionInput, *, targets: Sequence[int], site: CallSite) -> CompressionResult:
        """`content` within the first of `targets` that a sound text fits; whole, with the last reason, where none does in its time."""
        result = CompressionResult(content.text, halted="no target was given")
        for target in targets:
            request = replace(content, query="", original="").within(target)
            outcome = await self._compress(request, site)
            result = self._result(request, outcome)
            if outcome.is_late or not result.halted:
                break
        return result

    async def _compress(self, request: CompressionRequest, site: CallSite) -> CompressionOutcome:
        try:
            return await self._engine.compress(request, site=site)
        except CallFaultError as error:
            raise self._halt_error(error.fault, request, site) from error

    def _result(self, request: CompressionRequest, outcome: CompressionOutcome) -> CompressionResult:
        if outcome.text is None:
            return CompressionResult(request.text, halted=outcome.halted)
        return CompressionResult(outcome.text, self._engine.report(request, outcome) if outcome.verification else None)

    async def fit_section(self, number: int, content: CompressionInput, *, site: CallSite) -> CompressionResult:
        """Level 1: a section over the threshold of its budget, compressed to the threshold where that saves enough."""
        tokens, budget = self._count(content.text), SECTION_BUDGETS.get(number, 0)
        target = int(budget * self._limits.threshold)
        if number not in _LEVEL_1_SECTIONS or tokens <= target:
            return CompressionResult(content.text)
        if self._saves_enough(tokens - target):
            return await self._compress_parts(content, target, site)
        if tokens <= budget:
            return CompressionResult(content.text)
        self._record_overflow(content, tokens - budget, site)
        saving = f"compressing it would save {tokens - target}, under MIN_COMPRESSION_SAVINGS of {self._limits.min_savings}"
        return CompressionResult(
            content.text, halted=f"section {number}: {tokens} tokens are {tokens - budget} over its budget of {budget}: {saving}"
        )

    async def fit_older_results(
        self, existing: Sequence[CompressionInput], newest: str, *, surrounding_tokens: int, site: CallSite
    ) -> tuple[CompressionResult, ...]:
        """The older results of section 4 in 1,500 tokens, before `newest` comes; `surrounding_tokens` of these for the text around them."""
        sizes = [self._count(content.text) for content in existing]
        existing_tokens, newest_tokens = sum(sizes) + surrounding_tokens, self._count(newest)
        is_over = existing_tokens + newest_tokens > SECTION_4_BUDGET
        is_near = (
            existing_tokens + newest_tokens > SECTION_4_BUDGET * self._limits.threshold
            and existing_tokens - SECTION_4_OLDER_RESULTS >= self._limits.min_savings
        )
        if existing_tokens <= SECTION_4_OLDER_RESULTS or not (is_over or is_near):
            return tuple(CompressionResult(content.text) for content in existing)
        targets = _token_shares(sizes, SECTION_4_OLDER_RESULTS - surrounding_tokens)
        return tuple([await self.fit_text(c, target=t, site=site) for c, t in zip(existing, targets, strict=True)])

    async def fit_newest_result(self, newest: CompressionInput, *, site: CallSite) -> CompressionResult:
        """The newest result, compressed only where it alone exceeds section 4's budget.

        See decision 4: docs/decisions/04-the-newest-tool-result-stays-whole.md.
        """
        if self._count(newest.text) <= SECTION_4_BUDGET:
            return CompressionResult(newest.text)
        return await self.fit_text(newest, target=SECTION_4_BUDGET, site=site)

    async def fit_document(
        self, sections: Mapping[int, CompressionInput], *, total: int, latest: int, site: CallSite
    ) -> Mapping[int, CompressionResult]:
        """Level 2: sections of a document of `total` tokens, the largest compressed first and the latest last, until 7,500 tokens are left.

        Where it is still over 8,600 tokens, the sections that could not be compressed are returned with their reasons.
        """
        if total <= DOCUMENT_LIMIT:
            return {}
        sizes = {n: self._count(c.text) for n, c in sections.items() if n not in UNCOMPRESSED_SECTIONS}
        tokens_over, compressed, uncompressible = total - DOCUMENT_TARGET, dict[int, CompressionResult](), dict[int, CompressionResult]()
        for number in sorted(sizes, key=lambda n: (n == latest, -sizes[n])):
            target = max(sizes[number] - tokens_over, int(sizes[number] * _MIN_SECTION_SHARE), 1)
            if tokens_over <= 0 or not self._saves_enough(sizes[number] - target):
                continue
            result = await self._compress_parts(sections[number], target, site)
            if result.report:
                compressed[number] = result
                tokens_over -= result.report.tokens_before - result.report.tokens_after
            else:
                uncompressible[number] = result
        if total - _saved_tokens(compressed) > DOCUMENT_LIMIT:
            loaded = self._engine.recipe(ContentType.CONTEXT_DOC)
            self._log.record_overflow("context.md", total - _saved_tokens(compressed) - DOCUMENT_LIMIT, site=site, loaded=loaded)
            compressed |= uncompressible
        return compressed

    async def _compress_parts(self, content: CompressionInput, target: int, site: CallSite) -> CompressionResult:
        """A section with its parts shortened that need not stay verbatim; the whole is verified once more."""
        parts = section_stretches(content.text)
        compressible = [part.text for part in parts if not part.is_fixed]
        available_tokens = target - sum(self._count(part.text) for part in parts if part.is_fixed) - len(compressible)
        if not compressible or available_tokens < len(compressible):
            return CompressionResult(content.text, halted=f"{content.name}: the verbatim parts alone exceed {target} tokens")
        shortened, reports = list[str](), list[CompressionReport]()
        for text, part_target in zip(
            compressible, _token_shares([self._count(text) for text in compressible], available_tokens), strict=True
        ):
            result = await self.fit_text(replace(content, text=text, original=""), target=part_target, site=site)
            if result.halted:
                return CompressionResult(content.text, halted=result.halted)
            shortened.append(with_original_margins(result.text, text))
            reports += [result.report] if result.report else []
        shortened_texts = iter(shortened)
        section_text = "".join(part.text if part.is_fixed else next(shortened_texts) for part in parts)
        return self._engine.verify_whole(content.within(target), section_text, reports)

    def _saves_enough(self, saved: int) -> bool:
        """Whether a compression that saves so many tokens is made (MIN_COMPRESSION_SAVINGS in specification 000)."""
        return saved > 0 and saved >= self._limits.min_savings

    def _record_overflow(self, content: CompressionInput, over: int, site: CallSite) -> None:
        self._log.record_overflow(content.name, over, site=site, loaded=self._engine.recipe(content_type_of(content)))

    def _halt_error(self, fault: CallFault, content: CompressionInput, site: CallSite) -> HaltError:
        """The HALT where the compressing model is down, the only fault that stops a turn here."""
        message = f"compression of {content.name}: {fault.message}"
        intervention = self._interventions.open(fault.type, message, hint=fault.hint, **site.fields)
        return HaltError(message, intervention_id=intervention.id, hint=fault.hint)


def _saved_tokens(compressed: Mapping[int, CompressionResult]) -> int:
    return sum(result.report.tokens_before - result.report.tokens_after for result in compressed.values() if result.report)


def _token_shares(sizes: Sequence[int], available_tokens: int) -> list[int]:
    """The share of `available_tokens` of each text: small ones get all they need, larger ones equal parts of the rest."""
    targets, remaining_tokens = [0] * len(sizes), max(available_tokens, len(sizes))
    smallest_first = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for rank, index in enumerate(smallest_first):
        targets[index] = max(1, min(sizes[index], remaining_tokens // (len(smallest_first) - rank)))
        remaining_tokens -= targets[index]
    return targets
