"""Ids of spans. Imports the package of the extra `otel`, so it is itself imported only where an exporter is configured."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import local

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator


class SpanIds(RandomIdGenerator):
    """Random ids, except for a turn's span: its calls are exported before it and name it as their parent."""

    def __init__(self) -> None:
        self._given = local()

    @contextmanager
    def use_ids(self, trace_id: int, span_id: int) -> Generator[None]:
        """The next span that this thread starts has these."""
        self._given.ids = (trace_id, span_id)
        try:
            yield
        finally:
            del self._given.ids

    def generate_trace_id(self) -> int:
        given: tuple[int, int] | None = getattr(self._given, "ids", None)
        return given[0] if given else super().generate_trace_id()

    def generate_span_id(self) -> int:
        given: tuple[int, int] | None = getattr(self._given, "ids", None)
        return given[1] if given else super().generate_span_id()
