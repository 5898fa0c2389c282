"""Metrics in a text file that several processes add to."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pandora_dagster.stores.calls.metrics_file import HELP, MetricsFile, metrics_listener, read_metrics
from tests.stores.calls.test_call_log import call

PACKAGE = Path(__file__).parents[3] / "pandora_dagster"


class _Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def message(sentence: str) -> None:
    raise AssertionError(sentence)


def test_counters_add_up_over_processes_and_levels_are_the_last(tmp_path: Path) -> None:
    """Two that count at the same store lose nothing of each other's."""
    for levels in (3, 5):
        metrics = MetricsFile(tmp_path, report=message)
        for _ in range(levels):
            metrics.count("pandora_call_retries_total", 2, layer="MIND")
        metrics.gauge("pandora_server_places", levels, server="http://127.0.0.1:30000/v1")
        metrics.flush()
    found = read_metrics(tmp_path / "metrics" / "pandora.prom")
    assert found == {
        ("pandora_call_retries_total", (("layer", "MIND"),)): 16.0,
        ("pandora_server_places", (("server", "http://127.0.0.1:30000/v1"),)): 5.0,
    }


def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    """Four real processes, 25 flushes each."""
    code = (
        "import sys; from pathlib import Path; from pandora_dagster.stores.calls.metrics_file import MetricsFile\n"
        "m = MetricsFile(Path(sys.argv[1]), report=print)\n"
        "for _ in range(25): m.count('pandora_aborts_total'); m.flush()"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=PACKAGE.parent) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert read_metrics(tmp_path / "metrics" / "pandora.prom") == {("pandora_aborts_total", ()): 100.0}


def test_the_file_is_prometheus_text(tmp_path: Path) -> None:
    """Help and type stand once over a metric's series; what a label says cannot break out of it."""
    metrics = MetricsFile(tmp_path, report=message)
    metrics.count("pandora_calls_total", layer="MIND", outcome="ok", recipe='a"b\\c\nd')
    metrics.count("pandora_calls_total", layer="VOICE", outcome="ok", recipe="x")
    metrics.gauge("pandora_server_running", 2, server="s")
    metrics.flush()
    assert metrics.path.read_text() == (
        "# HELP pandora_calls_total Calls of models, by recipe, layer and outcome.\n"
        "# TYPE pandora_calls_total counter\n"
        'pandora_calls_total{layer="MIND",outcome="ok",recipe="a\\"b\\\\c\\nd"} 1.0\n'
        'pandora_calls_total{layer="VOICE",outcome="ok",recipe="x"} 1.0\n'
        "# HELP pandora_server_running Calls that run now, by server.\n"
        "# TYPE pandora_server_running gauge\n"
        'pandora_server_running{server="s"} 2.0\n'
    )
    assert len(read_metrics(metrics.path)) == 3


def test_it_is_written_every_few_seconds_and_at_the_end(tmp_path: Path) -> None:
    """A call does not wait for the disk each time."""
    time = _Time()
    metrics = MetricsFile(tmp_path, report=message, clock=time, every_s=5)
    metrics.count("pandora_aborts_total")
    assert not metrics.path.exists()
    time.now = 5.0
    metrics.count("pandora_aborts_total")
    assert read_metrics(metrics.path) == {("pandora_aborts_total", ()): 2.0}


def test_a_damaged_line_is_passed_over(tmp_path: Path) -> None:
    """The others go on counting."""
    metrics = MetricsFile(tmp_path, report=message)
    metrics.count("pandora_aborts_total")
    metrics.flush()
    metrics.path.write_text(metrics.path.read_text() + "pandora_calls_total{layer= 3\nhalf a li")
    metrics.count("pandora_aborts_total")
    metrics.flush()
    assert read_metrics(metrics.path) == {("pandora_aborts_total", ()): 2.0}


def test_a_disk_that_refuses_is_reported_once(tmp_path: Path) -> None:
    """And takes nothing from the call."""
    (tmp_path / "metrics").write_text("a file stands here")
    texts: list[str] = []
    metrics = MetricsFile(tmp_path, report=texts.append)
    for _ in range(3):
        metrics.count("pandora_aborts_total")
        metrics.flush()
    assert len(texts) == 1 and "metrics are not written" in texts[0]


def test_counts_of_a_failed_write_go_into_the_next_one(tmp_path: Path) -> None:
    """A full or locked disk delays counts, and an older gauge does not replace a newer one."""
    obstacle = tmp_path / "metrics"
    obstacle.write_text("a file stands here")
    metrics = MetricsFile(tmp_path, report=lambda sentence: None)
    metrics.count("pandora_aborts_total", 2)
    metrics.gauge("pandora_server_running", 1, server="a")
    metrics.gauge("pandora_server_running", 1, server="b")
    metrics.flush()
    metrics.count("pandora_aborts_total")
    metrics.gauge("pandora_server_running", 4, server="a")
    obstacle.unlink()
    metrics.flush()
    metrics.flush()
    assert read_metrics(metrics.path) == {
        ("pandora_aborts_total", ()): 3.0,
        ("pandora_server_running", (("server", "a"),)): 4.0,
        ("pandora_server_running", (("server", "b"),)): 1.0,
    }


def test_seconds_of_calls_are_a_summary(tmp_path: Path) -> None:
    """Sum and count are one metric, and read back as they were written."""
    metrics = MetricsFile(tmp_path, report=message)
    metrics.count("pandora_call_seconds_sum", 1.25, layer="MIND")
    metrics.count("pandora_call_seconds_count", layer="MIND")
    metrics.flush()
    assert metrics.path.read_text().splitlines()[1:] == [
        "# TYPE pandora_call_seconds summary",
        'pandora_call_seconds_count{layer="MIND"} 1.0',
        'pandora_call_seconds_sum{layer="MIND"} 1.25',
    ]
    assert set(read_metrics(metrics.path).values()) == {1.0, 1.25}


def test_compressions_are_counted_with_what_they_saved(tmp_path: Path) -> None:
    """The summary record of a compression, not the call whose document it shortened."""
    metrics = MetricsFile(tmp_path, report=message)
    listen = metrics_listener(metrics)
    compression = {"recipe": "compress_generic", "compression_applied": True, "compression_savings": 700}
    listen(call(**compression, gates={"no_fact_changed": True, "within_budget": True}))
    listen(call(recipe="plan", compression_applied=True, compression_savings=700))
    metrics.flush()
    text = metrics.path.read_text()
    assert 'pandora_compressions_total{outcome="ok",recipe="compress_generic"} 1.0' in text
    assert 'pandora_compression_saved_tokens_total{recipe="compress_generic"} 700.0' in text and '{outcome="ok",recipe="plan"}' not in text


@pytest.mark.parametrize("name", HELP)
def test_every_metric_is_counted_somewhere(name: str) -> None:
    """No metric is declared that the code never counts or sets."""
    use = re.compile(rf'\.(?:count|gauge)\(\s*"{name}(?:_sum|_count)?"')
    assert any(use.search(path.read_text()) for path in PACKAGE.rglob("*.py"))
