"""Figures of the running system as a text file in Prometheus' form: `<root>/metrics/pandora.prom`. Knows the file, not what is counted.

A collector of text files picks it up (node_exporter's does). All processes of a store add to one file: what each counted since it last
wrote goes in under a lock, so that a counter outlives the processes; a level is what the last process saw.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, write_atomic

HELP = {
    "pandora_calls_total": "Calls of models, by recipe, layer and outcome.",
    "pandora_call_seconds_sum": "Seconds that calls took, waiting and retries included, by layer.",
    "pandora_call_seconds_count": "Calls behind pandora_call_seconds_sum.",
    "pandora_call_queue_seconds_total": "Seconds that calls waited for their place at a server, by layer.",
    "pandora_call_retries_total": "Attempts beyond a call's first, by layer.",
    "pandora_call_tokens_total": "Tokens as servers counted them, over all attempts, by layer and kind: prompt, output, cached.",
    "pandora_call_cost_total": "Cost by the prices in runtime.yaml, by layer.",
    "pandora_server_full_total": "Requests that a server had no room for (503), by server; they were sent again.",
    "pandora_server_unreachable_total": "Requests that met no server, by server.",
    "pandora_aborts_total": "Requests taken back from a server: cancelled, or out of time.",
    "pandora_server_places": "Calls that may be under way at once, as learned, by server.",
    "pandora_server_running": "Calls under way, by server.",
    "pandora_server_waiting": "Calls that wait for a place, by server.",
    "pandora_server_left_alone": "1 where a server is left alone after failures in a row.",
}
_FILE, _FOLDER = "pandora.prom", "metrics"
_SERIES = re.compile(r'^([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (\S+)$')
_ADDS = ("_total", "_sum", "_count")


class MetricsFile:
    """The Meters port. What goes wrong is told to `report`, once, and never raised."""

    def __init__(
        self, root: Path, *, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic, every_s: float = 5.0
    ) -> None:
        self.path = root / _FOLDER / _FILE
        self._root, self._report, self._clock, self._every_s = root, report, clock, every_s
        self._counted: dict[str, float] = {}
        self._levels: dict[str, float] = {}
        self._lock, self._written, self._told = threading.Lock(), clock(), False

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        if amount:
            series = _series(name, labels)
            with self._lock:
                self._counted[series] = self._counted.get(series, 0.0) + amount
            self._written_in_time()

    def gauge(self, name: str, value: float, **labels: str) -> None:
        with self._lock:
            self._levels[_series(name, labels)] = value
        self._written_in_time()

    def flush(self) -> None:
        """Put what was counted since the last time into the file."""
        with self._lock:
            counted, levels, self._counted, self._levels = self._counted, self._levels, {}, {}
            self._written = self._clock()
        if not counted and not levels:
            return
        try:
            self._merge(counted, levels)
        except StoreError as error:
            if not self._told:
                self._told = True
                self._report(f"metrics are not written: {error}")

    def _written_in_time(self) -> None:
        if self._clock() - self._written >= self._every_s:
            self.flush()

    def _merge(self, counted: Mapping[str, float], levels: Mapping[str, float]) -> None:
        path = path_inside(self._root, self.path)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.with_name(f".{_FILE}.lock"), what="the metrics", seconds=2.0):
            known = read_metrics(path)
            known.update(levels)
            for series, amount in counted.items():
                known[series] = known.get(series, 0.0) + amount
            write_atomic(path, encode_text(_FILE, _exposition(known)), durable=False)


def read_metrics(path: Path) -> dict[str, float]:
    """Series -> value, as the file has them; a line that is none is passed over, and written no more."""
    if not path.is_file():
        return {}
    with disk_errors(path, "cannot read"):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = (match for match in map(_SERIES.match, lines) if match)
    return {(m[1] + (m[2] or "")): float(m[3]) for m in found if _is_number(m[3])}


def _exposition(known: Mapping[str, float]) -> str:
    """The file: each metric with its help and type, its series under it, in order."""
    by_name: dict[str, list[str]] = {}
    for series in sorted(known):
        by_name.setdefault(series.partition("{")[0], []).append(f"{series} {known[series]:.12g}")
    return "".join(_block(name, lines) for name, lines in by_name.items())


def _block(name: str, lines: Iterable[str]) -> str:
    kind = "counter" if name.endswith(_ADDS) else "gauge"
    return "\n".join((f"# HELP {name} {HELP.get(name, name)}", f"# TYPE {name} {kind}", *lines)) + "\n"


def _series(name: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return name
    return name + "{" + ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels)) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", " ")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# A call's record as figures for the meters. Knows names and labels; a label never holds a person's words or id.


def metrics_listener(meters: Metrics) -> Callable[[CallRecord], None]:
    """What counts every record that is written, failed calls included."""

    def count(record: CallRecord) -> None:
        layer = record.model_layer.value
        meters.count("pandora_calls_total", recipe=record.recipe, layer=layer, outcome="ok" if record.success else "failed")
        meters.count("pandora_call_seconds_sum", record.latency_ms / 1_000, layer=layer)
        meters.count("pandora_call_seconds_count", layer=layer)
        meters.count("pandora_call_queue_seconds_total", record.queue_ms / 1_000, layer=layer)
        meters.count("pandora_call_retries_total", record.retries, layer=layer)
        meters.count("pandora_call_cost_total", record.cost, layer=layer)
        for kind, tokens in record.spent.model_dump().items():
            meters.count("pandora_call_tokens_total", tokens, layer=layer, kind=kind)

    return count
