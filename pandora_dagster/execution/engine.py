"""The SummarizationEngine of 000 section 21.3: any text within a target, every fact judged, nothing unsound let through.

With a model it calls NERVES through the executor; on the embedded runtime the structural methods condense the whole text. Both pass
the same verification. It knows texts and recipes; which text needs it is decided elsewhere.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from pandora_dagster.compression.detection import detect_content_type
from pandora_dagster.compression.facts import Outcome, Rank, Verdict
from pandora_dagster.compression.verification import Verification
from pandora_dagster.contracts.calls import CallSite, GateVerdict
from pandora_dagster.contracts.compression import CompressionReport, Content, Shrunk
from pandora_dagster.contracts.ports import Clock, Cookbook, CountsTokens
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.contracts.words import ContentType, ModelLayer
from pandora_dagster.execution.compression_cache import CompressionCache
from pandora_dagster.execution.compression_log import EMBEDDED, CompressionLog, Done
from pandora_dagster.execution.ladder import Contract, Judged, compression_gates
from pandora_dagster.execution.model_compression import ModelCompression, Shortened
from pandora_dagster.text.credentials import redacted

_MOST_ROWS = 200


@dataclass(frozen=True)
class Outcomes:
    """What became of a text. `text` is None where it HALTed; `verification` is None where it fitted and is unchanged."""

    text: str | None
    tokens: int
    original_tokens: int
    verification: Verification | None = None
    halted: str = ""
    runtime: str = ""
    """Who shortened it; both names with a `+` where some pieces are a model's and others verbatim spans."""
    deferred: str = ""
    """Why a model was not asked for all that it would have shortened (DECISIONS 7)."""
    gates: tuple[GateVerdict, ...] = ()
    """The three checks of a text that was shortened."""
    call_id: str = ""
    """The record of the whole."""

    @cached_property
    def counts(self) -> dict[str, int]:
        return self.verification.counts if self.verification else {}


