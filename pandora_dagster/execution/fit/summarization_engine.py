"""The SummarizationEngine of 000 section 21.3: one text within a target, by a model or by whole units, each fact with its verdict.

With a model it calls NERVES through the executor; on the embedded runtime the structural methods condense the whole text. Both pass
the same verification. It knows texts and recipes; which text needs it is decided elsewhere.
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
from pandora_dagster.execution.fit.model_rewriting import ModelRewriting
from pandora_dagster.execution.fit.model_selection import ModelSelection

MAX_CACHED = 256
"""Compressed texts in memory, for the time that settings give them."""
_MAX_ROWS = 200
_LONGEST_QUERY = 60
"""Tokens of a query that a call on a piece carries; a longer one is a text of its own."""


class SummarizationEngine:
    """Compresses documents while critical facts stay. `model` is None on the embedded runtime; `meaning` is the recipe that judges what
    a model rewrote."""

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
        self._model, self._meaning, self._runtime, self._layer, self._served = model, meaning, runtime, layer, served
        self._lifetime = timedelta(seconds=cache_ttl_s)
        self._cache: OrderedDict[Hashable, tuple[datetime, CompressionOutcome]] = OrderedDict()
        """Key -> until when the outcome holds, and the outcome; only sound texts."""
        self._structure: StructuralCompressor = compress_in_process

    @contextmanager
    def using_compressor(self, structure: StructuralCompressor) -> Generator[None]:
        """What shortens without a model is `structure`, for as long as this lasts."""
        self._structure = structure
        try:
            yield
        finally:
            self._structure = compress_in_process

    async def compress(self, request: CompressionRequest, *, site: CallSite) -> CompressionOutcome:
        """The text of `request` in at most `request.target` tokens, or a HALT with its reason; unchanged where it fits.

        A repeated compression, and a text that contradicts its original, are made from the original again.
        Credentials never reach the model. Raises CallFaultError where the model is down, and InputError for a target under 1.
        """
        tokens = self._counter.count(request.text)
        request = replace(request, content_type=content_type_of(request), original=request.original if request.is_repeated else "")
        contract = CompressionContract(request, self._counter)
        if request.target >= 1 and tokens <= request.target and (not request.original or self._is_true(contract)):
            return CompressionOutcome(request.text, tokens, tokens)
        if request.original:
            request = replace(request, text=request.original, original="")
            contract = CompressionContract(request, self._counter)
        loaded = self._recipes.compressor(contract.content_type)
        key = _cache_key(request, loaded.version)
        if (known := self._cache.get(key)) and self._clock() < known[0]:
            return known[1]
        contract = replace(contract, request=replace(request, text=redact(request.text)))
        made = await self._compress_uncached(contract, tokens, loaded, site)
        if made.text is not None and not made.deferred and self._lifetime:
            self._cache[key] = (self._clock() + self._lifetime, made)
            if len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        return made

    @staticmethod
    def _is_true(contract: CompressionContract) -> bool:
        """Whether the text changes and invents nothing of its original."""
        return contract.judge(contract.request.text).verification.no_fact_changed

    async def _compress_uncached(
        self, contract: CompressionContract, tokens: int, loaded: LoadedRecipe, site: CallSite
    ) -> CompressionOutcome:
        started, made, deferred = self._clock(), None, ""
        if self._model and contract.request.target > 0:
            calls = CompressionCalls(self._model)
            made = await self._compress_by_model(calls, contract, tokens, loaded, site)
            deferred = calls.deferred
        made = replace(made or await self._structure(contract, tokens), deferred=deferred)
        call_id = self._log.record_compression(made, contract.content_type, site=site, loaded=loaded, layer=self._layer, started=started)
        return replace(made, call_id=call_id)

    async def _compress_by_model(
        self, calls: CompressionCalls, contract: CompressionContract, tokens: int, loaded: LoadedRecipe, site: CallSite
    ) -> CompressionOutcome | None:
        """The whole in calls of about 1,000 tokens (000 section 20), in which the model chooses units or rewrites, verified; None where no
        text of its passed. Raises CallFaultError where the model is down."""
        query = contract.request.query
        query = query if self._counter.count(query) <= _LONGEST_QUERY else ""
        call = CallRequest(recipe=loaded.path, query=query, site=site, layer=self._layer)
        is_selection = loaded.recipe.compression.mode == "select"
        if is_selection:
            pieces = await ModelSelection(calls, call, loaded, self._counter).compress(contract)
        else:
            pieces = await ModelRewriting(calls, call, loaded, self._counter, self._meaning).compress(contract)
        judged = contract.judge(pieces.text) if pieces and pieces.text else None
        if pieces is None or judged is None or not (judged.fits if is_selection else judged.ok):
            return None
        runtime = f"{self._runtime}+{EMBEDDED}" if pieces.by_structure else self._runtime
        return replace(verified_outcome(judged, contract, tokens, runtime=runtime), unchecked=pieces.unchecked)

    def verify_whole(self, request: CompressionRequest, text: str, parts: Sequence[CompressionReport]) -> CompressionResult:
        """The text of `request`, shortened to `text` by compressions of its `parts` and verified as a whole; unchanged, with the reasons,
        where `text` is unsound."""
        contract = CompressionContract(request, self._counter)
        judged = contract.judge(text)
        if not judged.ok:
            return CompressionResult(request.text, halted=f"{request.name}: {'; '.join(judged.reasons)}")
        runtime = "+".join(dict.fromkeys(name for part in parts for name in part.runtime.split("+")))
        deferred = next((part.deferred for part in parts if part.deferred), "")
        made = verified_outcome(judged, contract, self._counter.count(request.text), runtime=runtime, deferred=deferred)
        return CompressionResult(text, self.report(request, made))

    def recipe(self, content_type: ContentType) -> LoadedRecipe:
        """The compression recipe of a content type."""
        return self._recipes.compressor(content_type)

    def report(self, request: CompressionRequest, made: CompressionOutcome) -> CompressionReport:
        """The figures, verdicts and texts of a successful compression of `request`."""
        if made.text is None or made.verification is None:
            raise ValueError(f"{request.name}: nothing was compressed: expected a compressed text")
        kind = content_type_of(request)
        loaded = self._recipes.compressor(kind)
        return CompressionReport(
            document=request.name,
            content_type=kind,
            recipe=loaded.name,
            recipe_version=loaded.version,
            prompt_hash=loaded.prompt_version,
            model=EMBEDDED if made.runtime == EMBEDDED else self._served(self._layer),
            call_id=made.call_id,
            runtime=made.runtime,
            target=request.target,
            tokens_before=made.original_tokens,
            tokens_after=made.tokens,
            counts=made.verification.counts,
            facts=fact_rows(made.verification.verdicts),
            before=request.text,
            after=made.text,
            deferred=made.deferred,
            verdicts=made.gates,
        )


def fact_rows(verdicts: Sequence[Verdict]) -> tuple[dict[str, str], ...]:
    """The table of facts: what did not stay first, critical before the rest; at most 200 rows."""
    ordered = sorted(verdicts, key=lambda v: (v.outcome is Outcome.KEPT, v.fact is not None and v.fact.rank is not Rank.CRITICAL))
    return tuple(_fact_row(verdict) for verdict in ordered[:_MAX_ROWS])


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
    return (*texts, replace(request, text="", original=""), recipe_version)
