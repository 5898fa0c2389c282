"""The running account of one call, and the record it becomes (000 section 27). Knows numbers and ids; writes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pandora_dagster.contracts.compression_results import CompressionReport, GateVerdict
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import image_tokens
from pandora_dagster.contracts.model_calls import CallRecord, CallRequest, CallTokens, ModelAnswer, Price, PromptPack, Usage
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.call.prompt_packs import PackContents
from pandora_dagster.execution.fit.compression_log import record_identity


@dataclass(slots=True)
class CallAccount:
    """What happened so far; the numbers are those of the last attempt, `retries`, `spent`, `queue_ms` and `cost` are of all of them."""

    call_id: str
    started: datetime
    request: CallRequest
    loaded: LoadedRecipe
    runtime: str
    layer: ModelLayer
    retries: int = 0
    escalated: bool = False
    budget: int = 0
    """Total of the attempt's token budget; 0 for the recipe's own."""
    model: str = ""
    prompt: int = 0
    input: int = 0
    output: int = 0
    served: int = 0
    cached: int = 0
    finish_reason: str = ""
    schema_valid: bool | None = None
    confidence: float | None = None
    answered: bool | None = None
    gates: dict[str, bool] = field(default_factory=dict[str, bool])
    left_out: tuple[str, ...] = ()
    tokens_saved: int = 0
    compressions: tuple[CompressionReport, ...] = ()
    pack_ref: str = ""
    answer_ref: str = ""
    request_ref: str = ""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    spent: Usage = field(default_factory=Usage)
    queue_ms: float = 0.0
    cost: float = 0.0
    routed: tuple[str, ...] = ()
    thinking: str = ""

    def begin_attempt(self, packable: PackContents, pack: PromptPack, pack_ref: str, model: str) -> None:
        """Begin an attempt: reset what the attempt before it recorded about its answer."""
        feedback_tokens = sum(part.tokens for part in pack.parts if part.kind == "feedback")
        self.layer, self.model, self.pack_ref, self.answer_ref = packable.layer, model, pack_ref, ""
        self.prompt, self.input = packable.prompt_tokens, packable.input_tokens + feedback_tokens
        self.left_out, self.tokens_saved = packable.left_out, packable.tokens_saved
        self.compressions = packable.compressions
        self.output, self.served, self.cached, self.finish_reason = 0, 0, 0, ""
        self.schema_valid, self.confidence, self.answered, self.thinking = None, None, None, ""
        self.gates.clear()
        self.sizes = part_sizes(pack)

    def add_usage(self, usage: Usage, queued_ms: float, price: Price | None) -> None:
        """What one attempt cost, failed or not, as the server counted it."""
        self.spent += usage
        self.queue_ms += queued_ms
        self.cost += price.cost(usage) if price else 0.0

    def record_answer(self, answer: ModelAnswer, answer_ref: str, output_tokens: int) -> None:
        """Take in a raw answer. The runtime in the record is the one that answered (DECISIONS 25)."""
        self.runtime, self.model, self.answer_ref = answer.runtime, answer.model or self.model, answer_ref
        self.output, self.finish_reason = output_tokens, answer.finish_reason
        self.served, self.cached = answer.usage.prompt, answer.usage.cached

    def record_verdict(self, verdict: GateVerdict) -> None:
        self.gates[verdict.gate] = verdict.passed

    def record(self, now: datetime, *, success: bool, error: str = "") -> CallRecord:
        """The one record of the call; latency is the whole call's, pauses and retries included."""
        return CallRecord(
            **record_identity(self.call_id, self.request.site, self.loaded, self.started),
            model_layer=self.layer,
            runtime=self.runtime,
            model=self.model,
            tokens=self._tokens(),
            latency_ms=round((now - self.started).total_seconds() * 1_000, 3),
            success=success,
            schema_valid=self.schema_valid,
            confidence=self.confidence,
            answered=self.answered,
            retries=self.retries,
            escalated=self.escalated,
            finish_reason=self.finish_reason,
            gates=dict(self.gates),
            error=error,
            left_out=self.left_out,
            compression_applied=self.tokens_saved > 0,
            compression_savings=self.tokens_saved,
            pack_ref=self.pack_ref,
            answer_ref=self.answer_ref,
            request_ref=self.request_ref,
            queue_ms=round(self.queue_ms, 3),
            spent=self.spent,
            cost=round(self.cost, 9),
            context_sizes=dict(self.sizes),
            routed=self.routed,
            thinking=self.thinking,
        )

    def intervention_fields(self) -> Mapping[str, str]:
        """What an intervention says about the call."""
        site = self.request.site
        return {
            **site.fields,
            "recipe": self.loaded.name,
            "recipe_version": self.loaded.version,
            "call_id": self.call_id,
            "pack_ref": self.pack_ref,
            "answer_ref": self.answer_ref,
            "revision": str(site.revision),
        }

    def _tokens(self) -> CallTokens:
        return CallTokens(
            prompt=self.prompt,
            input=self.input,
            output=self.output,
            served=self.served,
            cached=self.cached,
            total=self.prompt + self.input + self.output,
            budget=self.budget or self.loaded.recipe.token_budget.total,
        )


def part_sizes(pack: PromptPack) -> dict[str, int]:
    """Tokens of a pack by where they come from: each document under its name, everything else by its kind."""
    sizes: dict[str, int] = {}
    for part in pack.parts:
        source = part.name if part.kind == "document" else part.kind
        sizes[source] = sizes.get(source, 0) + part.tokens
    return sizes | ({"image": image_tokens(pack.images)} if pack.images else {})
