"""The running account of one call, from which its record is made (specification 000, section 27)."""

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
    """What happened in a call so far: `retries`, `spent`, `queue_ms` and `cost` of all attempts, all else of the last one."""

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
    context_sizes: dict[str, int] = field(default_factory=dict[str, int])
    spent: Usage = field(default_factory=Usage)
    queue_ms: float = 0.0
    cost: float = 0.0
    routed: tuple[str, ...] = ()

    def begin_attempt(self, contents: PackContents, pack: PromptPack, pack_ref: str, model: str) -> None:
        """Begin an attempt: reset what the attempt before it recorded about its answer."""
        feedback_tokens = sum(part.tokens for part in pack.parts if part.kind == "feedback")
        self.layer, self.model, self.pack_ref, self.answer_ref = contents.layer, model, pack_ref, ""
        self.prompt, self.input = contents.prompt_tokens, contents.input_tokens + feedback_tokens
        self.left_out, self.tokens_saved = contents.left_out, contents.tokens_saved
        self.compressions = contents.compressions
        self.output, self.served, self.cached, self.finish_reason = 0, 0, 0, ""
        self.schema_valid, self.confidence, self.answered = None, None, None
        self.gates.clear()
        absent = dict.fromkeys(self.loaded.recipe.input_docs, 0)  # a document that the recipe names and the call does not have
        self.context_sizes = absent | part_sizes(pack)

    def add_usage(self, usage: Usage, queued_ms: float, price: Price | None) -> None:
        """Add the usage of one attempt, failed or not, as the server counted it."""
        self.spent += usage
        self.queue_ms += queued_ms
        self.cost += price.cost(usage) if price else 0.0

    def record_answer(self, answer: ModelAnswer, answer_ref: str, output_tokens: int) -> None:
        """Record a raw answer; the runtime of the record is the one that answered.

        See decision 25: docs/decisions/25-the-embedded-runtime.md.
        """
        self.runtime, self.model, self.answer_ref = answer.runtime, answer.model or self.model, answer_ref
        self.output, self.finish_reason = output_tokens, answer.finish_reason
        self.served, self.cached = answer.usage.prompt, answer.usage.cached

    def record_verdict(self, verdict: GateVerdict) -> None:
        self.gates[verdict.gate] = verdict.passed

    def record(self, now: datetime, *, success: bool, error: str = "") -> CallRecord:
        """The record of the call; its latency includes pauses and retries."""
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
            context_sizes=dict(self.context_sizes),
            routed=self.routed,
        )

    def intervention_fields(self) -> Mapping[str, str]:
        """The fields of an intervention that identify the call."""
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
    """Tokens of a pack by source: each document under its name, every other part under its kind."""
    sizes: dict[str, int] = {}
    for part in pack.parts:
        source = part.name if part.kind == "document" else part.kind
        sizes[source] = sizes.get(source, 0) + part.tokens
    return sizes | ({"image": image_tokens(pack.images)} if pack.images else {})
