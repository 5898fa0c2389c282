"""What a compression leaves behind: a call record, one JSON line, and the metrics of 000 section 27. Decides nothing."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from pandora_dagster.contracts.calls import CallRecord, CallSite, CallTokens
from pandora_dagster.contracts.ports import CallLog, Clock
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.errors import StoreError

Say = Callable[..., Any]
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
    """Of one process; over processes, the call records say the same (`compression_applied`, `compression_savings`)."""

    compression_invocations: int = 0
    tokens_saved: Histogram = field(default_factory=Histogram)
    compression_latency_ms: Histogram = field(default_factory=Histogram)
    overflow_warnings: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """One compression that ended, for its record."""

    site: CallSite
    loaded: LoadedRecipe
    content_type: ContentType
    started: datetime
    tokens_before: int
    tokens_after: int
    runtime: str
    halted: str = ""
    is_call: bool = True
    """False where the model calls that were recorded say it all."""


def json_lines() -> Say:
    """Says each event as one JSON line through standard logging: shown where the process turns INFO on."""
    logger = structlog.wrap_logger(
        logging.getLogger("pandora_dagster.compression"),
        processors=[structlog.processors.JSONRenderer()],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger.info


class CompressionLog:
    """Counts, says and records."""

    def __init__(self, calls: CallLog, clock: Clock, new_call_id: Callable[[], str], say: Say) -> None:
        self.metrics = CompressionMetrics()
        self._calls, self._clock, self._new_call_id, self._say = calls, clock, new_call_id, say

    def done(self, what: Done) -> None:
        """A compression that went through or HALTed."""
        latency = round((self._clock() - what.started).total_seconds() * 1_000, 3)
        self.metrics.compression_invocations += 1
        self.metrics.compression_latency_ms.observe(latency)
        if not what.halted:
            self.metrics.tokens_saved.observe(what.tokens_before - what.tokens_after)
        self._say("smart_summarization", **_event(what, latency))
        if what.is_call:
            self._record(_record(what, latency, self._new_call_id()))

    def overflow(self, where: str, over: int) -> None:
        """Something stays over its budget."""
        self.metrics.overflow_warnings += 1
        self._say("overflow", where=where, tokens_over=over)

    def _record(self, record: CallRecord) -> None:
        """A log that fails is said; the compressed text stays."""
        try:
            self._calls.append(record)
        except StoreError as error:
            self._say("not_logged", call_id=record.call_id, error=str(error))


def _event(what: Done, latency: float) -> dict[str, Any]:
    """The fields of 000 section 27's example; `outcome` stands for its `event`, which names the line here."""
    ratio = round(what.tokens_after / what.tokens_before, 4) if what.tokens_before else 1.0
    return {
        "outcome": "halted" if what.halted else "compressed",
        "original_tokens": what.tokens_before,
        "compressed_tokens": what.tokens_after,
        "compression_ratio": ratio,
        "content_type": what.content_type.value,
        "recipe": what.loaded.name,
        "model_layer": what.loaded.recipe.model_layer.value,
        "runtime": what.runtime,
        "latency_ms": latency,
        **({"reason": what.halted} if what.halted else {}),
    }


def _record(what: Done, latency: float, call_id: str) -> CallRecord:
    """A compression without a model call, as a call of its recipe: it had no window of 500 tokens, so its budget is what it took."""
    site = what.site
    return CallRecord(
        call_id=call_id,
        timestamp=what.started.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        recipe=what.loaded.name,
        recipe_version=what.loaded.version,
        prompt_version=what.loaded.prompt_version,
        model_layer=what.loaded.recipe.model_layer,
        runtime=what.runtime,
        model=what.runtime,
        user_id=site.user,
        session_id=site.session,
        turn_id=site.turn.turn_id if site.turn else "",
        revision=site.revision,
        phase=site.phase,
        tokens=_tokens(what),
        latency_ms=latency,
        success=not what.halted,
        error=what.halted,
        finish_reason="" if what.halted else "stop",
        compression_applied=not what.halted,
        compression_savings=0 if what.halted else what.tokens_before - what.tokens_after,
    )


def _tokens(what: Done) -> CallTokens:
    total = what.tokens_before + what.tokens_after
    return CallTokens(input=what.tokens_before, output=what.tokens_after, total=total, budget=total)
