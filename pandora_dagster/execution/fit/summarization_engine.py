"""The SummarizationEngine of specification 000, section 21.3: it compresses one text to a target, and gives each fact a verdict.

    1 a text within its target stays unchanged
    2 with a model: pieces of the text, in which the model selects or rewrites (`ModelSelection`, `ModelRewriting`), then verification
    3 without a model, or where no text of the model passed: whole units of the text (`compress_structurally`), then verification
    4 a call record of the compression, and a cache entry

`SmartSummarizer` and `SectionBudgets` decide which text is compressed.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.compression.verification.facts import Outcome, Rank, Verdict
from pandora_dagster.contracts.compression_results import CompressionReport, CompressionRequest, CompressionResult
from pandora_dagster.contracts.enums import ContentType, ModelLayer
from pandora_dagster.contracts.model_calls import CallRequest, CallSite
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.pasted_blocks import short_query
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.execution.fit.compression_calls import AttemptExecutor, CompressionCalls
from pandora_dagster.execution.fit.compression_contract import (
    CompressionContract,
    CompressionOutcome,
    StructuralCompressor,
    compress_in_process,
    verified_outcome,
)
from pandora_dagster.execution.fit.compression_log import EMBEDDED, CompressionLog

MAX_CACHED_TEXTS = 256
"""The settings say how long a compressed text is cached."""
_MAX_FACT_ROWS = 200
_MAX_QUERY_TOKENS = 60
"""A call on a piece carries the query, or the words of the user in it, up to this size."""


class SummarizationEngine:
    """Compresses texts and verifies their facts.

    `model` makes the calls, None on the embedded runtime; `meaning` is the recipe that judges what a model rewrote; `served` names the
    model of a layer; `cache_ttl_s` is the lifetime of a cached text in seconds.
    """

    def __init__(
        self,
        *,
        recipes: RecipeCatalog,
        counter: TokenMeasure,
        clock: Clock,
        log: CompressionLog,
        model: AttemptExecutor | None = None,
        meaning: str = "",
        runtime: str = EMBEDDED,
        layer: ModelLayer = ModelLayer.NERVES,
        served: Callable[[ModelLayer], str] = lambda layer: EMBEDDED,
        cache_ttl_s: int = 300,
    ) -> None:
        self._recipes, self._counter, self._clock, self._log = recipes, counter, clock, log
        self._model, self._meaning_recipe, self._runtime, self._layer, self._model_of_layer = model, meaning, runtime, layer, served
        self._cache_lifetime = timedelta(seconds=cache_ttl_s)
        self._cache: OrderedDict[Hashable, tuple[datetime, CompressionOutcome]] = OrderedDict()
        """Key -> expiry and outcome of a sound text."""
        self._structural_compressor: StructuralCompressor = compress_in_process

    @contextmanager
    def using_compressor(self, compressor: StructuralCompressor) -> Generator[None]:
        """Compress without a model by `compressor` while the context is open."""
        self._structural_compressor = compressor
        try:
            yield
        finally:
            self._structural_compressor = compress_in_process

    async def compress(self, request: CompressionRequest, *, site: CallSite) -> CompressionOutcome:
        """The text of `request` in at most `request.target` tokens, or a HALT with its reason; unchanged where it fits.

        A text that is compressed again, or contradicts its original, is compressed from the original. Credentials never reach the model.
        Raises CallFaultError where the model is down, and InputError for a target under 1.
        """
        tokens = self._counter.count(request.text)
        request = replace(request, content_type=content_type_of(request), original=request.original if request.is_repeated else "")
        contract = CompressionContract(request, self._counter)
        if request.target >= 1 and tokens <= request.target and (not request.original or self._is_faithful(contract)):
            return CompressionOutcome(request.text, tokens, tokens)
        if request.original:
            request = replace(request, text=request.original, original="")
            contract = CompressionContract(request, self._counter)
        loaded = self._recipes.compressor(contract.content_type)
        key = _cache_key(request, loaded.version)
        if (cached := self._cache.get(key)) and self._clock() < cached[0]:
            return cached[1]
        contract = replace(contract, request=replace(request, text=redact(request.text)))
        outcome = await self._compress_uncached(contract, tokens, loaded, site)
        if outcome.text is not None and not outcome.deferred and self._cache_lifetime:
            self._cache[key] = (self._clock() + self._cache_lifetime, outcome)
            if len(self._cache) > MAX_CACHED_TEXTS:
                self._cache.popitem(last=False)
        return outcome

    @staticmethod
    def _is_faithful(contract: CompressionContract) -> bool:
        """Whether the text changes no fact of its original, and invents none."""
        return contract.judge(contract.request.text).verification.no_fact_changed

    async def _compress_uncached(
        self, contract: CompressionContract, tokens: int, loaded: LoadedRecipe, site: CallSite
    ) -> CompressionOutcome:
        """Compress by the model where there is one, else structurally, and record the compression."""
        started, outcome, deferred = self._clock(), None, ""
        if self._model and contract.request.target > 0:
            calls = CompressionCalls(self._model)
            outcome = await self._compress_by_model(calls, contract, tokens, loaded, site)
            deferred = calls.deferred
        outcome = replace(outcome or await self._structural_compressor(contract, tokens), deferred=deferred)
        call_id = self._log.record_compression(outcome, contract.request, site=site, loaded=loaded, layer=self._layer, started=started)
        return replace(outcome, call_id=call_id)

    async def _compress_by_model(
        self, calls: CompressionCalls, contract: CompressionContract, tokens: int, loaded: LoadedRecipe, site: CallSite
    ) -> CompressionOutcome | None:
        """The text by calls of about 1,000 tokens (specification 000, section 20), in which the model selects units or rewrites, verified.

        None where no text of the model passed. Raises CallFaultError where the model is down.
        """
        query = short_query(contract.request.query, _MAX_QUERY_TOKENS, self._counter.count)
        call = CallRequest(recipe=loaded.path, query=query, site=site, layer=self._layer)
        is_selection = loaded.recipe.compression.mode == "select"
        if is_selection:
            from pandora_dagster.execution.fit.model_selection import ModelSelection

            pieces = await ModelSelection(calls, call, loaded, self._counter).compress(contract)
        else:
            from pandora_dagster.execution.fit.model_rewriting import ModelRewriting

            pieces = await ModelRewriting(calls, call, loaded, self._counter, self._meaning_recipe).compress(contract)
        judged = contract.judge(pieces.text) if pieces and pieces.text else None
        if pieces is None or judged is None or not (judged.fits if is_selection else judged.ok):
            return None
        runtime = f"{self._runtime}+{EMBEDDED}" if pieces.by_structure else self._runtime
        return replace(verified_outcome(judged, contract, tokens, runtime=runtime), unchecked=pieces.unchecked)

    def verify_whole(self, request: CompressionRequest, text: str, parts: Sequence[CompressionReport]) -> CompressionResult:
        """The result for `request` where compressions of its `parts` made `text`, which is verified as a whole.

        The text of `request` unchanged, with the reasons, where `text` is unsound.
        """
        contract = CompressionContract(request, self._counter)
        judged = contract.judge(text)
        if not judged.ok:
            return CompressionResult(request.text, halted=f"{request.name}: {'; '.join(judged.reasons)}")
        runtime = "+".join(dict.fromkeys(name for part in parts for name in part.runtime.split("+")))
        deferred = next((part.deferred for part in parts if part.deferred), "")
        outcome = verified_outcome(judged, contract, self._counter.count(request.text), runtime=runtime, deferred=deferred)
        return CompressionResult(text, self.report(request, outcome))

    def recipe(self, content_type: ContentType) -> LoadedRecipe:
        """The compression recipe of a content type."""
        return self._recipes.compressor(content_type)

    def report(self, request: CompressionRequest, outcome: CompressionOutcome) -> CompressionReport:
        """The figures, verdicts and texts of a successful compression of `request`; raises ValueError where nothing was compressed."""
        if outcome.text is None or outcome.verification is None:
            raise ValueError(f"{request.name}: nothing was compressed: expected a compressed text")
        content_type = content_type_of(request)
        loaded = self._recipes.compressor(content_type)
        return CompressionReport(
            document=request.name,
            content_type=content_type,
            recipe=loaded.name,
            recipe_version=loaded.version,
            prompt_hash=loaded.prompt_version,
            model=EMBEDDED if outcome.runtime == EMBEDDED else self._model_of_layer(self._layer),
            call_id=outcome.call_id,
            runtime=outcome.runtime,
            target=request.target,
            tokens_before=outcome.original_tokens,
            tokens_after=outcome.tokens,
            counts=outcome.verification.counts,
            facts=fact_rows(outcome.verification.verdicts),
            before=request.text,
            after=outcome.text,
            deferred=outcome.deferred,
            verdicts=outcome.gates,
        )


def fact_rows(verdicts: Sequence[Verdict]) -> tuple[dict[str, str], ...]:
    """The table of facts, at most 200 rows: those that were not kept first, critical ones before others."""
    by_importance = sorted(verdicts, key=lambda v: (v.outcome is Outcome.KEPT, v.fact is not None and v.fact.rank is not Rank.CRITICAL))
    return tuple(_fact_row(verdict) for verdict in by_importance[:_MAX_FACT_ROWS])


def _fact_row(verdict: Verdict) -> dict[str, str]:
    fact = verdict.fact
    return {
        "outcome": verdict.outcome.value,
        "rank": fact.rank.value if fact else "",
        "kind": fact.kind.value if fact else "",
        "fact": " ".join(verdict.text.split()),
        "reason": verdict.reason,
    }


def _cache_key(request: CompressionRequest, recipe_version: str) -> Hashable:
    """Everything that a compressed text depends on; the long texts as their hashes."""
    texts = (sha256(text.encode(errors="surrogatepass")).hexdigest() for text in (request.text, request.original))
    return (*texts, replace(request, text="", original="", recipe=""), recipe_version)
