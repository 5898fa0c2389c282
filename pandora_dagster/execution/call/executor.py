"""The executor: runs one recipe call in the seven steps of 000 section 15, and is the only caller of a model.

It is what 000 section 21.4 calls SmartSummarizer: every call is budgeted here, and compressed where it must be, without its caller's
doing. It knows recipes, budgets and gates; it knows no phase, no disk and no server.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType, ModelLayer, Priority
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import CallRecord, CallRequest, CallResult, ModelAnswer, Price, PromptPack, Usage
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime, TokenRatios
from pandora_dagster.contracts.ports.recipe_execution import DocumentFitter, RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallLog, Interventions, RecipeVersionStore, Vault
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, TokenBudget
from pandora_dagster.errors import ConfigurationError, DeferredError, DocumentError, HaltError, ModelError, RateLimitedError, StoreError
from pandora_dagster.execution.call.attempts import RetryBudget, attempt_call, fault_of, manual_answer
from pandora_dagster.execution.call.call_account import CallAccount
from pandora_dagster.execution.call.input_budget import InputFitter, PackTarget
from pandora_dagster.execution.call.layer_routing import Routing, routed_layer
from pandora_dagster.execution.call.prompt_packs import PackContents, build_pack, pack_text
from pandora_dagster.execution.call.quality_gates import AnswerJudgement, confidence_of, judge_answer, states_only_absence
from pandora_dagster.execution.call.recorded_inputs import recorded_case_text
from pandora_dagster.execution.call.session_rate_limit import SUMMARIZING_ROLES, SessionRateLimit
from pandora_dagster.execution.call.streaming import CallStream
from pandora_dagster.execution.call_faults import CallFault, CallFaultError, unrecoverable_fault
from pandora_dagster.execution.call_inputs import CallInputs, gather_inputs
from pandora_dagster.execution.fit.call_budget import CallLimit, TokenRatioEstimator, observed_ratio, served_tokens_if_over

LARGER_LAYER = {ModelLayer.REFLEX: ModelLayer.MIND, ModelLayer.NERVES: ModelLayer.MIND, ModelLayer.VOICE: ModelLayer.MIND}
"""Layer -> the next larger one, asked once where confidence is too low; MIND and EYES have none (DECISIONS 13)."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One call under way."""

    request: CallRequest
    loaded: LoadedRecipe
    account: CallAccount
    tools: tuple[str, ...]
    retry_budget: RetryBudget
    stream: CallStream


