"""The quality gates (specification 000, section 14): verdicts on one answer, and the fault that a failed gate becomes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from pandora_dagster.compression.verification.claim_support import judge_claims
from pandora_dagster.compression.verification.statements import StatementKind, kind_of
from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType, OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer, Source
from pandora_dagster.contracts.recipe_governance import MIN_OUTCOMES, ConfidenceBin, ConfidenceCalibration
from pandora_dagster.contracts.recipe_schema import Recipe
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.documents.delimited_blocks import without_code_blocks
from pandora_dagster.errors import BadAnswerError
from pandora_dagster.execution.call.answer_parser import read_answer, strings
from pandora_dagster.execution.call.attempts import BY_HAND
from pandora_dagster.execution.call_faults import CallFault
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.language.no_result_phrases import is_no_result
from pandora_dagster.language.sentences import sentences

LABEL_LISTS = ("checked_citations", "evidence")
"""Array properties of an answer that hold citation labels."""
_MAX_SHOWN_FAULTS = 3
_MAX_FAULT_CHARACTERS = 160
_MAX_LABEL_CHARACTERS = 40
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_CITATION_OR_QUOTATION = re.compile(r"\[\d{1,4}\]|\"[^\"\n]*\"")
"""Citations and quotations, which alone answer nothing."""
_LABEL = re.compile(r"\[?(\d{1,4})\]?")
_MAX_SHOWN_CLAIMS = 5
"""Refused statements that a verdict names."""
_EVIDENCE_HINT = (
    "Store a source that says what is missing and resolve the intervention with --retry, ask for less, "
    "or give an answer of your own with --answer: it passes the same checks."
)
_SCHEMA_HINT = "Resolve the intervention with --retry, or with --answer and an answer of your own; a larger layer: pandora recipes assign."
_MAX_ROWS = 25
"""Statements that the table of a verdict has, refused ones first."""


def schema_gate(parsed: object, validator: Validator | None, recipe: Recipe) -> GateVerdict:
    """Whether the answer fits `output_schema`; with a confidence threshold, `confidence` must be a number from 0 to 1."""
    faults = list(_schema_faults(parsed, validator) if validator else ())
    if recipe.quality_gates.confidence_threshold is not None and confidence_of(parsed) is None:
        confidence = cast("dict[str, object]", parsed).get("confidence") if isinstance(parsed, dict) else None
        faults.append(f"$.confidence: {_shorten_message(repr(confidence))}: expected a number from 0 to 1")
    if not faults:
        return GateVerdict("schema_validation", True)
    remainder = f"; and {len(faults) - _MAX_SHOWN_FAULTS} more" if len(faults) > _MAX_SHOWN_FAULTS else ""
    return GateVerdict("schema_validation", False, "answer: " + "; ".join(dict.fromkeys(faults[:_MAX_SHOWN_FAULTS])) + remainder)


def _schema_faults(parsed: object, validator: Validator) -> Iterator[str]:
    for error in sorted(validator.iter_errors(cast("Any", parsed)), key=lambda e: e.json_path):
        yield f"{error.json_path}: {_shorten_message(error.message)}"


def _shorten_message(message: str) -> str:
    """Shorten a message of jsonschema, which quotes the whole faulty value, to its beginning and end."""
    half = _MAX_FAULT_CHARACTERS // 2
    return message if len(message) <= _MAX_FAULT_CHARACTERS else f"{message[:half]} ... {message[-half:]}"


def confidence_of(parsed: object) -> float | None:
    """The answer's own confidence, None where it is absent or no number from 0 to 1."""
    value = cast("dict[str, object]", parsed).get("confidence") if isinstance(parsed, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        return None
    return float(value)


def confidence_gate(parsed: object, threshold: float, calibration: ConfidenceCalibration | None) -> GateVerdict:
    """Whether answers that state this confidence turn out well often enough: the upper bound of their share reaches the threshold.

    Passes where too few outcomes are recorded: what a model states about itself decides nothing (decision 38,
    docs/decisions/38-confidence.md).
    """
    stated = confidence_of(parsed)
    outcomes = ConfidenceBin() if calibration is None or stated is None else calibration.bin_of(stated)
    if outcomes.calls < MIN_OUTCOMES:
        reason = f"states {stated}, which is not calibrated: {outcomes.calls} of {MIN_OUTCOMES} outcomes"
        return GateVerdict("confidence_threshold", True, reason, stated)
    low, high = outcomes.bounds
    reason = f"states {stated}: {outcomes.good} of {outcomes.calls} such answers turned out well ({low:.2f} to {high:.2f})"
    if high < threshold:
        reason += f": expected at least {threshold}"
    return GateVerdict("confidence_threshold", high >= threshold, reason, round(outcomes.good / outcomes.calls, 2))


def evidence_gate(
    parsed: object,
    recipe: Recipe,
    sources: Iterable[Source],
    *,
    intent: str = "",
    query: str = "",
    texts: Mapping[str, str] | None = None,
    has_model: bool = False,
) -> GateVerdict:
    """Whether every citation names a source of the call, and each value, date, name, code and quotation of a prose answer is cited and in
    the source that it cites. Doubtful statements pass: validation judges them.

    `texts` is the text under each label; a label that it does not have is not compared. `has_model`: a model answers, and says in
    validation what a statement is whose form leaves that open.
    """
    source_labels = {source.label for source in sources}
    cited = _cited_labels(parsed, recipe.output_schema)
    if unknown_labels := [label for label in cited if label not in source_labels]:
        expected = ", ".join(f"[{label}]" for label in sorted(source_labels, key=_label_order)) or "no source"
        return GateVerdict(
            "evidence_required", False, f"answer: cites {_format_labels(unknown_labels)}: expected only what was given: {expected}"
        )
    claims = judge_claims(str(parsed), texts or {}, query=query, is_greeting=intent == "greeting") if recipe.output_format.is_prose else ()
    if has_model:
        claims = tuple(replace(claim, outcome="doubtful") if claim.is_kind_open else claim for claim in claims)
    refused = [claim for claim in claims if claim.outcome == "refused"]
    others = [claim for claim in claims if claim.outcome != "refused"]
    rows = tuple(claim.row for claim in (*refused, *others)[:_MAX_ROWS])
    if refused:
        remainder = f"; and {len(refused) - _MAX_SHOWN_CLAIMS} more" if len(refused) > _MAX_SHOWN_CLAIMS else ""
        reasons = "; ".join(map(str, refused[:_MAX_SHOWN_CLAIMS]))
        counts = f"{len(refused)} of {len(claims)} statements of fact"
        return GateVerdict("evidence_required", False, f"answer: {counts} without support: {reasons}{remainder}", float(len(refused)), rows)
    return GateVerdict("evidence_required", True, value=float(len(claims) or len(cited)), rows=rows)


def states_only_absence(text: str) -> bool:
    """Whether a prose answer states only that nothing was found; citations and quotations do not count."""
    kinds = {kind_of(s) for s in sentences(_CITATION_OR_QUOTATION.sub("", text)) if any(map(str.isalnum, s))}
    return is_no_result(text) or (StatementKind.ABSENCE in kinds and StatementKind.FACT not in kinds)


def _cited_labels(parsed: object, schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The labels that an answer cites, each once: `[n]` in its strings outside code, and the entries of lists that hold labels."""
    labels = [label for text in strings(parsed) for label in cited_labels(_CODE_SPAN.sub("", without_code_blocks(text)))]
    if isinstance(parsed, dict):
        for name in _label_lists(schema or {}):
            listed = cast("dict[str, object]", parsed).get(name)
            labels += [label for value in cast("list[object]", listed) if (label := _list_label(value))] if isinstance(listed, list) else []
    return tuple(dict.fromkeys(labels))


def _label_lists(schema: Mapping[str, Any]) -> tuple[str, ...]:
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    return tuple(name for name in LABEL_LISTS if properties.get(name, {}).get("type") == "array")


def _list_label(value: object) -> str:
    """The label that an entry of a label list is; "" for a sentence or an object, whose `[n]` are found among the strings."""
    if isinstance(value, (dict, list)) or (cited_labels(str(value)) and not _LABEL.fullmatch(str(value).strip())):
        return ""
    match = _LABEL.fullmatch(str(value).strip())
    return match.group(1) if match else repr(value)[:_MAX_LABEL_CHARACTERS]


def _format_labels(labels: Iterable[str]) -> str:
    return ", ".join(f"[{label}]" for label in labels)


def _label_order(label: str) -> tuple[int, str]:
    return (int(label) if label.isdigit() else 0, label)


# Step 6 of a call: parse and judge a raw answer (specification 000, section 15).


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """One answer after its gates: usable where `fault` is None, although its confidence may be too low."""

    text: str
    parsed: Any
    verdicts: tuple[GateVerdict, ...]
    fault: CallFault | None = None

    @property
    def low_confidence(self) -> GateVerdict | None:
        """The failed verdict on confidence of an otherwise usable answer; None where the threshold is reached or does not act."""
        return next((v for v in self.verdicts if v.gate == "confidence_threshold" and not v.passed), None)

    def with_note(self, note: str) -> "AnswerJudgement":
        """The judgement with a note about what was not done beside the verdict on confidence."""
        low = self.low_confidence
        verdicts = tuple(replace(v, reason=f"{v.reason}; {note}") if v is low else v for v in self.verdicts)
        return replace(self, verdicts=verdicts)


def judge_answer(
    answer: ModelAnswer,
    recipe: Recipe,
    sources: Sequence[Source],
    *,
    intent: str = "",
    query: str = "",
    texts: Mapping[str, str] | None = None,
    calibration: ConfidenceCalibration | None = None,
) -> AnswerJudgement:
    """Parse and validate an answer and apply its gates; `intent` and `query` are the request's, `texts` the text of each source.

    `calibration`: the recorded outcomes of the version on the model that answered.
    """
    in_time = GateVerdict("timeout_ms", True, value=answer.latency_ms)
    try:
        parsed = read_answer(answer.text, recipe.output_format, finish_reason=answer.finish_reason, mapping=_wants_mapping(recipe))
    except BadAnswerError as error:
        schema_verdict = GateVerdict("schema_validation", False, str(error))
        return AnswerJudgement(
            answer.text, None, (schema_verdict, in_time), _retryable_fault(InterventionType.SCHEMA_VIOLATION, str(error), _SCHEMA_HINT)
        )
    has_model = answer.runtime not in (EMBEDDED, BY_HAND)
    evidence = partial(evidence_gate, sources=sources, intent=intent, query=query, texts=texts, has_model=has_model)
    verdicts = tuple(_gate_verdicts(parsed, recipe, evidence, calibration))
    text = parsed if isinstance(parsed, str) and recipe.output_format is not OutputFormat.JSON else answer.text
    return AnswerJudgement(text, parsed, (*verdicts, in_time), _first_fault(verdicts))


def _wants_mapping(recipe: Recipe) -> bool:
    """Whether the output schema describes an object."""
    return (recipe.output_schema or {}).get("type", "object") == "object"


def _gate_verdicts(
    parsed: object, recipe: Recipe, evidence: Callable[[object, Recipe], GateVerdict], calibration: ConfidenceCalibration | None
) -> list[GateVerdict]:
    """The verdicts of the recipe's gates; an answer that breaks its schema is not judged further."""
    gates, schema = recipe.quality_gates, recipe.output_schema
    validator = validator_for(schema, default=Draft202012Validator)(dict(schema)) if schema and gates.schema_validation else None
    verdicts = [schema_gate(parsed, validator, recipe)]
    if not verdicts[0].passed:
        return verdicts
    if gates.evidence_required:
        verdicts.append(evidence(parsed, recipe))
    if gates.confidence_threshold is not None:
        verdicts.append(confidence_gate(parsed, gates.confidence_threshold, calibration))
    return verdicts


def _first_fault(verdicts: Sequence[GateVerdict]) -> CallFault | None:
    for verdict in verdicts:
        if not verdict.passed and verdict.gate == "schema_validation":
            return _retryable_fault(InterventionType.SCHEMA_VIOLATION, verdict.reason, _SCHEMA_HINT)
        if not verdict.passed and verdict.gate == "evidence_required":
            return _retryable_fault(InterventionType.MISSING_EVIDENCE, verdict.reason, _EVIDENCE_HINT)
    return None


def _retryable_fault(type: InterventionType, reason: str, hint: str) -> CallFault:
    return CallFault(type, reason, retryable=True, feedback=reason, hint=hint)
