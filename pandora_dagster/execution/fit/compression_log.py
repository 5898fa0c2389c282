"""The records of a compression: a call record and one JSON line (specification 000, section 27)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.compression.verification.verifier import Verification
from pandora_dagster.contracts.compression_results import CompressionRequest, Gate, GateVerdict
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRecord, CallSite, CallTokens
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.record_storage import CallLog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import StoreError

EMBEDDED = "extractive"
"""The runtime of a compression without a model (decision 25: docs/decisions/25-the-embedded-runtime.md)."""
_FAILED_GATES: dict[Gate, bool] = dict.fromkeys(("no_fact_changed", "within_budget", "is_a_summary"), False)
EventLogger = Callable[..., Any]
"""`log_event(event, **fields)` writes one structured line."""


@dataclass(frozen=True)
class CompressionOutcome:
    """The result of one compression. `text` is None after a HALT; `verification` is None for a text that fitted and is unchanged."""

    text: str | None
    tokens: int
    original_tokens: int
    verification: Verification | None = None
    halted: str = ""
    runtime: str = ""
    """The runtime that shortened the text; both names with a `+` where a model shortened some pieces and whole units replace others."""
    deferred: str = ""
    """Why the rate limit deferred model calls (decision 7: docs/decisions/07-levels-link-every-fact.md)."""
    gates: tuple[GateVerdict, ...] = ()
    """The three checks of the compressed text; empty after a HALT."""
    unchecked: tuple[str, ...] = ()
    """Rewritten statements whose meaning no model judged."""
    call_id: str = ""
    """The call record of the whole compression."""
    is_late: bool = False
    """Whether the time for one text was over; another target would take as long."""

    @cached_property
    def counts(self) -> dict[str, int]:
        return self.verification.counts if self.verification else {}


def json_lines() -> EventLogger:
    """The logger that writes each event as one JSON line through standard logging; `pandora --verbose` prints them."""
    logger = logging.getLogger("pandora_dagster.compression")

    def log_event(event: str, **fields: Any) -> None:
        if logger.isEnabledFor(logging.INFO):
            _structured(logger).info(event, **fields)

    return log_event


@cache
def _structured(logger: logging.Logger) -> Any:
    """The logger that writes JSON. Its library, which takes as long to import as a turn's phases, waits for the first line."""
    import structlog

    return structlog.wrap_logger(logger, processors=[structlog.processors.JSONRenderer()], wrapper_class=structlog.stdlib.BoundLogger)


class CompressionLog:
    """Writes the line and the call record of each compression; `pandora doctor` sums up the records."""

    def __init__(self, calls: CallLog, clock: Clock, new_call_id: Callable[[], str], log_event: EventLogger) -> None:
        self._calls, self._clock, self._new_call_id, self._log_event = calls, clock, new_call_id, log_event

    def record_compression(
        self,
        outcome: CompressionOutcome,
        request: CompressionRequest,
        *,
        site: CallSite,
        loaded: LoadedRecipe,
        layer: ModelLayer,
        started: datetime,
    ) -> str:
        """Record a compression, also one that halted; return the id of its call record.

        Its gates distinguish the record from those of the model calls that the compression made.
        """
        record = CallRecord(
            **record_identity(self._new_call_id(), site, loaded, started),
            model_layer=layer,
            runtime=outcome.runtime,
            model=outcome.runtime,
            tokens=_tokens(outcome),
            latency_ms=round((self._clock() - started).total_seconds() * 1_000, 3),
            success=not outcome.halted,
            error=outcome.halted or outcome.deferred,
            gates=_FAILED_GATES | {verdict.gate: verdict.passed for verdict in outcome.gates},
            finish_reason="" if outcome.halted else "stop",
            compression_applied=not outcome.halted,
            compression_savings=0 if outcome.halted else outcome.original_tokens - outcome.tokens,
        )
        self._log_event("smart_summarization", **_event_fields(outcome, request, record))
        self._append(record)
        return record.call_id

    def record_overflow(self, where: str, over: int, *, site: CallSite, loaded: LoadedRecipe) -> None:
        """Record that `where` stays `over` tokens over its budget; `loaded`: the recipe of the compression, or of the unfit call."""
        self._log_event("overflow", where=where, tokens_over=over)
        record = CallRecord(
            **record_identity(self._new_call_id(), site, loaded, self._clock()),
            model_layer=loaded.layer,
            runtime="",
            tokens=CallTokens(),
            latency_ms=0.0,
            success=False,
            error=f"{where}: {over} tokens over budget",
            gates={"within_budget": False},
        )
        self._append(record)

    def _append(self, record: CallRecord) -> None:
        """Append a call record; a failure of the log is an event, and the compressed text stays valid."""
        try:
            self._calls.append(record)
        except StoreError as error:
            self._log_event("not_logged", call_id=record.call_id, error=str(error))


def _event_fields(outcome: CompressionOutcome, request: CompressionRequest, record: CallRecord) -> dict[str, Any]:
    """The fields of the line, as in specification 000, section 27; `outcome` is its `event`, a name that the logger uses itself.

    `recipe` is the recipe whose call was too large, `compressed_by` the compression recipe.
    """
    ratio = round(outcome.tokens / outcome.original_tokens, 4) if outcome.original_tokens else 1.0
    return {
        "outcome": "halted" if outcome.halted else "compressed",
        "original_tokens": outcome.original_tokens,
        "compressed_tokens": outcome.tokens,
        "compression_ratio": ratio,
        "content_type": content_type_of(request).value,
        "recipe": request.recipe or record.recipe,
        "compressed_by": record.recipe,
        "model_layer": record.model_layer.value,
        "runtime": outcome.runtime,
        "latency_ms": record.latency_ms,
        **({"reason": outcome.halted} if outcome.halted else {}),
        **({"deferred": outcome.deferred} if outcome.deferred else {}),
        **({"unchecked": list(outcome.unchecked)} if outcome.unchecked else {}),
    }


def record_identity(call_id: str, site: CallSite, loaded: LoadedRecipe, at: datetime) -> dict[str, Any]:
    """The fields of any call record that say which recipe was called, by whom and when."""
    return {
        "call_id": call_id,
        "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "recipe": loaded.name,
        "recipe_version": loaded.version,
        "prompt_version": loaded.prompt_version,
        "recipe_layer": loaded.layer,
        "revision": site.revision,
        **site.fields,
    }


def _tokens(outcome: CompressionOutcome) -> CallTokens:
    """Tokens of a compression without a model, with its own total as budget; zero where model calls have records of their own."""
    if outcome.runtime != EMBEDDED:
        return CallTokens()
    total = outcome.original_tokens + outcome.tokens
    return CallTokens(input=outcome.original_tokens, output=outcome.tokens, total=total, budget=total)
