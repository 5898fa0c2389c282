"""The model names of the runtime file, compared with the servers when a run starts."""

from contextlib import contextmanager

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from tests.runtime.fake_sglang import FakeSglang
from tests.runtime.openai_servers import on_a_thread
from tests.runtime.serving_environment import free_port
from tests.runtime.sglang_packs import endpoints


@contextmanager
def serving(**options):
    """A server with the model `tiny`, on a thread and loop of its own."""
    with on_a_thread(FakeSglang(**options)) as server:
        yield server


@pytest.fixture
def address():
    with serving() as server:
        yield server.base_url


@pytest.mark.parametrize(("model", "starts"), [("tiny", True), ("another", False)])
def test_a_wrong_model_name_starts_nothing(tmp_path, address, model, starts):
    """The right one starts a turn; a wrong one is named and nothing is written."""
    settings = load_settings({"PANDORA_ROOT": str(tmp_path / "store")})
    app = open_app(settings, runtime=SglangRuntime(endpoints(address, model=model), keys={}))
    try:
        if starts:
            assert app.start("hello").number == 1
        else:
            with pytest.raises(ConfigurationError, match="another"):
                app.start("hello")
            assert not settings.root.exists()
    finally:
        app.close()


def test_a_server_that_is_down_is_for_the_call_to_find(tmp_path):
    """It may be up by then."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), runtime=SglangRuntime(endpoints("http://127.0.0.1:9/v1"), keys={}))
    assert app.start("hello").number == 1
    app.close()


def test_a_server_that_comes_up_with_another_model_answers_no_call(tmp_path):
    """Nobody was there when the turn began: whoever is there at its first call is asked for the model."""
    port = free_port()
    runtime = SglangRuntime(endpoints(f"http://127.0.0.1:{port}/v1"), keys={})
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), runtime=runtime)
    key = app.start("hello")
    with serving(port=port, model="another") as server:
        report = app.run_turn(key, on_report=lambda _: None)
        assert report.halt and not server.requests
        (opened,) = app.interventions.list()
        assert opened.type == "config_error" and "serves another: expected tiny" in opened.message
    app.close()