class SummarizationEngine:
    """Compresses documents while critical facts stay. `model` is None on the embedded runtime."""

    def __init__(
        self,
        *,
        cookbook: Cookbook,
        counter: CountsTokens,
        clock: Clock,
        log: CompressionLog,
        model: ModelCompression | None = None,
        runtime: str = EMBEDDED,
        layer: ModelLayer = ModelLayer.NERVES,
        served: Callable[[ModelLayer], str] = lambda layer: EMBEDDED,
        cache_ttl_s: int = 300,
    ) -> None:
        self._cookbook, self._counter, self._clock, self._log = cookbook, counter, clock, log
        self._model, self._runtime, self._layer, self._served = model, runtime, layer, served
        self._cache: CompressionCache[Outcomes] = CompressionCache(clock, cache_ttl_s)

    async def compress(
        self,
        content: str,
        content_type: ContentType | None,
        target_tokens: int,
        preserve_hints: Sequence[str] = (),
        *,
        site: CallSite,
        query: str = "",
        name: str = "",
        original: str = "",
    ) -> Outcomes:
        """`content` in at most `target_tokens` tokens, or a HALT with its reason; unchanged where it fits.

        `original` is the first original where `content` is a compression: its ledger stays the contract, and a text that fits but has
        lost a critical fact of it does not stay unchanged. Credentials never reach the model. Raises CallFaultError where the model is
        down, and InputError for a target under 1.
        """
        tokens = self._counter.count(content)
        kind = content_type or detect_content_type(name, original or content)
        contract = Contract(content, target_tokens, kind, self._counter, query, name, original if original != content else "")
        if (
            target_tokens >= 1
            and tokens <= target_tokens
            and not (contract.original and contract.judge(content).verification.lost_critical)
        ):
            return Outcomes(content, tokens, tokens)
        loaded = self._cookbook.compressor(kind)
        key = _key(content, kind, target_tokens, tuple(preserve_hints), query, name, original, loaded.version)
        if (known := self._cache.get(key)) is not None:
            return known
        contract = replace(contract, text=redacted(content))
        made = await self._made(contract, tokens, loaded, preserve_hints, site)
        if made.text is not None and not made.deferred:
            self._cache.put(key, made)
        return made

    async def _made(self, contract: Contract, tokens: int, loaded: LoadedRecipe, hints: Sequence[str], site: CallSite) -> Outcomes:
        started = self._clock()
        asked = await self._model.shortened(contract, loaded, hints, site) if self._model and contract.target > 0 else None
        made = self._by_model(asked, contract, tokens) if asked and asked.judged.ok else self._by_structure(contract, tokens)
        made = replace(made, deferred=asked.deferred if asked else "")
        call_id = self._log.done(
            Done(
                site,
                loaded,
                contract.content_type,
                started,
                tokens,
                made.tokens,
                made.runtime,
                self._layer,
                made.halted,
                made.deferred,
                made.gates,
            )
        )
        return replace(made, call_id=call_id)

    def _by_model(self, made: Shortened, contract: Contract, tokens: int) -> Outcomes:
        names = [name for name, pieces in ((self._runtime, made.by_model), (EMBEDDED, made.by_structure)) if pieces]
        return self._proven(made.judged, contract, tokens, runtime="+".join(names) or self._runtime)

    def _proven(self, judged: Judged, contract: Contract, tokens: int, *, runtime: str, deferred: str = "") -> Outcomes:
        after = self._counter.count(judged.text)
        gates = compression_gates(judged.verification, judged.check, after, contract.target)
        return Outcomes(judged.text, after, tokens, judged.verification, runtime=runtime, deferred=deferred, gates=gates)

    def _by_structure(self, contract: Contract, tokens: int) -> Outcomes:
        made = contract.spans()
        if made.text is None or made.check is None:
            return Outcomes(made.text, made.tokens, tokens, halted=made.halted or "", runtime=EMBEDDED)
        return self._proven(Judged(made.text, made.verification, made.check, ()), contract, tokens, runtime=EMBEDDED)

    def verified(self, content: Content, text: str, target: int, parts: Sequence[CompressionReport]) -> Shrunk:
        """`content` shortened to `text` by compressions of its `parts`, judged as a whole; unchanged, with the reasons, where unsound."""
        kind = content.content_type or detect_content_type(content.name, content.text)
        contract = Contract(content.text, target, kind, self._counter, name=content.name, original=content.original)
        judged = contract.judge(text)
        if not judged.ok:
            return Shrunk(content.text, halted=f"{content.name}: {'; '.join(judged.reasons)}")
        runtime = "+".join(dict.fromkeys(name for part in parts for name in part.runtime.split("+")))
        deferred = next((part.deferred for part in parts if part.deferred), "")
        made = self._proven(judged, contract, self._counter.count(content.text), runtime=runtime, deferred=deferred)
        return Shrunk(text, self.report(content.text, made, document=content.name, content_type=kind, target=target))

    def recipe(self, content_type: ContentType) -> LoadedRecipe:
        """The compression recipe of a content type."""
        return self._cookbook.compressor(content_type)

    def report(self, before: str, made: Outcomes, *, document: str, content_type: ContentType | None, target: int) -> CompressionReport:
        """What a compression that went through shows to people."""
        if made.text is None or made.verification is None:
            raise ValueError(f"{document}: nothing was compressed: expected a text that was")
        kind = content_type or detect_content_type(document, before)
        loaded = self._cookbook.compressor(kind)
        return CompressionReport(
            document=document,
            content_type=kind,
            recipe=loaded.name,
            recipe_version=loaded.version,
            prompt_hash=loaded.prompt_version,
            model=EMBEDDED if made.runtime == EMBEDDED else self._served(self._layer),
            call_id=made.call_id,
            runtime=made.runtime,
            target=target,
            tokens_before=made.original_tokens,
            tokens_after=made.tokens,
            counts=made.counts,
            facts=rows(made.verification.verdicts),
            before=before,
            after=made.text,
            deferred=made.deferred,
            verdicts=made.gates,
        )


def rows(verdicts: Sequence[Verdict]) -> tuple[dict[str, str], ...]:
    """The table of facts: what did not stay first, critical before the rest; at most 200 rows."""
    ordered = sorted(verdicts, key=lambda v: (v.outcome is Outcome.KEPT, v.fact is not None and v.fact.rank is not Rank.CRITICAL))
    return tuple(_row(verdict) for verdict in ordered[:_MOST_ROWS])


def _row(verdict: Verdict) -> dict[str, str]:
    fact = verdict.fact
    return {
        "outcome": verdict.outcome.value,
        "rank": fact.rank.value if fact else "",
        "kind": fact.kind.value if fact else "",
        "fact": " ".join(verdict.text.split()),
        "reason": verdict.reason,
    }


def _key(content: str, *rest: Hashable) -> Hashable:
    return (sha256(content.encode(errors="surrogatepass")).hexdigest(), *rest)
