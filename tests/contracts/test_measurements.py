"""What metrics and stores of token ratios must do, asked of the files and of the fakes in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.contracts.ports.model_runtime import TokenRatios
from pandora_dagster.stores.calls.metrics_file import MetricsFile, read_metrics
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from tests.fakes.measurement import MemoryMetrics, MemoryTokenRatios, Series

MIND, VOICE = ModelLayer.MIND, ModelLayer.VOICE
Measured = tuple[Metrics, Callable[[], dict[Series, float]]]


@pytest.fixture(params=["memory", "file"])
def is_fake(request: pytest.FixtureRequest) -> bool:
    return request.param == "memory"


@pytest.fixture
def measured(is_fake: bool, tmp_path: Path) -> Measured:
    """Metrics, and the series that they hold."""
    if is_fake:
        fake = MemoryMetrics()
        return fake, lambda: dict(fake.values)
    metrics = MetricsFile(tmp_path, report=pytest.fail, every_s=0.0)
    return metrics, lambda: read_metrics(metrics.path)


@pytest.fixture
def ratios(is_fake: bool, tmp_path: Path) -> TokenRatios:
    return MemoryTokenRatios() if is_fake else TokenRatioFile(tmp_path)


def test_a_counter_adds_and_a_gauge_has_its_last_value(measured: Measured) -> None:
    """A series is a name with its labels, in any order; counting nothing makes none."""
    metrics, read = measured
    metrics.count("pandora_calls_total", layer="MIND", outcome="ok")
    metrics.count("pandora_calls_total", 2, outcome="ok", layer="MIND")
    metrics.count("pandora_calls_total", layer="VOICE", outcome="ok")
    metrics.count("pandora_call_retries_total", 0, layer="MIND")
    for value in (3, 0, 5):
        metrics.gauge("pandora_server_places", value, server="http://127.0.0.1:30000/v1")
    assert read() == {
        ("pandora_calls_total", (("layer", "MIND"), ("outcome", "ok"))): 3.0,
        ("pandora_calls_total", (("layer", "VOICE"), ("outcome", "ok"))): 1.0,
        ("pandora_server_places", (("server", "http://127.0.0.1:30000/v1"),)): 5.0,
    }


def test_a_series_may_have_no_label(measured: Measured) -> None:
    metrics, read = measured
    metrics.count("pandora_aborts_total")
    metrics.gauge("pandora_server_waiting", 0)
    assert read() == {("pandora_aborts_total", ()): 1.0, ("pandora_server_waiting", ()): 0.0}


def test_a_ratio_is_of_one_model_on_one_layer(ratios: TokenRatios) -> None:
    """Nothing is known of another model, or of this one on another layer."""
    assert ratios.find(MIND, "tiny") is None
    ratios.keep(MIND, "tiny", 1.25)
    ratios.keep(VOICE, "tiny", 1.5)
    assert (ratios.find(MIND, "tiny"), ratios.find(VOICE, "tiny"), ratios.find(MIND, "big")) == (1.25, 1.5, None)


def test_the_last_model_of_a_layer_counts(ratios: TokenRatios) -> None:
    """Its newest ratio, also a lower one; the model before it is forgotten."""
    for model, ratio in (("tiny", 1.5), ("tiny", 1.25), ("big", 2.0)):
        ratios.keep(MIND, model, ratio)
        assert ratios.find(MIND, model) == ratio
    assert ratios.find(MIND, "tiny") is None
