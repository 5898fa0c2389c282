"""Replay of logged calls on another version, layer or runtime, compared with the logged answers, to judge a change before promotion.

One batch of inputs is in memory at a time, however long the log is.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.recipe_schema import CallCase
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import BadAnswerError, DocumentError
from pandora_dagster.execution.call.answer_parser import read_answer
from pandora_dagster.governance.call_metrics import Share
from pandora_dagster.governance.dry_run import DryRunExecutor, DryRunResult

T = TypeVar("T")
_EXAMPLES = 20
"""Changed answers that are shown; all are counted."""
_READ_AHEAD = 32
"""Inputs that are read before their calls are made: reading them together takes a third of the time."""
_SHOWN = 400
"""Characters of an answer that are shown."""
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

    def add(self, record: CallRecord) -> None:
        self.calls += 1
        self.layers[record.model_layer.value] += 1
        self.passed.add(record.success)
        if record.schema_valid is not None:
            self.schema_valid.add(record.schema_valid)
        if (held := record.gates.get("evidence_required")) is not None:
            self.evidence_held.add(held)
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
            "passed": _share(self.passed.good, self.calls),
            "schema_valid": self.schema_valid.value,
            "evidence_held": self.evidence_held.value,
            "mean_confidence": _share(self.confidence, self.confidences),
            "retries": self.retries,
            "tokens_a_call": _share(self.tokens, self.calls),
            "latency_ms_a_call": _share(self.latency_ms, self.calls),
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
    read: Callable[[str], str],
    *,
    layer: ModelLayer | None = None,
    at_once: int = 1,
) -> ReplayResult:
    """Replay each logged call on the selected version, at most `at_once` at a time. `read` returns the vault's text of a reference."""
    result = ReplayResult()
    for batch in _batches(records, _READ_AHEAD):
        ready = [(record, case) for record in batch if (case := _call_case(record, read, result))]
        for group in _batches(ready, at_once):
            calls = [executor.run_case(case, user=record.user_id, layer=layer) for record, case in group]
            outcomes = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
            for (record, _), done in zip(group, outcomes, strict=True):
                _compare(record, done, done.raw if _is_unchanged(record, done) else _logged_answer(record, read), result)
    return result


def _call_case(record: CallRecord, read: Callable[[str], str], result: ReplayResult) -> CallCase | None:
    """The inputs of a call; None where they are missing, which is counted."""
    if not record.request_ref:
        result.left_out["its inputs were not stored"] += 1
        return None
    try:
        return CallCase.model_validate_json(read(record.request_ref))
    except DocumentError as error:
        result.left_out["its inputs were deleted: their retention is over" if error.missing else "its inputs are damaged"] += 1
    except ValidationError:
        result.left_out["its inputs are damaged"] += 1
    return None


def _is_unchanged(record: CallRecord, done: DryRunResult) -> bool:
    """Whether the answer equals the logged one, by its hash in the vault's reference, so that the text need not be read."""
    answer_hash = done.record.answer_ref if done.record else ""
    return bool(answer_hash) and record.answer_ref.endswith(f"/{answer_hash}")


def _logged_answer(record: CallRecord, read: Callable[[str], str]) -> str:
    """The logged answer, "" where it is missing: then the answer counts as changed."""
    try:
        return read(record.answer_ref) if record.answer_ref else ""
    except DocumentError:
        return ""


def _compare(record: CallRecord, done: DryRunResult, logged: str, result: ReplayResult) -> None:
    result.before.add(record)
    if done.record:
        result.after.add(done.record)
    else:
        result.after.calls += 1
    now = done.raw if done.raw == logged else redact(done.raw)
    if now == logged and done.record is not None and done.record.success == record.success:
        result.same += 1
        return
    fields = tuple(_changed_fields(logged, now)) or (WHOLE_ANSWER,)
    result.changed.update(fields)
    if len(result.examples) < _EXAMPLES:
        turn = f"{record.user_id}:{record.turn_id}" if record.turn_id else ""
        result.examples.append(ChangedAnswer(record.call_id, turn, fields, _short(logged or record.error), _short(now or done.failure)))


def _changed_fields(before: str, after: str) -> Iterator[str]:
    """Names of the fields in which two JSON answers differ; nothing for texts."""
    one, other = _parsed(before), _parsed(after)
    if one is None or other is None:
        return
    yield from (name for name in {**one, **other} if one.get(name) != other.get(name) or (name in one) != (name in other))


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = read_answer(text, OutputFormat.JSON, finish_reason="stop", mapping=True) if text.lstrip().startswith("{") else None
        except BadAnswerError:
            return None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
