"""What a compression leaves behind: a call record and one JSON line (000 section 27)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import structlog

from pandora_dagster.compression.verification.verifier import Verification
from pandora_dagster.contracts.compression_results import Gate, GateVerdict
from pandora_dagster.contracts.enums import ContentType, ModelLayer
from pandora_dagster.contracts.model_calls import CallRecord, CallSite, CallTokens
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.record_storage import CallLog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import StoreError

EMBEDDED = "extractive"
"""What a compression without a model is recorded under (DECISIONS 25)."""
_NO_TEXT: dict[Gate, bool] = dict.fromkeys(("no_fact_changed", "within_budget", "is_a_summary"), False)
EventLogger = Callable[..., Any]
"""`say(event, **fields)`: one structured line."""


@dataclass(frozen=True)
class CompressionOutcome:
    """The result of one compression. `text` is None after a HALT; `verification` is None for a text that fitted and is unchanged."""

    text: str | None
    tokens: int
    original_tokens: int
    verification: Verification | None = None
    halted: str = ""
    runtime: str = ""
    """Who shortened it; both names with a `+` where a model shortened some pieces and verbatim spans replace the others."""
    deferred: str = ""
    """Why a model was not asked for all that it would have shortened (DECISIONS 7)."""
    gates: tuple[GateVerdict, ...] = ()
    """The three checks of the compressed text; empty after a HALT."""
    unchecked: tuple[str, ...] = ()
    """Rewritten statements whose meaning no model judged."""
    call_id: str = ""
    """The call record of the whole compression."""

    @cached_property
    def counts(self) -> dict[str, int]:
        return self.verification.counts if self.verification else {}


def json_lines() -> EventLogger:
    """Says each event as one JSON line through standard logging: shown where the process turns INFO on."""
    logger = structlog.wrap_logger(
        logging.getLogger("pandora_dagster.compression"),
        processors=[structlog.processors.JSONRenderer()],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger.info


class CompressionLog:
    """Writes the line and the record of each compression; `pandora doctor` sums up the records."""

    def __init__(self, calls: CallLog, clock: Clock, new_call_id: Callable[[], str], say: EventLogger) -> None:
        self._calls, self._clock, self._new_call_id, self._say = calls, clock, new_call_id, say

    def record_compression(
        self,
        made: CompressionOutcome,
        content_type: ContentType,
        *,
        site: CallSite,
        loaded: LoadedRecipe,
        layer: ModelLayer,
        started: datetime,
    ) -> str:
        """Record a compression, also one that HALTed; returns the id of its call record, whose checks distinguish it from the records of
        the model calls that it made."""
        record = CallRecord(
            **record_identity(self._new_call_id(), site, loaded, started),
            model_layer=layer,
            runtime=made.runtime,
            model=made.runtime,
            tokens=_tokens(made),
            latency_ms=round((self._clock() - started).total_seconds() * 1_000, 3),
            success=not made.halted,
            error=made.halted or made.deferred,
            gates=_NO_TEXT | {verdict.gate: verdict.passed for verdict in made.gates},
            finish_reason="" if made.halted else "stop",
            compression_applied=not made.halted,
            compression_savings=0 if made.halted else made.original_tokens - made.tokens,
        )
        self._say("smart_summarization", **_event(made, content_type, record))
        self._record(record)
        return record.call_id

    def record_overflow(self, where: str, over: int, *, site: CallSite, loaded: LoadedRecipe) -> None:
        """Something stays over its budget; `loaded` is the recipe that would have helped, or whose call does not fit."""
        self._say("overflow", where=where, tokens_over=over)
        unfit = CallRecord(
            **record_identity(self._new_call_id(), site, loaded, self._clock()),
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


def _event(made: CompressionOutcome, content_type: ContentType, record: CallRecord) -> dict[str, Any]:
    """The fields of 000 section 27's example; `outcome` holds its `event`, a name that the logger uses for the line."""
    ratio = round(made.tokens / made.original_tokens, 4) if made.original_tokens else 1.0
    return {
        "outcome": "halted" if made.halted else "compressed",
        "original_tokens": made.original_tokens,
        "compressed_tokens": made.tokens,
        "compression_ratio": ratio,
        "content_type": content_type.value,
        "recipe": record.recipe,
        "model_layer": record.model_layer.value,
        "runtime": made.runtime,
        "latency_ms": record.latency_ms,
        **({"reason": made.halted} if made.halted else {}),
        **({"deferred": made.deferred} if made.deferred else {}),
        **({"unchecked": list(made.unchecked)} if made.unchecked else {}),
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


def _tokens(made: CompressionOutcome) -> CallTokens:
    """Tokens of a compression without a model, with its own total as budget; zero where model calls have records of their own."""
    if made.runtime != EMBEDDED:
        return CallTokens()
    total = made.original_tokens + made.tokens
    return CallTokens(input=made.original_tokens, output=made.tokens, total=total, budget=total)
