"""Call records as spans, by OpenTelemetry's conventions for generative AI; a span never holds a word of a prompt or an answer.

The package comes with the extra `otel` and is imported where an exporter is configured, by OpenTelemetry's own variables.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

_TOKEN_ATTRIBUTES = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens")
_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class CallSpans:
    """Sends spans to `processor`: one for every call, and one for every turn, which is the parent of the spans of its calls."""

    def __init__(self, processor: "SpanProcessor") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        from pandora_dagster.runtime.span_ids import SpanIds

        self._ids = SpanIds()
        provider = TracerProvider(resource=Resource.create({"service.name": "pandora-dagster"}), id_generator=self._ids)
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("pandora_dagster")

    def call(self, record: CallRecord) -> None:
        """Send the span of a call, with the times of the call, as a child of the span of its turn."""
        from opentelemetry import trace

        trace_id, span_id = span_ids(record)
        sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        parent = trace.NonRecordingSpan(trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=sampled))
        start, end = _times(record)
        span = self._tracer.start_span(
            f"chat {record.model or record.runtime}",
            context=trace.set_span_in_context(parent),
            kind=trace.SpanKind.CLIENT,
            attributes=call_attributes(record),
            start_time=start,
        )
        if not record.success:
            span.set_status(trace.Status(trace.StatusCode.ERROR))
        span.end(end)

    def turn(self, records: Sequence[CallRecord]) -> None:
        """Send the span of a completed or halted turn, from its first call to its last; a resumed turn is sent again with all its calls."""
        from opentelemetry import trace
        from opentelemetry.context import Context

        if not records:
            return
        times = [_times(record) for record in records]
        with self._ids.use_ids(*span_ids(records[0])):
            span = self._tracer.start_span(
                "invoke_agent pandora",
                context=Context(),
                attributes=turn_attributes(records),
                start_time=min(start for start, _ in times),
            )
        if not records[-1].success:
            span.set_status(trace.Status(trace.StatusCode.ERROR))
        span.end(max(end for _, end in times))


def is_exporter_configured(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's variables name an endpoint and do not disable the SDK."""
    return any(environ.get(name) for name in _ENDPOINT_VARIABLES) and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"


def open_call_spans() -> CallSpans:
    """Spans that are sent to the configured endpoint in the background, the last ones when the process ends.

    Raises ConfigurationError where the package is missing.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise ConfigurationError(
            f"{_ENDPOINT_VARIABLES[0]}: set, but {missing.name} is not installed: expected the extra otel",
            hint="pip install pandora-dagster[otel], or unset the variable.",
        ) from None
    return CallSpans(BatchSpanProcessor(OTLPSpanExporter()))


def turn_attributes(records: Sequence[CallRecord]) -> dict[str, str | int | float | bool | tuple[str, ...]]:
    """The attributes of a turn's span: the totals of its calls, without the user's id."""
    first, calls = records[0], [call_attributes(record) for record in records]
    attributes: dict[str, str | int | float | bool | tuple[str, ...]] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "pandora",
        "gen_ai.provider.name": first.runtime,
        "gen_ai.conversation.id": first.session_id,
        **{name: sum(int(str(call.get(name, 0))) for call in calls) for name in _TOKEN_ATTRIBUTES},
        "pandora.turn": first.turn_id,
        "pandora.revision": first.revision,
        "pandora.calls": len(records),
        "pandora.cost": sum(record.cost for record in records),
    }
    return {name: value for name, value in attributes.items() if value != ""}


def call_attributes(record: CallRecord) -> dict[str, str | int | float | bool | tuple[str, ...]]:
    """The attributes of a call's span, with the names of the semantic conventions, and the project's own under `pandora.`."""
    attributes: dict[str, str | int | float | bool | tuple[str, ...]] = {
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
        attributes["gen_ai.response.finish_reasons"] = (record.finish_reason,)
    if not record.success:
        attributes["error.type"] = next((gate for gate, passed in record.gates.items() if not passed), "call_failed")
    return {name: value for name, value in attributes.items() if value != ""}


def span_ids(record: CallRecord) -> tuple[int, int]:
    """The trace id and the parent span id of a record: the same for all calls of one revision of a turn, unique without a turn."""
    identity = f"{record.user_id}:{record.turn_id}:{record.revision}" if record.turn_id else record.call_id
    digest = sha256(identity.encode()).digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1


def _times(record: CallRecord) -> tuple[int, int]:
    """Start and end of a call in nanoseconds since 1970."""
    start = datetime.fromisoformat(record.timestamp)
    return _nanoseconds(start), _nanoseconds(start + timedelta(milliseconds=record.latency_ms))


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1_000
