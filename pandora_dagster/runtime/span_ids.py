"""Ids of OpenTelemetry spans. The module needs the extra `otel`, so it is imported only where an exporter is configured."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import local

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


class SpanIds(RandomIdGenerator):
    """Random ids, except for the span of a turn: the spans of its calls are exported first and name it as their parent."""

    def __init__(self) -> None:
        self._fixed = local()

    @contextmanager
    def use_ids(self, trace_id: int, span_id: int) -> Generator[None]:
        """Give the next span that this thread starts these ids."""
        self._fixed.ids = (trace_id, span_id)
        try:
            yield
        finally:
            del self._fixed.ids

    def generate_trace_id(self) -> int:
        fixed_ids: tuple[int, int] | None = getattr(self._fixed, "ids", None)
        return fixed_ids[0] if fixed_ids else super().generate_trace_id()

    def generate_span_id(self) -> int:
        fixed_ids: tuple[int, int] | None = getattr(self._fixed, "ids", None)
        return fixed_ids[1] if fixed_ids else super().generate_span_id()
