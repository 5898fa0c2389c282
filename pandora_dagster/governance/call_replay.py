"""Logged calls made again on another version, layer or runtime, beside what was logged: how a change is judged before it counts.

Knows records, kept inputs and answers, and a bench; holds one batch of inputs at a time, however long the log is.
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
from pandora_dagster.documents.model_output.answer_parser import read_answer
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import BadAnswerError, DocumentError
from pandora_dagster.governance.dry_run import DryRunExecutor, DryRunResult

T = TypeVar("T")
_EXAMPLES = 20
"""Calls that are shown beside each other; all are counted."""
_READ_AHEAD = 32
"""Inputs that are read before their calls are made: one after the other they take a third of the time that they take between calls."""
_SHOWN = 400
"""Characters of an answer that are shown."""
WHOLE_ANSWER = "answer"
"""Stands for the field of an answer that has none."""


@dataclass(slots=True)
class ReplayMetrics:
    """Sums over the calls of one side."""

    calls: int = 0
    passed: int = 0
    schema_valid: int = 0
    schema_checked: int = 0
    evidence_held: int = 0
    evidence_checked: int = 0
    retries: int = 0
    tokens: int = 0
    latency_ms: float = 0.0
    confidences: int = 0
    confidence: float = 0.0
    layers: Counter[str] = field(default_factory=Counter[str])
    """Who answered -> how many calls."""

    def add(self, record: CallRecord) -> None:
        self.calls += 1
        self.layers[record.model_layer.value] += 1
        self.passed += record.success
        self.schema_checked += record.schema_valid is not None
        self.schema_valid += record.schema_valid is True
        held = record.gates.get("evidence_required")
        self.evidence_checked += held is not None
        self.evidence_held += held is True
        self.retries += record.retries
        self.tokens += record.tokens.total
        self.latency_ms += record.latency_ms
        if record.confidence is not None:
            self.confidences += 1
            self.confidence += record.confidence

    def row(self) -> dict[str, float | int | None]:
        """What is put beside the other side; None where nothing of it was measured."""
        return {
            "calls": self.calls,
            "passed": _share(self.passed, self.calls),
            "schema_valid": _share(self.schema_valid, self.schema_checked),
            "evidence_held": _share(self.evidence_held, self.evidence_checked),
            "mean_confidence": _share(self.confidence, self.confidences),
            "retries": self.retries,
            "tokens_a_call": _share(self.tokens, self.calls),
            "latency_ms_a_call": _share(self.latency_ms, self.calls),
        }


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """One call whose answer is another now."""

    call_id: str
    turn: str
    fields: tuple[str, ...]
    before: str
    after: str


@dataclass(slots=True)
class ReplayResult:
    """What a replay came to."""

    before: ReplayMetrics = field(default_factory=ReplayMetrics)
    after: ReplayMetrics = field(default_factory=ReplayMetrics)
    same: int = 0
    changed: Counter[str] = field(default_factory=Counter[str])
    """Field of the answer -> in how many calls it is another."""
    examples: list[ChangedAnswer] = field(default_factory=list[ChangedAnswer])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Why logged calls could not be made again -> how many."""

    @property
    def calls(self) -> int:
        return self.after.calls


async def replay_calls(
    records: Iterable[CallRecord],
    bench: DryRunExecutor,
    read: Callable[[str], str],
    *,
    layer: ModelLayer | None = None,
    at_once: int = 1,
    on_call: Callable[[ReplayResult], None] = lambda so_far: None,
) -> ReplayResult:
    """Each logged call again on the bench's version, at most `at_once` at a time. `read` gives what the vault keeps under a reference."""
    told = ReplayResult()
    for batch in _batches(records, _READ_AHEAD):
        ready = [(record, case) for record in batch if (case := _call_case(record, read, told))]
        for some in _batches(ready, at_once):
            calls = [bench.run_case(case, user=record.user_id, layer=layer) for record, case in some]
            made = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
            for (record, _), done in zip(some, made, strict=True):
                _compare(record, done, done.raw if _is_unchanged(record, done) else _logged_answer(record, read), told)
                on_call(told)
    return told


def _call_case(record: CallRecord, read: Callable[[str], str], told: ReplayResult) -> CallCase | None:
    """What a call was asked with; None where that can not be had, which is counted."""
    if not record.request_ref:
        told.left_out["its inputs were not kept"] += 1
        return None
    try:
        return CallCase.model_validate_json(read(record.request_ref))
    except DocumentError as error:
        told.left_out["what was kept is gone: its retention is over" if error.missing else "what was kept is damaged"] += 1
    except ValidationError:
        told.left_out["what was kept is damaged"] += 1
    return None


def _is_unchanged(record: CallRecord, done: DryRunResult) -> bool:
    """Whether the answer is the logged one: its hash is the name under which that is kept, which need not be read then."""
    made = done.record.answer_ref if done.record else ""
    return bool(made) and record.answer_ref.endswith(f"/{made}")


def _logged_answer(record: CallRecord, read: Callable[[str], str]) -> str:
    """The logged answer, "" where it is gone: then the new one is another."""
    try:
        return read(record.answer_ref) if record.answer_ref else ""
    except DocumentError:
        return ""


def _compare(record: CallRecord, done: DryRunResult, logged: str, told: ReplayResult) -> None:
    told.before.add(record)
    if done.record:
        told.after.add(done.record)
    else:
        told.after.calls += 1
    now = done.raw if done.raw == logged else redact(done.raw)
    if now == logged and done.record is not None and done.record.success == record.success:
        told.same += 1
        return
    fields = tuple(_changed_fields(logged, now)) or (WHOLE_ANSWER,)
    told.changed.update(fields)
    if len(told.examples) < _EXAMPLES:
        turn = f"{record.user_id}:{record.turn_id}" if record.turn_id else ""
        told.examples.append(ChangedAnswer(record.call_id, turn, fields, _short(logged or record.error), _short(now or done.failure)))


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
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
