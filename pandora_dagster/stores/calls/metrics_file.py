"""The Metrics port: metrics of a store in Prometheus' text format, in `<root>/metrics/pandora.prom`.

The textfile collector of node_exporter reads the file. Each process of a store adds under a lock what it counted since its last write, so
that counters continue over processes; counts of a write that failed go into the next one. A gauge has the value that was set last.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, path_inside, write_atomic

HELP = {
    "pandora_calls_total": "Calls of models, by recipe, layer and outcome.",
    "pandora_call_seconds": "Seconds that calls took, waiting and retries included, by layer.",
    "pandora_call_queue_seconds_total": "Seconds that calls waited in the admission queue, by layer.",
    "pandora_call_retries_total": "Attempts beyond a call's first, by layer.",
    "pandora_call_tokens_total": "Tokens as servers counted them, over all attempts, by layer and kind: prompt, output, cached.",
    "pandora_call_cost_total": "Cost by the prices in runtime.yaml, by layer.",
    "pandora_tool_seconds": "Seconds that runs of tools took, by tool and outcome.",
    "pandora_tool_pages_total": "Pages that tools asked of the web, refused ones included, by tool.",
    "pandora_tool_page_bytes_total": "Bytes of these pages, by tool.",
    "pandora_tool_calls_total": "Model calls that tools made, by tool.",
    "pandora_tool_tokens_total": "Tokens of these calls, by tool.",
    "pandora_compressions_total": "Compressions of texts, by recipe and outcome.",
    "pandora_compression_saved_tokens_total": "Tokens that compressions saved, by recipe.",
    "pandora_server_full_total": "Requests that a full server refused (503) and that were sent again, by server.",
    "pandora_server_unreachable_total": "Requests that reached no server, by server.",
    "pandora_aborts_total": "Requests aborted on a server: cancelled, or timed out.",
    "pandora_server_places": "Calls that may run at once, as learned, by server.",
    "pandora_server_running": "Calls that run now, by server.",
    "pandora_server_waiting": "Calls that wait in the admission queue, by server.",
    "pandora_server_left_alone": "1 while the circuit of a server is open after repeated failures.",
}
_LOCK_SECONDS = 2.0
_FILE, _FOLDER = "pandora.prom", "metrics"
Series = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a series and its labels, sorted by name."""


class MetricsFile:
    """Counts in memory and writes every `every_s` seconds. The first error is passed to `report`; none is raised."""

    def __init__(
        self, root: Path, *, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic, every_s: float = 5.0
    ) -> None:
        self.path = root / _FOLDER / _FILE
        self._root, self._report, self._clock, self._every_s = root, report, clock, every_s
        self._counts: dict[Series, float] = {}
        self._gauges: dict[Series, float] = {}
        self._lock, self._written_at, self._reported = threading.Lock(), clock(), False

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        if amount:
            series = (name, tuple(sorted(labels.items())))
            with self._lock:
                self._counts[series] = self._counts.get(series, 0.0) + amount
            self._flush_when_due()

    def gauge(self, name: str, value: float, **labels: str) -> None:
        with self._lock:
            self._gauges[(name, tuple(sorted(labels.items())))] = value
        self._flush_when_due()

    def flush(self) -> None:
        """Add what was counted since the last write to the file."""
        with self._lock:
            counts, gauges, self._counts, self._gauges = self._counts, self._gauges, {}, {}
            self._written_at = self._clock()
        if not counts and not gauges:
            return
        try:
            self._merge(counts, gauges)
        except StoreError as error:
            with self._lock:
                self._counts = _add(counts, self._counts)
                self._gauges = gauges | self._gauges
            if not self._reported:
                self._reported = True
                self._report(f"metrics are not written: {error}")

    def _flush_when_due(self) -> None:
        if self._clock() - self._written_at >= self._every_s:
            self.flush()

    def _merge(self, counts: Mapping[Series, float], gauges: Mapping[Series, float]) -> None:
        """Add counts to the file and set gauges in it; raises StoreError."""
        path = path_inside(self._root, self.path)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.with_name(f".{_FILE}.lock"), what="the metrics", seconds=_LOCK_SECONDS):
            write_atomic(path, _render(_add({**read_metrics(path), **gauges}, counts)), durable=False)


def _add(totals: Mapping[Series, float], counts: Mapping[Series, float]) -> dict[Series, float]:
    return {**totals, **{series: totals.get(series, 0.0) + amount for series, amount in counts.items()}}


def read_metrics(path: Path) -> dict[Series, float]:
    """The series of a file with their values; damaged lines are skipped, and removed by the next write. Raises StoreError."""
    if not path.is_file():
        return {}
    with disk_errors(path, "cannot read"):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    series: dict[Series, float] = {}
    for line in lines:
        with suppress(ValueError):
            series |= {
                (sample.name, tuple(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(line)
                for sample in family.samples
            }
    return series


class _StoredMetrics(Collector):
    """The series of a file as the metric families that prometheus_client renders."""

    def __init__(self, values: Mapping[Series, float]) -> None:
        self._values = values

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, labels in sorted(self._values):
            metric_type = "counter" if name.endswith("_total") else "summary" if name.endswith(("_sum", "_count")) else "gauge"
            family = name if metric_type == "gauge" else name.rpartition("_")[0]
            metric = families.setdefault(family, Metric(family, HELP.get(name, HELP.get(family, family)), metric_type))
            metric.add_sample(name, dict(labels), self._values[name, labels])
        yield from families.values()


def _render(values: Mapping[Series, float]) -> bytes:
    """The series in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_StoredMetrics(values))
    return generate_latest(registry)


def metrics_listener(meters: Metrics) -> Callable[[CallRecord], None]:
    """A listener that counts every call record, failed calls included. No label holds a user's words or id."""

    def count(record: CallRecord) -> None:
        layer = record.model_layer.value
        if "no_fact_changed" in record.gates:  # the record of a compression as a whole; its calls have their own records
            meters.count("pandora_compressions_total", recipe=record.recipe, outcome="ok" if record.success else "failed")
            meters.count("pandora_compression_saved_tokens_total", record.compression_savings, recipe=record.recipe)
        meters.count("pandora_calls_total", recipe=record.recipe, layer=layer, outcome="ok" if record.success else "failed")
        meters.count("pandora_call_seconds_sum", record.latency_ms / 1_000, layer=layer)
        meters.count("pandora_call_seconds_count", layer=layer)
        meters.count("pandora_call_queue_seconds_total", record.queue_ms / 1_000, layer=layer)
        meters.count("pandora_call_retries_total", record.retries, layer=layer)
        meters.count("pandora_call_cost_total", record.cost, layer=layer)
        for kind, tokens in record.spent.model_dump().items():
            meters.count("pandora_call_tokens_total", tokens, layer=layer, kind=kind)

    return count
