"""Replay of logged calls on another version, layer or runtime, compared with the logged answers, to judge a change before promotion.

One batch of inputs is in memory at a time, however long the log is.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.recipe_schema import CallCase
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import BadAnswerError, DocumentError
from pandora_dagster.execution.call.answer_parser import read_answer
from pandora_dagster.governance.call_metrics import Share
from pandora_dagster.governance.dry_run import DryRunExecutor, DryRunResult

T = TypeVar("T")
_MAX_EXAMPLES = 20
"""Changed answers that are shown; all are counted."""
_CALLS_READ_TOGETHER = 32
"""Calls whose inputs are read before the first of them is made: reading them together takes a third of the time."""
_MAX_ANSWER_CHARACTERS = 400
"""Characters of an answer that are shown."""
_MISSING = object()
WHOLE_ANSWER = "answer"
"""Field name of an answer without fields."""


@dataclass(slots=True)
class ReplayMetrics:
    """Sums over the logged calls, or over the replayed ones."""

    calls: int = 0
    passed: Share = field(default_factory=Share)
    schema_valid: Share = field(default_factory=Share)
    evidence_held: Share = field(default_factory=Share)
    retries: int = 0
    tokens: int = 0
    latency_ms: float = 0.0
    confidences: int = 0
    confidence: float = 0.0
    layers: Counter[str] = field(default_factory=Counter[str])
    """Layer that answered -> number of calls."""
    runtimes: Counter[str] = field(default_factory=Counter[str])
    """Runtime that answered -> number of calls."""

    def add(self, record: CallRecord) -> None:
        self.calls += 1
        self.layers[record.model_layer.value] += 1
        self.runtimes[record.runtime] += 1
        self.passed.add(record.success)
        if record.schema_valid is not None:
            self.schema_valid.add(record.schema_valid)
        if (passed := record.gates.get("evidence_required")) is not None:
            self.evidence_held.add(passed)
        self.retries += record.retries
        self.tokens += record.tokens.total
        self.latency_ms += record.latency_ms
        if record.confidence is not None:
            self.confidences += 1
            self.confidence += record.confidence

    def row(self) -> dict[str, float | int | None]:
        """The metrics by name; None where nothing was measured."""
        return {
            "calls": self.calls,
            "passed": _ratio(self.passed.good, self.calls),
            "schema_valid": self.schema_valid.value,
            "evidence_held": self.evidence_held.value,
            "mean_confidence": _ratio(self.confidence, self.confidences),
            "retries": self.retries,
            "tokens_a_call": _ratio(self.tokens, self.calls),
            "latency_ms_a_call": _ratio(self.latency_ms, self.calls),
        }


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """One call whose answer has changed."""

    call_id: str
    turn: str
    fields: tuple[str, ...]
    before: str
    after: str


@dataclass(slots=True)
class ReplayResult:
    """The result of a replay."""

    before: ReplayMetrics = field(default_factory=ReplayMetrics)
    after: ReplayMetrics = field(default_factory=ReplayMetrics)
    same: int = 0
    changed: Counter[str] = field(default_factory=Counter[str])
    """Field of the answer -> number of calls in which it changed."""
    examples: list[ChangedAnswer] = field(default_factory=list[ChangedAnswer])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Why logged calls could not be replayed -> number of calls."""

    @property
    def calls(self) -> int:
        return self.after.calls


async def replay_calls(
    records: Iterable[CallRecord],
    executor: DryRunExecutor,
    read_vault: Callable[[str], str],
    *,
    layer: ModelLayer | None = None,
    concurrency: int = 1,
) -> ReplayResult:
    """Replay each logged call on the selected version, at most `concurrency` at a time. `read_vault` reads the text of a reference."""
    result = ReplayResult()
    for batch in _batches(records, _CALLS_READ_TOGETHER):
        replayable_calls = [(record, case) for record in batch if (case := _call_case(record, read_vault, result))]
        for group in _batches(replayable_calls, concurrency):
            calls = [executor.run_case(case, user=record.user_id, layer=layer) for record, case in group]
            outcomes = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
            for (record, _), replayed in zip(group, outcomes, strict=True):
                logged_answer = replayed.raw if _is_unchanged(record, replayed) else _logged_answer(record, read_vault)
                _compare(record, replayed, logged_answer, result)
    return result


def _call_case(record: CallRecord, read_vault: Callable[[str], str], result: ReplayResult) -> CallCase | None:
    """The inputs of a call; None where they are missing, which is counted."""
    if not record.request_ref:
        result.left_out["its inputs were not stored"] += 1
        return None
    try:
        return CallCase.model_validate_json(read_vault(record.request_ref))
    except DocumentError as error:
        result.left_out["its inputs were deleted: their retention is over" if error.missing else "its inputs are damaged"] += 1
    except ValidationError:
        result.left_out["its inputs are damaged"] += 1
    return None


def _is_unchanged(record: CallRecord, replayed: DryRunResult) -> bool:
    """Whether the answer equals the logged one, by its hash in the vault's reference, so that the text need not be read."""
    answer_hash = replayed.record.answer_ref if replayed.record else ""
    return bool(answer_hash) and record.answer_ref.endswith(f"/{answer_hash}")


def _logged_answer(record: CallRecord, read_vault: Callable[[str], str]) -> str:
    """The logged answer, "" where it is missing: then the answer counts as changed."""
    try:
        return read_vault(record.answer_ref) if record.answer_ref else ""
    except DocumentError:
        return ""


def _compare(record: CallRecord, replayed: DryRunResult, logged_answer: str, result: ReplayResult) -> None:
    result.before.add(record)
    if replayed.record:
        result.after.add(replayed.record)
    else:
        result.after.calls += 1
    replayed_answer = replayed.raw if replayed.raw == logged_answer else redact(replayed.raw)
    if replayed_answer == logged_answer and replayed.record is not None and replayed.record.success == record.success:
        result.same += 1
        return
    fields = tuple(_changed_fields(logged_answer, replayed_answer)) or (WHOLE_ANSWER,)
    result.changed.update(fields)
    if len(result.examples) < _MAX_EXAMPLES:
        turn = f"{record.user_id}:{record.turn_id}" if record.turn_id else ""
        before, after = _shorten(logged_answer or record.error), _shorten(replayed_answer or replayed.failure)
        result.examples.append(ChangedAnswer(record.call_id, turn, fields, before, after))


def _changed_fields(before: str, after: str) -> Iterator[str]:
    """Yield the names of the fields in which two JSON answers differ; nothing for texts."""
    fields_before, fields_after = _parse_object(before), _parse_object(after)
    if fields_before is None or fields_after is None:
        return
    for name in {**fields_before, **fields_after}:
        if fields_before.get(name, _MISSING) != fields_after.get(name, _MISSING):
            yield name


def _parse_object(text: str) -> Mapping[str, Any] | None:
    """Parse a JSON object, also one in an answer that needs repair; None for any other text."""
    try:
        value = parse_json(text)
    except PlainDataError:
        try:
            value = read_answer(text, OutputFormat.JSON, finish_reason="stop", mapping=True) if text.lstrip().startswith("{") else None
        except BadAnswerError:
            return None
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_ANSWER_CHARACTERS else f"{text[: _MAX_ANSWER_CHARACTERS - 3]}..."
