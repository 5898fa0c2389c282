"""What a compression leaves behind: a call record, one JSON line, and the metrics of 000 section 27. Decides nothing."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from pandora_dagster.contracts.enums import ContentType, ModelLayer
from pandora_dagster.contracts.gates import Gate, GateVerdict
from pandora_dagster.contracts.model_calls import CallRecord, CallSite, CallTokens
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.record_storage import CallLog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import StoreError

EMBEDDED = "extractive"
"""What a compression without a model is recorded under (DECISIONS 25)."""
_NO_TEXT: dict[Gate, bool] = dict.fromkeys(("facts_preserved", "within_budget", "is_a_summary"), False)
EventLogger = Callable[..., Any]
"""`say(event, **fields)`: one structured line."""


@dataclass(slots=True)
class Histogram:
    """How many values there were, their sum and the largest."""

    count: int = 0
    total: float = 0.0
    largest: float = 0.0

    def observe(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)


@dataclass(slots=True)
class CompressionMetrics:
    """Of one process; over processes and restarts the call records say the same (`stores.call_index`, `pandora doctor`)."""

    compression_invocations: int = 0
    tokens_saved: Histogram = field(default_factory=Histogram)
    compression_latency_ms: Histogram = field(default_factory=Histogram)
    overflow_warnings: int = 0


@dataclass(frozen=True, slots=True)
class FinishedCompression:
    """One compression that ended, for its record."""

    site: CallSite
    loaded: LoadedRecipe
    content_type: ContentType
    started: datetime
    tokens_before: int
    tokens_after: int
    runtime: str
    layer: ModelLayer
    halted: str = ""
    deferred: str = ""
    """Why a model was not asked for all of it."""
    gates: tuple[GateVerdict, ...] = ()
    """The three checks of its text; empty where it HALTed."""


def json_lines() -> EventLogger:
    """Says each event as one JSON line through standard logging: shown where the process turns INFO on."""
    logger = structlog.wrap_logger(
        logging.getLogger("pandora_dagster.compression"),
        processors=[structlog.processors.JSONRenderer()],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger.info


class CompressionLog:
    """Counts, says and records."""

    def __init__(self, calls: CallLog, clock: Clock, new_call_id: Callable[[], str], say: EventLogger) -> None:
        self.metrics = CompressionMetrics()
        self._calls, self._clock, self._new_call_id, self._say = calls, clock, new_call_id, say

    def record_compression(self, what: FinishedCompression) -> str:
        """A compression that went through or HALTed; returns the id of its call record."""
        latency = round((self._clock() - what.started).total_seconds() * 1_000, 3)
        self.metrics.compression_invocations += 1
        self.metrics.compression_latency_ms.observe(latency)
        if not what.halted:
            self.metrics.tokens_saved.observe(what.tokens_before - what.tokens_after)
        self._say("smart_summarization", **_event(what, latency))
        record = _record(what, latency, self._new_call_id())
        self._record(record)
        return record.call_id

    def record_overflow(self, where: str, over: int, *, site: CallSite, loaded: LoadedRecipe) -> None:
        """Something stays over its budget; `loaded` is the recipe that would have helped, or whose call does not fit."""
        self.metrics.overflow_warnings += 1
        self._say("overflow", where=where, tokens_over=over)
        fields = _fields(self._new_call_id(), site, loaded, self._clock())
        unfit = CallRecord(
            **fields,
            model_layer=loaded.layer,
            runtime="",
            tokens=CallTokens(),
            latency_ms=0.0,
            success=False,
            error=f"{where}: {over} tokens over budget",
            gates={"within_budget": False},
        )
        self._record(unfit)

    def _record(self, record: CallRecord) -> None:
        """A log that fails is said; the compressed text stays."""
        try:
            self._calls.append(record)
        except StoreError as error:
            self._say("not_logged", call_id=record.call_id, error=str(error))


def _event(what: FinishedCompression, latency: float) -> dict[str, Any]:
    """The fields of 000 section 27's example; `outcome` stands for its `event`, which names the line here."""
    ratio = round(what.tokens_after / what.tokens_before, 4) if what.tokens_before else 1.0
    return {
        "outcome": "halted" if what.halted else "compressed",
        "original_tokens": what.tokens_before,
        "compressed_tokens": what.tokens_after,
        "compression_ratio": ratio,
        "content_type": what.content_type.value,
        "recipe": what.loaded.name,
        "model_layer": what.layer.value,
        "runtime": what.runtime,
        "latency_ms": latency,
        **({"reason": what.halted} if what.halted else {}),
        **({"deferred": what.deferred} if what.deferred else {}),
    }


def _record(what: FinishedCompression, latency: float, call_id: str) -> CallRecord:
    """One compression as a whole, told from the calls beside it by its checks. Its tokens are those that no model call counted."""
    done = not what.halted
    return CallRecord(
        **_fields(call_id, what.site, what.loaded, what.started),
        model_layer=what.layer,
        runtime=what.runtime,
        model=what.runtime,
        tokens=_tokens(what),
        latency_ms=latency,
        success=done,
        error=what.halted or what.deferred,
        gates=_NO_TEXT | {verdict.gate: verdict.passed for verdict in what.gates},
        finish_reason="stop" if done else "",
        compression_applied=done,
        compression_savings=what.tokens_before - what.tokens_after if done else 0,
    )


def _fields(call_id: str, site: CallSite, loaded: LoadedRecipe, at: datetime) -> dict[str, Any]:
    """Who and when, of any record."""
    return {
        "call_id": call_id,
        "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "recipe": loaded.name,
        "recipe_version": loaded.version,
        "prompt_version": loaded.prompt_version,
        "recipe_layer": loaded.layer,
        "user_id": site.user,
        "session_id": site.session,
        "turn_id": site.turn.turn_id if site.turn else "",
        "revision": site.revision,
        "phase": site.phase,
    }


def _tokens(what: FinishedCompression) -> CallTokens:
    """Of a compression without a model: it had no window of 500 tokens, so its budget is what it took. Model calls count their own."""
    if what.runtime != EMBEDDED:
        return CallTokens()
    total = what.tokens_before + what.tokens_after
    return CallTokens(input=what.tokens_before, output=what.tokens_after, total=total, budget=total)
