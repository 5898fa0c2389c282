"""One model call: request, prompt pack, answer, record, result, and the listener of a streamed answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from pandora_dagster.contracts.compression_results import GATE_NAME_MIGRATION, CompressionReport, GateVerdict
from pandora_dagster.contracts.enums import ModelLayer, OutputFormat, Priority
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.strict_model import StrictModel, removed_fields


class AnswerListener(Protocol):
    """Receives an answer while it is streamed. When the call returns, the text since the last withdrawal is the answer.

    A listener that raises stops the call, so for a call to finish although its client has disconnected, its listener must not raise.
    """

    def on_text(self, text: str) -> None:
        """The answer goes on with `text`; never empty."""
        ...

    def on_withdrawal(self, reason: str) -> None:
        """The text so far is withdrawn, and the next text replaces it. No effect before the first text."""
        ...


PartKind = Literal["policy", "role", "schema", "variables", "document", "query", "feedback"]
SHARED_KINDS: frozenset[PartKind] = frozenset({"policy", "role", "schema"})
"""Parts that all calls of a recipe share; they come first so that the server's prefix cache applies."""
_FRAME_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?(?:document|query|variables|feedback)(?![\w-]))", re.IGNORECASE)
"""The `<` of a tag that frames a part."""


@dataclass(frozen=True, slots=True)
class Item:
    """One selectable piece of a document. Higher `priority` is selected first; ties keep the given order."""

    text: str
    priority: float = 0.0
    name: str = ""


@dataclass(frozen=True, slots=True)
class InputDocument:
    """A document offered to a call under the name its recipe uses (`query_analysis.json`, `turn_summaries`).

    `text` is sent whole. With `items`, as many whole items as the input budget allows are selected by priority and sent in the
    given order; items that are left out are recorded (decision 2, docs/decisions/02-selection-then-compression.md). No text is ever
    truncated.
    """

    name: str
    text: str = ""
    items: tuple[Item, ...] = ()
    header: str = ""
    """Text before the items, e.g. a supplementary-source header of specification 004, section 13.1."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a citation `[n]`."""

    label: str
    """`1` for `[1]`."""
    path: str
    """Path below the user's folder or a logical id, e.g. `turns/turn_000811/context.md`."""
    description: str = ""
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallSite:
    """The caller of a call, for every record."""

    phase: str
    user: str
    session: str = ""
    turn: TurnKey | None = None
    revision: int = 0
    priority: Priority = Priority.INTERACTIVE

    @property
    def fields(self) -> dict[str, str]:
        """The caller as records and interventions name it."""
        return {"user_id": self.user, "session_id": self.session, "turn_id": self.turn.turn_id if self.turn else "", "phase": self.phase}


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call as a phase requests it."""

    recipe: str
    """`{category}/{name}`, or its stem: the recipe of `mode` is taken (specification 000, section 17)."""
    query: str
    """The words of the user, verbatim: always part of the pack (specification 000, section 6)."""
    site: CallSite
    documents: tuple[InputDocument, ...] = ()
    """Everything the recipe's `input_docs` may name, `context.md` among them (whole: the executor takes the sections)."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    sources: tuple[Source, ...] = ()
    """Sources that may be cited; the evidence gate resolves citations against them."""
    evidence: Mapping[str, str] = field(default_factory=dict[str, str])
    """Label -> text of the source, beside what sections 2 and 4 say under it; the evidence gate compares with both."""
    intent: str = ""
    mode: Literal["chat", "code"] = "chat"
    layer: ModelLayer | None = None
    """Replaces the recipe's own layer."""
    ambiguous: bool = False
    """Whether the query refers to something that its analysis could not resolve."""
    manual_answer: str = ""
    """A manual answer of a user in place of the model's: it passes the same gates, and is recorded as manual."""
    images: tuple[ImagePart, ...] = ()
    """Sent beside the text to a layer whose model reads images; any other layer refuses the call."""
    listener: AnswerListener | None = None
    """Receives the answer while it is streamed, if its format is prose for users: markdown or text."""


@dataclass(frozen=True, slots=True)
class Part:
    """One labelled piece of a prompt pack. `text` is its content; `framed_text` is its form in the message."""

    kind: PartKind
    name: str
    text: str
    tokens: int
    """Tokens of `framed_text`."""

    @property
    def framed_text(self) -> str:
        return frame_text(self.kind, self.name, self.text)


def frame_text(kind: PartKind, name: str, text: str) -> str:
    """Render a part for its message. Quoted text can neither close its frame nor open another (user text is never structure)."""
    if kind in SHARED_KINDS:
        return text
    opening = f'<document name="{name}">' if kind == "document" else f"<{kind}>"
    quoted = _FRAME_TAG.sub(r"<\\", text)
    return f"{opening}\n{quoted}\n</{kind}>"


@dataclass(frozen=True, slots=True)
class PromptPack:
    """The content that one call sends (specification 000, section 6): shared parts, changing ones, the query, and feedback.

    `system` and `user` are the two messages; a layer without chat template gets system, user and cue with blank lines between them.
    """

    call_id: str
    recipe: str
    recipe_version: str
    role: str
    layer: ModelLayer
    mode: str
    output_format: OutputFormat
    output_schema: Mapping[str, Any] | None
    temperature: float | None
    max_output_tokens: int
    parts: tuple[Part, ...]
    sources: tuple[Source, ...] = ()
    tools: tuple[str, ...] = ()
    priority: Priority = Priority.INTERACTIVE
    images: tuple[ImagePart, ...] = ()
    """Shown to the model after the text of `user`."""
    answer_cue: str = ""

    @property
    def system(self) -> str:
        """The shared prefix: policy, role prompt, IO schema."""
        return "\n\n".join(p.framed_text for p in self.parts if p.kind in SHARED_KINDS)

    @property
    def user(self) -> str:
        """Variables, documents, the original query, and on a retry the last error."""
        return "\n\n".join(p.framed_text for p in self.parts if p.kind not in SHARED_KINDS)

    @property
    def query(self) -> str:
        """The original query, verbatim."""
        return next((p.text for p in self.parts if p.kind == "query"), "")

    def document(self, name: str) -> str:
        """The text of a document part, "" where the pack does not have it."""
        return next((p.text for p in self.parts if p.kind == "document" and p.name == name), "")


