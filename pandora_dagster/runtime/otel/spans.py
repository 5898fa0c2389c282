"""A call's record -> a span in OpenTelemetry's terms for generative AI. Knows names; a span never holds a word of a prompt or an answer.

The package comes with the extra `otel` and is imported where an exporter is configured, by OpenTelemetry's own variables.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
Hears = Callable[[CallRecord], None]


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether an exporter is configured."""
    return any(environ.get(name) for name in _ENDPOINTS) and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"


def exported() -> Hears:
    """What sends a span for every record to the configured endpoint, in the background; what waits is sent when the process ends.

    Raises ConfigurationError where the package is missing.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise ConfigurationError(
            f"{_ENDPOINTS[0]}: set, but {missing.name} is not installed: expected the extra otel",
            hint="pip install pandora-dagster[otel], or unset the variable.",
        ) from None
    return spans_to(BatchSpanProcessor(OTLPSpanExporter()))


def spans_to(processor: "SpanProcessor") -> Hears:
    """What gives `processor` a span for every record, with the times of its call; those of a turn are one trace."""
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(resource=Resource.create({"service.name": "pandora-dagster"}))
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("pandora_dagster")

    def hear(record: CallRecord) -> None:
        trace_id, span_id = ids_of(record)
        parent = trace.NonRecordingSpan(
            trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED))
        )
        start = datetime.fromisoformat(record.timestamp)
        span = tracer.start_span(
            f"chat {record.model or record.runtime}",
            context=trace.set_span_in_context(parent),
            kind=trace.SpanKind.CLIENT,
            attributes=attributes_of(record),
            start_time=_nanoseconds(start),
        )
        if not record.success:
            span.set_status(trace.Status(trace.StatusCode.ERROR))
        span.end(_nanoseconds(start + timedelta(milliseconds=record.latency_ms)))

    return hear


def attributes_of(record: CallRecord) -> dict[str, str | int | float | bool | tuple[str, ...]]:
    """The span's attributes: the semantic conventions' names, and the project's own under `pandora.`."""
    told: dict[str, str | int | float | bool | tuple[str, ...]] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": record.runtime,
        "gen_ai.request.model": record.model,
        "gen_ai.response.model": record.model,
        "gen_ai.response.id": record.call_id,
        "gen_ai.usage.input_tokens": record.spent.prompt or record.tokens.prompt + record.tokens.input,
        "gen_ai.usage.output_tokens": record.spent.output or record.tokens.output,
        "gen_ai.usage.cache_read.input_tokens": record.spent.cached,
        "gen_ai.conversation.id": record.session_id,
        "pandora.turn": record.turn_id,
        "pandora.phase": record.phase,
        "pandora.recipe": record.recipe,
        "pandora.recipe_version": record.recipe_version,
        "pandora.layer": record.model_layer.value,
        "pandora.retries": record.retries,
        "pandora.escalated": record.escalated,
        "pandora.queue_ms": record.queue_ms,
        "pandora.cost": record.cost,
    }
    if record.finish_reason:
        told["gen_ai.response.finish_reasons"] = (record.finish_reason,)
    if not record.success:
        told["error.type"] = next((gate for gate, passed in record.gates.items() if not passed), "call_failed")
    return {name: value for name, value in told.items() if value != ""}


def ids_of(record: CallRecord) -> tuple[int, int]:
    """Trace and parent span of a record: the same for all calls of one revision of a turn, its own for a call without a turn."""
    whose = f"{record.user_id}:{record.turn_id}:{record.revision}" if record.turn_id else record.call_id
    digest = sha256(whose.encode()).digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1_000
