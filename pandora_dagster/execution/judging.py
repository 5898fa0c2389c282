"""Step 6 of 000 section 15: a raw answer becomes a parsed, judged one or a fault. Knows formats and gates; retries nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from jsonschema.protocols import Validator

from pandora_dagster.contracts.calls import GateVerdict, ModelAnswer, Source
from pandora_dagster.contracts.recipes import Recipe
from pandora_dagster.contracts.words import InterventionType, OutputFormat
from pandora_dagster.errors import BadAnswerError
from pandora_dagster.execution.faults import CallFault
from pandora_dagster.execution.gates import confidence_gate, evidence_gate, schema_gate
from pandora_dagster.text.answers import read_answer


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """One answer after its gates: usable where `fault` is None, though its confidence may still be too low."""

    text: str
    parsed: Any
    verdicts: tuple[GateVerdict, ...]
    fault: CallFault | None = None
    tagged: bool = False

    @property
    def thinking(self) -> str:
        """What a tagged answer says for itself alone."""
        return str(cast("dict[str, object]", self.parsed)["thinking"]) if self.tagged else ""

    @property
    def low_confidence(self) -> GateVerdict | None:
        """The failed confidence verdict of an otherwise good answer."""
        return next((v for v in self.verdicts if v.gate == "confidence_threshold" and not v.passed), None)


def judge_answer(answer: ModelAnswer, recipe: Recipe, validator: Validator | None, sources: Sequence[Source], *, intent: str = "") -> AnswerJudgement:
    """Parse, validate and gate an answer that came in time; `intent` is the request's."""
    in_time = GateVerdict("timeout_ms", True, value=answer.latency_ms)
    try:
        parsed = read_answer(answer.text, recipe.output_format, finish_reason=answer.finish_reason, mapping=_wants_mapping(recipe))
    except BadAnswerError as error:
        unreadable = GateVerdict("schema_validation", False, str(error))
        return AnswerJudgement(answer.text, None, (unreadable, in_time), _retryable_fault(InterventionType.SCHEMA_VIOLATION, str(error)))
    tagged = recipe.output_format is OutputFormat.TAGGED
    written: object = parsed["text"] if tagged else parsed
    verdicts = tuple(_verdicts(written, recipe, validator, sources, intent))
    text = written if isinstance(written, str) and recipe.output_format is not OutputFormat.JSON else answer.text
    return AnswerJudgement(text, parsed, (*verdicts, in_time), _first_fault(verdicts), tagged)


def _wants_mapping(recipe: Recipe) -> bool:
    return (recipe.output_schema or {}).get("type", "object") == "object"


def _verdicts(parsed: object, recipe: Recipe, validator: Validator | None, sources: Sequence[Source], intent: str) -> list[GateVerdict]:
    """The verdicts of the recipe's gates; an answer that breaks its schema is not judged further."""
    gates = recipe.quality_gates
    verdicts = [schema_gate(parsed, validator if gates.schema_validation else None, recipe)]
    if not verdicts[0].passed:
        return verdicts
    if gates.evidence_required:
        verdicts.append(evidence_gate(parsed, recipe, sources, intent=intent))
    if gates.confidence_threshold is not None:
        verdicts.append(confidence_gate(parsed, gates.confidence_threshold))
    return verdicts


def _first_fault(verdicts: Sequence[GateVerdict]) -> CallFault | None:
    for verdict in verdicts:
        if not verdict.passed and verdict.gate == "schema_validation":
            return _retryable_fault(InterventionType.SCHEMA_VIOLATION, verdict.reason)
        if not verdict.passed and verdict.gate == "evidence_required":
            return _retryable_fault(InterventionType.MISSING_EVIDENCE, verdict.reason)
    return None


def _retryable_fault(type: InterventionType, reason: str) -> CallFault:
    return CallFault(type, reason, retryable=True, feedback=reason)