class Usage(StrictModel):
    """Tokens as the runtime counted them."""

    prompt: int = 0
    output: int = 0
    cached: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(prompt=self.prompt + other.prompt, output=self.output + other.output, cached=self.cached + other.cached)


class Price(StrictModel):
    """The price of a million tokens of a layer, in the currency of the table."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cached: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Price of prompt tokens in the server's cache; absent: the price of others."""

    def cost(self, usage: Usage) -> float:
        """The cost of a call with this usage."""
        cached = self.input if self.cached is None else self.cached
        return ((usage.prompt - usage.cached) * self.input + usage.cached * cached + usage.output * self.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A raw answer. `runtime` names what made it: decision 25 (docs/decisions/25-the-embedded-runtime.md)."""

    text: str
    finish_reason: str
    usage: Usage
    runtime: str
    model: str
    latency_ms: float
    queued_ms: float = 0.0
    """Milliseconds in the server's admission queue; not part of the latency."""


class CallTokens(StrictModel):
    """Tokens of a call as planned (specification 000, section 27) and its budget; `served` and `cached` are the server's counts."""

    prompt: int = 0
    input: int = 0
    output: int = 0
    served: int = 0
    """Prompt and input tokens as the runtime counted them, beside the planned cl100k tokens; 0 where it did not."""
    cached: int = 0
    total: int = 0
    budget: int = 0


class CallRecord(StrictModel):
    """The record of one recipe execution (specification 000, section 27), failures included. One JSON line."""

    call_id: str
    timestamp: str
    recipe: str
    recipe_version: str
    prompt_version: str = ""
    model_layer: ModelLayer
    """The layer that answered."""
    recipe_layer: ModelLayer | None = None
    """The recipe's own layer, or the one assigned to it. A call that is routed, escalated or given a layer is answered by another one."""
    runtime: str
    model: str = ""
    user_id: str
    session_id: str = ""
    turn_id: str = ""
    revision: int = 0
    phase: str
    tokens: CallTokens
    latency_ms: float
    success: bool
    schema_valid: bool | None = None
    confidence: float | None = None
    answered: bool | None = None
    """For a prose answer to a call with sources: False where it says only that nothing was found."""
    retries: int = 0
    escalated: bool = False
    finish_reason: str = ""
    gates: Annotated[Mapping[str, bool], GATE_NAME_MIGRATION] = {}
    error: str = ""
    left_out: tuple[str, ...] = ()
    """Items that selection left out, by name."""
    compression_applied: bool = False
    compression_savings: int = 0
    pack_ref: str = ""
    answer_ref: str = ""
    request_ref: str = ""
    """Reference to the complete inputs of the call, for replay on another version."""
    queue_ms: float = 0.0
    """Milliseconds of the latency in the server's admission queue, over all attempts."""
    spent: Usage = Usage()
    """Tokens of all attempts as the server counted them, failed ones included."""
    cost: float = 0.0
    """Cost of all attempts, by the price table in `runtime.yaml`."""
    context_sizes: Mapping[str, int] = {}
    """Planned tokens of the pack by source: documents by name, everything else by kind (specification 002, section 8); 0 for a document
    that the recipe names and the call did not have."""
    routed: tuple[str, ...] = ()
    """Why the router chose the layer; empty where it did not choose."""

    _removed = removed_fields(thinking="")

    @property
    def grouping_layer(self) -> ModelLayer:
        """The layer by which calls are grouped for metrics."""
        return self.recipe_layer or self.model_layer

    @property
    def used_tokens(self) -> int:
        """Tokens of the call: as the server counted them, else as planned where an answer came without a count; 0 without an answer, and
        for the summary record of a compression, whose calls have their own records."""
        if "no_fact_changed" in self.gates:
            return 0
        return self.spent.prompt + self.spent.output or (self.tokens.total if self.success or self.tokens.output else 0)


EXPECTED_TURN_TOKENS = 70_000
"""Tokens that a turn may be expected to use (specification 000, section 11.2)."""


def token_alarm(tokens: int) -> str:
    """A warning where a turn used more than `EXPECTED_TURN_TOKENS`, else ""."""
    if tokens <= EXPECTED_TURN_TOKENS:
        return ""
    return f"{tokens:,} tokens in this turn: expected about {EXPECTED_TURN_TOKENS:,} (specification 000, section 11.2)"


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Usage of the calls of one revision of a turn so far."""

    tokens: int = 0
    cost: float = 0.0
    other_phase_tokens: int = 0
    """Tokens of phases other than the requested one."""
    ms: float = 0.0
    """Milliseconds of the calls, waiting and retries included."""
    calls: int = 0


@dataclass(frozen=True, slots=True)
class CallResult:
    """The validated result of a call."""

    text: str
    parsed: Any
    """dict for json and yaml, the text itself for markdown and text."""
    record: CallRecord
    verdicts: tuple[GateVerdict, ...]
    compressions: "tuple[CompressionReport, ...]" = ()
    """Compressions of documents that were too large for the call."""

    @property
    def passed(self) -> bool:
        return all(v.passed for v in self.verdicts)