class Executor:
    """Fills the `RecipeExecutor` port. It holds only what it learned about tokenizers."""

    def __init__(
        self,
        *,
        recipes: RecipeCatalog,
        runtime: ModelRuntime,
        counter: TokenMeasure,
        log: CallLog,
        vault: Vault,
        interventions: Interventions,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        new_call_id: Callable[[], str],
        fitter: DocumentFitter | None = None,
        tools: Set[str] = frozenset(),
        limit: CallLimit = CallLimit(),  # noqa: B008 - a frozen value
        ratios: TokenRatios | None = None,
        rate_limit: SessionRateLimit | None = None,
        prices: Mapping[ModelLayer, Price] = MappingProxyType({}),
        routing: Routing | None = None,
        versions: RecipeVersionStore | None = None,
    ) -> None:
        self._recipes, self._runtime, self._log = recipes, runtime, log
        self._vault, self._interventions = vault, interventions
        self._clock, self._sleep, self._new_call_id = clock, sleep, new_call_id
        self._tools, self._count, self._limit, self._rate_limit = tools, counter.count, limit, rate_limit
        self._prices, self._routing, self._versions = prices, routing, versions
        self._correction, self._fitting = TokenRatioEstimator(ratios), InputFitter(counter.count, fitter)

    def use_fitter(self, fitter: DocumentFitter) -> None:
        """Give the executor its compression, which itself calls through this executor (DECISIONS 8)."""
        self._fitting = InputFitter(self._count, fitter)

    async def call(self, request: CallRequest) -> CallResult:
        """Run one recipe; raises HaltError after writing the intervention. One record is logged, failures included.

        Raises DeferredError where the limits of a live session put a summarisation call off (DECISIONS 7).
        """
        loaded = self._load_recipe(request)
        call = self._open_call(request, loaded)
        try:
            judged = await self._answer(call)
        except CallFaultError as fault:
            if fault.fault.deferred:
                self._log_record(call.account.record(self._clock(), success=False, error=fault.fault.message))
                raise DeferredError(f"{loaded.name}: {fault.fault.message}") from fault
            raise self._halt(call, fault.fault) from fault
        except HaltError as halt:
            self._log_record(call.account.record(self._clock(), success=False, error=f"compression: {halt}"))
            raise
        return self._result(call, judged)

    async def attempt(self, request: CallRequest) -> CallResult | CallFault:
        """`call` for compression, which has other ways: a failed call is logged and comes back; no intervention is opened."""
        try:
            call = self._open_call(request, self._recipes.get(request.recipe, request.mode))
        except ConfigurationError as error:
            return CallFault(InterventionType.CONFIG_ERROR, str(error), hint=error.hint)
        try:
            judged = await self._answer(call)
        except CallFaultError as fault:
            self._log_record(call.account.record(self._clock(), success=False, error=fault.fault.message))
            return fault.fault
        return self._result(call, judged)

    def _load_recipe(self, request: CallRequest) -> LoadedRecipe:
        """Step 1. A recipe that cannot be loaded never ran: its intervention is its only record (000 section 18.1)."""
        try:
            return self._recipes.get(request.recipe, request.mode)
        except ConfigurationError as error:
            fields = {**request.site.fields, "recipe": request.recipe, "hint": error.hint}
            opened = self._interventions.open(InterventionType.CONFIG_ERROR, str(error), **fields)
            raise HaltError(str(error), intervention_id=opened.id, hint=error.hint) from error

    def _open_call(self, request: CallRequest, loaded: LoadedRecipe) -> _Call:
        self._keep_version(loaded)
        tools = tuple(name for name in loaded.recipe.tools_available if name in self._tools)
        layer, reasons = routed_layer(self._routing, request, loaded.path, loaded.layer)
        request = replace(request, images=tuple(self._keep_image(request.site.user, image) for image in request.images))
        account = CallAccount(self._new_call_id(), self._clock(), request, loaded, self._runtime.name, layer, routed=reasons)
        account.request_ref = self._keep_text(account, "request", recorded_case_text(request))
        hearing = CallStream(request.listener, loaded.recipe.output_format)
        return _Call(request, loaded, account, tools, RetryBudget(account.call_id, loaded.recipe.quality_gates), hearing)

    async def _answer(self, call: _Call) -> AnswerJudgement:
        """Steps 2 to 6: an answer that passes, or one whose low confidence the caller handles; raises CallFaultError."""
        call = replace(call, request=replace(call.request, images=tuple(self._load_image(image) for image in call.request.images)))
        inputs = gather_inputs(call.request, call.loaded, call.tools)
        recipe, layer = call.loaded.recipe, call.account.layer
        larger = LARGER_LAYER.get(layer)
        try:
            first = await self._try_layer(call, inputs, layer, "")
        except CallFaultError as fault:
            wider = self._limit.larger_budget(recipe.token_budget) if larger and fault.fault.wider else None
            if larger is None or wider is None:
                raise
            call.account.escalated, call.account.budget = True, wider.total
            return _require_confidence(call, await self._try_layer(call, inputs, larger, "", wider))
        if first.low_confidence is None or larger is None or not call.retry_budget.attempt_ms:
            return _require_confidence(call, first)
        call.account.escalated = True
        call.stream.withdraw(first.low_confidence.reason)
        return _require_confidence(
            call, await self._try_layer(call, inputs, larger, f"{layer.value} answered: {first.low_confidence.reason}.")
        )

    async def _try_layer(
        self, call: _Call, inputs: CallInputs, layer: ModelLayer, feedback: str, budget: TokenBudget | None = None
    ) -> AnswerJudgement:
        """Attempts on one layer, each with the last error as feedback, until one passes or the retry policy is exhausted."""
        target = self._target(call, layer, budget)
        packable = await self._pack_contents(call, inputs, target)
        outcome: AnswerJudgement | CallFault | None = None
        while True:
            was_unreachable = isinstance(outcome, CallFault) and outcome.away  # then the attempt is still to be made
            outcome = (None if was_unreachable else await self._rate_limit_fault(call)) or await self._attempt_once(
                call, packable, feedback, target
            )
            if isinstance(outcome, AnswerJudgement):
                return outcome
            call.stream.withdraw(outcome.message)
            pause = call.retry_budget.pause_before_next(outcome)
            if pause is None:
                raise CallFaultError(outcome)
            call.account.retries = call.retry_budget.retries
            feedback = outcome.feedback or feedback
            if pause:
                await self._sleep(pause)

    def _target(self, call: _Call, layer: ModelLayer, budget: TokenBudget | None) -> PackTarget:
        own = call.loaded.recipe.temperature
        temperature = self._runtime.temperature(layer) if own is None else own
        ratio = self._correction.ratio(layer, self._runtime.model(layer))
        return PackTarget(layer, self._runtime.context_limit(layer), ratio, temperature, call.tools, budget)

    async def _pack_contents(self, call: _Call, inputs: CallInputs, target: PackTarget) -> PackContents:
        """What surely fits the served model: where its own count is over, the plan is made again with the ratio that this prompt has.

        Ends: each plan has fewer tokens than the one before, and one without room for the fixed parts halts.
        """
        while True:
            packable = await self._fitting.pack_contents(call.request, call.loaded, inputs, target)
            pack = build_pack(packable, call.account.call_id, "", self._count)
            served = await served_tokens_if_over(self._runtime, pack, room=_served_room(call, target))
            if served is None:
                return packable
            target = replace(target, ratio=max(observed_ratio(packable.prompt_tokens + packable.input_tokens, served), target.ratio * 1.02))

    async def _attempt_once(self, call: _Call, packable: PackContents, feedback: str, target: PackTarget) -> AnswerJudgement | CallFault:
        """Steps 4 to 6 once. Feedback that the served model has no room for is left out."""
        rate_limit = self._rate_limit_of(call)
        pack = build_pack(packable, call.account.call_id, feedback, self._count)
        if feedback and await served_tokens_if_over(self._runtime, pack, room=_served_room(call, target)):
            pack = build_pack(packable, call.account.call_id, "", self._count)
        call.account.begin_attempt(
            packable, pack, self._keep_text(call.account, "pack", pack_text(pack)), self._runtime.model(packable.layer)
        )
        began = self._clock()
        try:
            given = call.request.manual_answer
            answer = (
                manual_answer(given)
                if given
                else await attempt_call(self._runtime, pack, timeout_ms=call.retry_budget.attempt_ms, on_words=call.stream.begin())
            )
        except ModelError as error:
            call.retry_budget.spent_s += (self._clock() - began).total_seconds() - error.queued_ms / 1_000
            prompt, output, cached = error.tokens
            call.account.add_usage(Usage(prompt=prompt, output=output, cached=cached), error.queued_ms, self._prices.get(packable.layer))
            if rate_limit and isinstance(error, RateLimitedError):
                rate_limit.record_refusal(call.request.site)
            fault = fault_of(error)
            if fault.type is InterventionType.TIMEOUT:
                call.account.record_verdict(GateVerdict("timeout_ms", False, fault.message))
            return fault
        call.retry_budget.spent_s += answer.latency_ms / 1_000
        call.account.add_usage(answer.usage, answer.queued_ms, self._prices.get(packable.layer))
        if rate_limit:
            rate_limit.record_success(call.request.site)
        return self._judge(call, pack, answer)

    async def _rate_limit_fault(self, call: _Call) -> CallFault | None:
        """Why the limits of the session put the next attempt off; None where they do not."""
        rate_limit = self._rate_limit_of(call)
        reason = await rate_limit.admit(call.request.site) if rate_limit else ""
        return CallFault(InterventionType.BUDGET_EXCEEDED, reason, deferred=True) if reason else None

    def _rate_limit_of(self, call: _Call) -> SessionRateLimit | None:
        """The rate limit of the call: only summarising calls of live sessions have one. Archival runs have their own."""
        site = call.request.site
        is_live = bool(site.session) and site.priority is not Priority.BATCH
        return self._rate_limit if is_live and call.loaded.recipe.role in SUMMARIZING_ROLES else None

    def _judge(self, call: _Call, pack: PromptPack, answer: ModelAnswer) -> AnswerJudgement | CallFault:
        account, recipe = call.account, call.loaded.recipe
        account.record_answer(answer, self._keep_text(account, "answer", answer.text), answer.usage.output or self._count(answer.text))
        if self._runtime.context_limit(pack.layer) is not None and not pack.images:  # the estimate of an image teaches nothing about words
            counted, served = account.prompt + account.input, answer.usage.prompt
            self._correction.learn(pack.layer, self._runtime.model(pack.layer), counted=counted, served=served)
        judged = judge_answer(answer, recipe, call.request.sources, intent=call.request.intent)
        for verdict in judged.verdicts:
            account.record_verdict(verdict)
        checked = recipe.output_schema is not None and recipe.quality_gates.schema_validation
        account.schema_valid = account.gates["schema_validation"] if checked else None
        account.confidence, account.thinking = confidence_of(judged.parsed), judged.thinking
        if recipe.output_format.is_prose and call.request.sources:
            account.answered = not states_only_absence(judged.text)
        if judged.fault and call.request.manual_answer:
            return replace(judged.fault, retryable=False)  # the same words again would be no other answer
        return judged.fault or judged

    def _keep_version(self, loaded: LoadedRecipe) -> None:
        """Every version that runs is kept; a store that fails costs that, not the call, and the next call tries again."""
        try:
            if self._versions:
                self._versions.keep(loaded)
        except StoreError as error:
            _warn(f"{loaded.path}: version {loaded.version} was not kept: {error}")

    def _keep_text(self, account: CallAccount, kind: str, text: str) -> str:
        """A vault that fails costs the copy, not the call."""
        try:
            return self._vault.keep(account.request.site.user, kind, text)
        except StoreError as error:
            _warn(f"call {account.call_id}: {kind} not kept: {error}")
            return ""

    def _keep_image(self, user: str, image: ImagePart) -> ImagePart:
        """The image with the reference of its stored bytes; a vault that fails costs the copy, not the call."""
        try:
            return image if image.reference else replace(image, reference=self._vault.keep_image(user, image.data))
        except StoreError as error:
            _warn(f"image {image.name}: not kept: {error}")
            return image

    def _load_image(self, image: ImagePart) -> ImagePart:
        """The image with its bytes; raises CallFaultError where the vault no longer has them."""
        try:
            return image if image.data else replace(image, data=self._vault.read_image(image.reference))
        except (DocumentError, StoreError) as error:
            raise unrecoverable_fault(InterventionType.MISSING_DOCUMENT, f"image {image.name}: {error}") from error

    def _result(self, call: _Call, judged: AnswerJudgement) -> CallResult:
        """Step 7. A failure of the log is reported, also in the result's record; the answer stays valid."""
        doubt = judged.low_confidence
        call.stream.finish(judged.text)
        record = call.account.record(self._clock(), success=doubt is None, error=doubt.reason if doubt else "")
        return CallResult(judged.text, judged.parsed, self._log_record(record), judged.verdicts, call.account.compressions)

    def _log_record(self, record: CallRecord) -> CallRecord:
        try:
            self._log.append(record)
        except StoreError as error:
            _warn(f"call {record.call_id}: not logged: {error}")
            return record.model_copy(update={"error": "; ".join(filter(None, (record.error, f"not logged: {error}")))})
        return record

    def _halt(self, call: _Call, fault: CallFault) -> HaltError:
        """Log the failure, write the intervention, and give the exception that names it."""
        message = fault.message if fault.message.startswith(call.loaded.name) else f"{call.loaded.name}: {fault.message}"
        if call.account.retries:
            message += f" (after {call.account.retries} {'retry' if call.account.retries == 1 else 'retries'})"
        self._log_record(call.account.record(self._clock(), success=False, error=message))
        opened = self._interventions.open(fault.type, message, hint=fault.hint, **call.account.intervention_fields())
        return HaltError(message, intervention_id=opened.id, hint=fault.hint)


def _served_room(call: _Call, target: PackTarget) -> int | None:
    """The served model's tokens for the two messages; None where it is unbounded."""
    budget = target.budget or call.loaded.recipe.token_budget
    return None if target.served is None else target.served - budget.output - budget.response_reserve


def _require_confidence(call: _Call, judged: AnswerJudgement) -> AnswerJudgement:
    """The answer itself, unless its confidence is too low for its caller to go on."""
    if judged.low_confidence is not None and call.request.halt_on_low_confidence:
        call.stream.withdraw(judged.low_confidence.reason)
        raise CallFaultError(CallFault(InterventionType.LOW_CONFIDENCE, judged.low_confidence.reason))
    return judged


def _warn(message: str) -> None:
    """Standard logging: it goes to stderr unless the process sets it up otherwise."""
    logging.getLogger(__name__).warning(message)
