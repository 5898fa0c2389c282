"""The executor, the only caller of a model: it runs one recipe call in the seven steps of specification 000, section 15.

1 load the recipe, 2 gather its inputs, 3 fit them into the budget, 4 build the pack, 5 call the model, 6 parse and judge the answer,
7 log the call. Every call is budgeted here, and its documents are compressed where they must be (`SmartSummarizer`). A failed attempt is
tried again by the retry policy, then once on the next larger layer; then the call halts with an intervention.
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
from pandora_dagster.execution.call.layer_routing import Routing, choose_layer
from pandora_dagster.execution.call.prompt_packs import PackContents, build_pack, pack_text
from pandora_dagster.execution.call.quality_gates import AnswerJudgement, confidence_of, judge_answer, states_only_absence
from pandora_dagster.execution.call.recorded_inputs import recorded_case_text
from pandora_dagster.execution.call.session_rate_limit import SUMMARIZING_ROLES, SessionRateLimit
from pandora_dagster.execution.call.streaming import CallStream
from pandora_dagster.execution.call_faults import CallFault, CallFaultError, unrecoverable_fault
from pandora_dagster.execution.call_inputs import CallInputs, evidence_texts, gather_inputs
from pandora_dagster.execution.fit.call_budget import CallLimit, TokenRatioEstimator, observed_ratio, served_budget, served_tokens_if_over

_log = logging.getLogger(__name__)

LARGER_LAYER = {ModelLayer.REFLEX: ModelLayer.MIND, ModelLayer.NERVES: ModelLayer.MIND, ModelLayer.VOICE: ModelLayer.MIND}
"""Layer -> the next larger one, asked once where such answers turn out badly (decision 13: docs/decisions/13-escalation.md)."""
_MIN_RATIO_GROWTH = 1.02
"""Growth of the planning ratio between two rounds of fitting, so that they come to an end."""


@dataclass(frozen=True, slots=True)
class _Call:
    """The state of one running call."""

    request: CallRequest
    loaded: LoadedRecipe
    account: CallAccount
    tools: tuple[str, ...]
    retry_budget: RetryBudget
    stream: CallStream


class Executor:
    """Implements the port `RecipeExecutor`. Between calls it keeps only the token ratios that it learned."""

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
        timeout_factor: float = 1.0,
    ) -> None:
        self._recipes, self._runtime, self._log = recipes, runtime, log
        self._vault, self._interventions = vault, interventions
        self._clock, self._sleep, self._new_call_id = clock, sleep, new_call_id
        self._tools, self._count, self._limit, self._rate_limit = tools, counter.count, limit, rate_limit
        self._prices, self._routing, self._versions, self._timeout_factor = prices, routing, versions, timeout_factor
        self._on_answer: Callable[[PromptPack, ModelAnswer], None] | None = None
        self._token_ratios, self._input_fitter = TokenRatioEstimator(ratios), InputFitter(counter.count, fitter)

    def use_fitter(self, fitter: DocumentFitter) -> None:
        """Set the compression of documents, which itself makes calls through this executor.

        See decision 8: docs/decisions/08-when-compression-runs.md.
        """
        self._input_fitter = InputFitter(self._count, fitter)

    def listen(self, on_answer: Callable[[PromptPack, ModelAnswer], None]) -> None:
        """Set what receives each raw answer of a model with its pack, before the answer is judged."""
        self._on_answer = on_answer

    async def call(self, request: CallRequest) -> CallResult:
        """Run one recipe; raises HaltError after writing the intervention. One record is logged, failures included.

        Raises DeferredError where the rate limit of a live session defers a summarization call
        (decision 7: docs/decisions/07-levels-link-every-fact.md).
        """
        loaded = self._load_recipe(request)
        call = self._open_call(request, loaded)
        try:
            judged = await self._answer_call(call)
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
        """`call` for compression, which can do without a model: a failed call is logged and returned as a fault; nothing halts."""
        try:
            call = self._open_call(request, self._recipes.get(request.recipe, request.mode))
        except ConfigurationError as error:
            return CallFault(InterventionType.CONFIG_ERROR, str(error), hint=error.hint)
        try:
            judged = await self._answer_call(call)
        except CallFaultError as fault:
            self._log_record(call.account.record(self._clock(), success=False, error=fault.fault.message))
            return fault.fault
        return self._result(call, judged)

    def _load_recipe(self, request: CallRequest) -> LoadedRecipe:
        """Step 1. A recipe that cannot be loaded halts the call; the intervention is the only record (specification 000, section 18.1)."""
        try:
            return self._recipes.get(request.recipe, request.mode)
        except ConfigurationError as error:
            fields = {**request.site.fields, "recipe": request.recipe, "hint": error.hint}
            opened = self._interventions.open(InterventionType.CONFIG_ERROR, str(error), **fields)
            raise HaltError(str(error), intervention_id=opened.id, hint=error.hint) from error

    def _open_call(self, request: CallRequest, loaded: LoadedRecipe) -> _Call:
        """Choose the layer, and store the recipe version, the images and the inputs of the call."""
        self._keep_version(loaded)
        tools = tuple(name for name in loaded.recipe.tools_available if name in self._tools)
        layer, reasons = choose_layer(self._routing, request, loaded.path, loaded.layer)
        request = replace(request, images=tuple(self._keep_image(request.site.user, image) for image in request.images))
        account = CallAccount(self._new_call_id(), self._clock(), request, loaded, self._runtime.name, layer, routed=reasons)
        account.request_ref = self._keep_text(account, "request", recorded_case_text(request))
        self._log_start(account)
        stream = CallStream(request.listener, loaded.recipe.output_format)
        retry_budget = RetryBudget(account.call_id, loaded.recipe.quality_gates, timeout_factor=self._timeout_factor)
        return _Call(request, loaded, account, tools, retry_budget, stream)

    async def _answer_call(self, call: _Call) -> AnswerJudgement:
        """Steps 2 to 6, on the larger layer too where it can help: a usable answer. Raises CallFaultError.

        A low calibrated confidence asks the larger layer once and halts no call (decision 38: docs/decisions/38-confidence.md).
        """
        call = replace(call, request=replace(call.request, images=tuple(self._load_image(image) for image in call.request.images)))
        inputs = gather_inputs(call.request, call.loaded, call.tools)
        recipe, layer = call.loaded.recipe, call.account.layer
        larger = LARGER_LAYER.get(layer)
        try:
            first_answer = await self._attempt_on_layer(call, inputs, layer, "")
        except CallFaultError as fault:
            larger_budget = self._limit.larger_budget(recipe.token_budget) if larger and fault.fault.suits_larger_layer else None
            if larger is None or larger_budget is None:
                raise
            call.account.escalated, call.account.budget = True, larger_budget.total
            return await self._attempt_on_layer(call, inputs, larger, "", larger_budget)
        if first_answer.low_confidence is None or larger is None or not call.retry_budget.attempt_ms:
            return first_answer
        if self._runtime.model(larger) == self._runtime.model(layer):
            return first_answer.with_note(f"{larger.value} is served by the same model, which was not asked again")
        call.account.escalated = True
        call.stream.withdraw(first_answer.low_confidence.reason)
        return await self._attempt_on_layer(call, inputs, larger, "")

    async def _attempt_on_layer(
        self, call: _Call, inputs: CallInputs, layer: ModelLayer, feedback: str, budget: TokenBudget | None = None
    ) -> AnswerJudgement:
        """Attempts on one layer, each with the last error as feedback, until an answer passes or the retry policy allows no more."""
        target = self._target(call, layer, budget)
        contents = await self._pack_contents(call, inputs, target)
        outcome: AnswerJudgement | CallFault | None = None
        while True:
            was_unreachable = isinstance(outcome, CallFault) and outcome.is_unreachable  # then the rate limit counted the attempt already
            rate_limit_fault = None if was_unreachable else await self._rate_limit_fault(call)
            outcome = rate_limit_fault or await self._attempt_once(call, contents, feedback, target)
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
        """The layer as it is served; `budget` replaces the recipe's own where it is not None."""
        recipe_temperature, served = call.loaded.recipe.temperature, self._runtime.context_limit(layer)
        temperature = self._runtime.temperature(layer) if recipe_temperature is None else recipe_temperature
        ratio = self._token_ratios.ratio(layer, self._runtime.model(layer))
        budget = served_budget(budget or call.loaded.recipe.token_budget, served)
        return PackTarget(layer, served, ratio, temperature, call.tools, budget)

    async def _pack_contents(self, call: _Call, inputs: CallInputs, target: PackTarget) -> PackContents:
        """Step 3: contents that fit the served model. Where its own count is over, they are fitted again with the ratio of this prompt.

        The loop ends, because each round plans with fewer tokens, and one without space for the fixed parts raises CallFaultError.
        """
        while True:
            contents = await self._input_fitter.pack_contents(call.request, call.loaded, inputs, target)
            pack = build_pack(contents, call.account.call_id, "", self._count)
            served_tokens = await served_tokens_if_over(self._runtime, pack, limit=_served_limit(target))
            if served_tokens is None:
                return contents
            ratio = observed_ratio(contents.prompt_tokens + contents.input_tokens, served_tokens)
            target = replace(target, ratio=max(ratio, target.ratio * _MIN_RATIO_GROWTH))

    async def _attempt_once(self, call: _Call, contents: PackContents, feedback: str, target: PackTarget) -> AnswerJudgement | CallFault:
        """Steps 4 to 6 once. Feedback for which the served model has no space is left out."""
        rate_limit = self._rate_limit_of(call)
        pack = build_pack(contents, call.account.call_id, feedback, self._count)
        if feedback and await served_tokens_if_over(self._runtime, pack, limit=_served_limit(target)):
            pack = build_pack(contents, call.account.call_id, "", self._count)
        call.account.begin_attempt(
            contents, pack, self._keep_text(call.account, "pack", pack_text(pack)), self._runtime.model(contents.layer)
        )
        started_at = self._clock()
        try:
            manual_text = call.request.manual_answer
            answer = (
                manual_answer(manual_text)
                if manual_text
                else await attempt_call(self._runtime, pack, timeout_ms=call.retry_budget.attempt_ms, on_words=call.stream.begin())
            )
        except ModelError as error:
            call.retry_budget.spent_s += (self._clock() - started_at).total_seconds() - error.queued_ms / 1_000
            prompt, output, cached = error.tokens
            call.account.add_usage(Usage(prompt=prompt, output=output, cached=cached), error.queued_ms, self._prices.get(contents.layer))
            if rate_limit and isinstance(error, RateLimitedError):
                rate_limit.record_refusal(call.request.site)
            fault = fault_of(error)
            if fault.type is InterventionType.TIMEOUT:
                call.account.record_verdict(GateVerdict("timeout_ms", False, fault.message))
            return fault
        if self._on_answer and not manual_text:
            self._on_answer(pack, answer)
        call.retry_budget.spent_s += answer.latency_ms / 1_000
        call.account.add_usage(answer.usage, answer.queued_ms, self._prices.get(contents.layer))
        if rate_limit:
            rate_limit.record_success(call.request.site)
        return self._judge(call, pack, answer)

    async def _rate_limit_fault(self, call: _Call) -> CallFault | None:
        """The fault that defers the next attempt by the rate limit of the session; None where the attempt is admitted."""
        rate_limit = self._rate_limit_of(call)
        reason = await rate_limit.admit(call.request.site) if rate_limit else ""
        return CallFault(InterventionType.BUDGET_EXCEEDED, reason, deferred=True) if reason else None

    def _rate_limit_of(self, call: _Call) -> SessionRateLimit | None:
        """The rate limit of the call; None but for summarizing calls of live sessions. Archival runs have limits of their own."""
        site = call.request.site
        is_live = bool(site.session) and site.priority is not Priority.BATCH
        return self._rate_limit if is_live and call.loaded.recipe.role in SUMMARIZING_ROLES else None

    def _judge(self, call: _Call, pack: PromptPack, answer: ModelAnswer) -> AnswerJudgement | CallFault:
        """Step 6: record an answer, learn its token ratio, and judge it."""
        account, recipe = call.account, call.loaded.recipe
        account.record_answer(answer, self._keep_text(account, "answer", answer.text), answer.usage.output or self._count(answer.text))
        if self._runtime.context_limit(pack.layer) is not None and not pack.images:  # the tokens of images are estimates
            counted, served_tokens = account.prompt + account.input, answer.usage.prompt
            self._token_ratios.learn(pack.layer, self._runtime.model(pack.layer), counted=counted, served=served_tokens)
        request = call.request
        texts = evidence_texts(request) if recipe.output_format.is_prose and recipe.quality_gates.evidence_required else None
        table = self._versions.calibration(call.loaded.path).table(call.loaded.version, answer.model) if self._versions else None
        intent, query = request.intent, request.query
        judged = judge_answer(answer, recipe, request.sources, intent=intent, query=query, texts=texts, calibration=table)
        for verdict in judged.verdicts:
            account.record_verdict(verdict)
        is_schema_checked = recipe.output_schema is not None and recipe.quality_gates.schema_validation
        account.schema_valid = account.gates["schema_validation"] if is_schema_checked else None
        account.confidence = confidence_of(judged.parsed)
        if recipe.output_format.is_prose and call.request.sources:
            account.answered = not states_only_absence(judged.text)
        if judged.fault and call.request.manual_answer:
            return replace(judged.fault, retryable=False)  # a user's answer would be the same again
        return judged.fault or judged

    def _keep_version(self, loaded: LoadedRecipe) -> None:
        """Store the recipe version; a failure of the store is logged, and the next call tries again."""
        try:
            if self._versions:
                self._versions.keep(loaded)
        except StoreError as error:
            _log.warning(f"{loaded.path}: version {loaded.version} was not kept: {error}")

    def _keep_text(self, account: CallAccount, kind: str, text: str) -> str:
        """Store a text of the call and return its reference; "" where the vault fails, which is logged and does not stop the call."""
        try:
            return self._vault.keep(account.request.site.user, kind, text)
        except StoreError as error:
            _log.warning(f"call {account.call_id}: {kind} not kept: {error}")
            return ""

    def _keep_image(self, user: str, image: ImagePart) -> ImagePart:
        """The image with the reference of its stored bytes; a failure of the vault is logged and does not stop the call."""
        try:
            return image if image.reference else replace(image, reference=self._vault.keep_image(user, image.data))
        except StoreError as error:
            _log.warning(f"image {image.name}: not kept: {error}")
            return image

    def _load_image(self, image: ImagePart) -> ImagePart:
        """The image with its bytes; raises CallFaultError where the vault no longer has them."""
        try:
            return image if image.data else replace(image, data=self._vault.read_image(image.reference))
        except (DocumentError, StoreError) as error:
            raise unrecoverable_fault(InterventionType.MISSING_DOCUMENT, f"image {image.name}: {error}") from error

    def _result(self, call: _Call, judged: AnswerJudgement) -> CallResult:
        """Step 7. A failure of the log is in the result's record; the answer stays valid."""
        call.stream.finish(judged.text)
        record = call.account.record(self._clock(), success=True)
        return CallResult(judged.text, judged.parsed, self._log_record(record), judged.verdicts, call.account.compressions)

    def _log_start(self, account: CallAccount) -> None:
        """Store that the call began: a process that is killed in it leaves this record."""
        try:
            self._log.begin(account.record(account.started, success=False))
        except StoreError as error:
            _log.warning(f"call {account.call_id}: its start is not logged: {error}")

    def _log_record(self, record: CallRecord) -> CallRecord:
        try:
            self._log.append(record)
        except StoreError as error:
            _log.warning(f"call {record.call_id}: not logged: {error}")
            return record.model_copy(update={"error": "; ".join(filter(None, (record.error, f"not logged: {error}")))})
        return record

    def _halt(self, call: _Call, fault: CallFault) -> HaltError:
        """Log the failure, open the intervention, and return the exception that names it."""
        message = fault.message if fault.message.startswith(call.loaded.name) else f"{call.loaded.name}: {fault.message}"
        if call.account.retries:
            message += f" (after {call.account.retries} {'retry' if call.account.retries == 1 else 'retries'})"
        self._log_record(call.account.record(self._clock(), success=False, error=message))
        opened = self._interventions.open(fault.type, message, hint=fault.hint, **call.account.intervention_fields())
        return HaltError(message, intervention_id=opened.id, hint=fault.hint)


def _served_limit(target: PackTarget) -> int | None:
    """Tokens of the served model for the two messages; None where its context is unbounded."""
    return None if target.served is None else target.served - target.budget.output - target.budget.response_reserve
