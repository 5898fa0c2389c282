"""The soft levels of 000 section 25 and section 4's enforcement (section 26): a turn's texts kept within their budgets as it grows.

Fills the `BudgetCompressor` port. Soft levels never lose anything and never stop a turn: where no sound compression fits, the text stays
whole and says so; the hard level, a call that does not fit, is the executor's.
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
"""Tokens of context.md over which level 2 begins: the sum of its sections' budgets."""
DOCUMENT_TARGET = 7_500
SECTION_4_BUDGET = SECTION_BUDGETS[4]
SECTION_4_EXISTING = 1_500
"""What older results are compressed to before a new one is added."""
UNTOUCHED = frozenset({0})
"""The user's words: no level compresses them."""
_SETTLED = frozenset(SECTION_BUDGETS) - UNTOUCHED - {4}
"""Sections of level 1; section 4 is kept within its budget while it is written."""
_SMALLEST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class SoftLimits:
    """What guides the soft levels (DECISIONS 6)."""

    threshold: float = 0.9
    """Share of a section's budget: above it a section is full, and down to it a settled one is compressed."""
    min_savings: int = 500
    """Tokens that a compression must save to be worth it."""


class SectionBudgets:
    """Decides when a reported text is compressed, and to what."""

    def __init__(
        self, engine: SummarizationEngine, counter: TokenMeasure, interventions: Interventions, log: CompressionLog, limits: SoftLimits
    ) -> None:
        self._engine, self._count, self._limits = engine, counter.count, limits
        self._interventions, self._log = interventions, log

    async def fit_text(self, content: CompressionInput, *, target: int, site: CallSite) -> CompressionResult:
        """`content` within `target` tokens, unchanged where it fits or where no sound text does."""
        request = content.within(target)
        made = await self._compress(request, site)
        if made.text is None:
            self._record_overflow(content, made.original_tokens - target, site)
        return self._result(request, made)

    async def compress_for_archive(self, content: CompressionInput, *, targets: Sequence[int], site: CallSite) -> CompressionResult:
        """`content` within the first of `targets` that a sound text fits; whole, with the last reason, where none does."""
        result = CompressionResult(content.text, halted="no target was given")
        for target in targets:
            request = replace(content, query="", original="").within(target)
            result = self._result(request, await self._compress(request, site))
            if not result.halted:
                break
        return result

    async def _compress(self, request: CompressionRequest, site: CallSite) -> CompressionOutcome:
        try:
            return await self._engine.compress(request, site=site)
        except CallFaultError as error:
            raise self._halt_error(error.fault, request, site) from error

    def _result(self, request: CompressionRequest, made: CompressionOutcome) -> CompressionResult:
        if made.text is None:
            return CompressionResult(request.text, halted=made.halted)
        return CompressionResult(made.text, self._engine.report(request, made) if made.verification else None)

    async def fit_section(self, number: int, content: CompressionInput, *, site: CallSite) -> CompressionResult:
        """Level 1: a section over the threshold of its budget, compressed to it where that saves enough (DECISIONS 6)."""
        tokens, budget = self._count(content.text), SECTION_BUDGETS.get(number, 0)
        target = int(budget * self._limits.threshold)
        if number not in _SETTLED or tokens <= target:
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
        existing_tokens, added = sum(sizes) + surrounding_tokens, self._count(newest)
        is_over = existing_tokens + added > SECTION_4_BUDGET
        is_near = (
            existing_tokens + added > SECTION_4_BUDGET * self._limits.threshold
            and existing_tokens - SECTION_4_EXISTING >= self._limits.min_savings
        )
        if existing_tokens <= SECTION_4_EXISTING or not (is_over or is_near):
            return tuple(CompressionResult(content.text) for content in existing)
        targets = _token_shares(sizes, SECTION_4_EXISTING - surrounding_tokens)
        return tuple([await self.fit_text(c, target=t, site=site) for c, t in zip(existing, targets, strict=True)])

    async def fit_newest_result(self, newest: CompressionInput, *, site: CallSite) -> CompressionResult:
        """A result that alone exceeds section 4's budget, within it; any other stays whole (DECISIONS 4)."""
        if self._count(newest.text) <= SECTION_4_BUDGET:
            return CompressionResult(newest.text)
        return await self.fit_text(newest, target=SECTION_4_BUDGET, site=site)

    async def fit_document(
        self, sections: Mapping[int, CompressionInput], *, total: int, latest: int, site: CallSite
    ) -> Mapping[int, CompressionResult]:
        """Level 2: the largest sections first, the latest one last, until 7,500 tokens are left; over 8,600 still, those that
        could not be compressed come back with the reason."""
        if total <= DOCUMENT_LIMIT:
            return {}
        sizes = {n: self._count(c.text) for n, c in sections.items() if n not in UNTOUCHED}
        over, done, stuck = total - DOCUMENT_TARGET, dict[int, CompressionResult](), dict[int, CompressionResult]()
        for number in sorted(sizes, key=lambda n: (n == latest, -sizes[n])):
            target = max(sizes[number] - over, int(sizes[number] * _SMALLEST_SHARE), 1)
            if over <= 0 or not self._saves_enough(sizes[number] - target):
                continue
            shrunk = await self._compress_parts(sections[number], target, site)
            if shrunk.report:
                done[number] = shrunk
                over -= shrunk.report.tokens_before - shrunk.report.tokens_after
            else:
                stuck[number] = shrunk
        if total - _saved_tokens(done) > DOCUMENT_LIMIT:
            loaded = self._engine.recipe(ContentType.CONTEXT_DOC)
            self._log.record_overflow("context.md", total - _saved_tokens(done) - DOCUMENT_LIMIT, site=site, loaded=loaded)
            done |= stuck
        return done

    async def _compress_parts(self, content: CompressionInput, target: int, site: CallSite) -> CompressionResult:
        """A section's loose parts shortened around what is verbatim, the whole verified once more."""
        parts = section_stretches(content.text)
        loose = [part.text for part in parts if not part.is_fixed]
        room = target - sum(self._count(part.text) for part in parts if part.is_fixed) - len(loose)
        if not loose or room < len(loose):
            return CompressionResult(content.text, halted=f"{content.name}: what stands verbatim alone exceeds {target} tokens")
        shorter, reports = list[str](), list[CompressionReport]()
        for text, share in zip(loose, _token_shares([self._count(text) for text in loose], room), strict=True):
            shrunk = await self.fit_text(replace(content, text=text, original=""), target=share, site=site)
            if shrunk.halted:
                return CompressionResult(content.text, halted=shrunk.halted)
            shorter.append(with_original_margins(shrunk.text, text))
            reports += [shrunk.report] if shrunk.report else []
        rest = iter(shorter)
        whole = "".join(part.text if part.is_fixed else next(rest) for part in parts)
        return self._engine.verify_whole(content.within(target), whole, reports)

    def _saves_enough(self, saved: int) -> bool:
        """Whether a soft level compresses at all: MIN_COMPRESSION_SAVINGS of 000's configuration."""
        return saved > 0 and saved >= self._limits.min_savings

    def _record_overflow(self, content: CompressionInput, over: int, site: CallSite) -> None:
        self._log.record_overflow(content.name, over, site=site, loaded=self._engine.recipe(content_type_of(content)))

    def _halt_error(self, fault: CallFault, content: CompressionInput, site: CallSite) -> HaltError:
        """The model that compresses is down: the one fault that stops a turn here."""
        message = f"compression of {content.name}: {fault.message}"
        opened = self._interventions.open(fault.type, message, hint=fault.hint, **site.fields)
        return HaltError(message, intervention_id=opened.id, hint=fault.hint)


def _saved_tokens(done: Mapping[int, CompressionResult]) -> int:
    return sum(s.report.tokens_before - s.report.tokens_after for s in done.values() if s.report)


def _token_shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much of `room` each gets: small ones all they need, the larger ones equal parts of what is left."""
    targets, left = [0] * len(sizes), max(room, len(sizes))
    waiting = sorted(range(len(sizes)), key=lambda i: sizes[i])
    for place, i in enumerate(waiting):
        targets[i] = max(1, min(sizes[i], left // (len(waiting) - place)))
        left -= targets[i]
    return targets
