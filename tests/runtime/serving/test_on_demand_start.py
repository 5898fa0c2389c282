"""Calls of a cold layer: they wake its server, wait for it, or say why it does not come."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import ModelError, RuntimeUnreachableError
from pandora_dagster.runtime.serving.on_demand_start import OnDemandStart
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.endpoints import RuntimeFile, select_endpoints
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang
from tests.runtime.serving_environment import LAYERS, World, free_port
from tests.runtime.sglang_packs import pack


def runtime_of(port: int, root: Path, **launch: Any) -> SglangRuntime:
    eyes = {"base_url": f"http://127.0.0.1:{port}/v1", "model": "tiny", "context_length": 4_096, "launch": {"cold": True, **launch}}
    use = {layer: {"server": "eyes", "temperature": 0} for layer in LAYERS}
    file = RuntimeFile.model_validate({"preset": "p", "presets": {"p": {"servers": {"eyes": eyes}, "layers": use}}})
    return SglangRuntime(select_endpoints(file, source="runtime.yaml"), keys={}, starter=OnDemandStart(ServingFolder(root), poll_s=0.05))


def called(port: int, root: Path, server: FakeSglang | None = None, **launch: Any) -> str:
    """The answer of one EYES call, or the error that it ends in."""

    async def work() -> str:
        runtime = runtime_of(port, root, **launch)
        try:
            return (await runtime.complete(pack(layer=ModelLayer.EYES), timeout_s=5)).text
        finally:
            await runtime.aclose()

    async def beside() -> str:
        if server is None:
            return await work()
        async with server:
            return await work()

    return asyncio.run(beside())


def test_a_server_that_is_there_is_called_at_once(tmp_path: Path) -> None:
    """Whoever started it: the call leaves its mark and goes through."""
    server = FakeSglang(port=free_port())
    assert called(server.port, tmp_path, server) == '{"answer": "yes"}'
    assert (tmp_path / "serving" / "eyes.wanted").exists()


def test_without_a_serve_the_call_says_so(tmp_path: Path) -> None:
    """Nobody would start it: the call does not wait."""
    with pytest.raises(RuntimeUnreachableError, match="no pandora serve runs for it over") as caught:
        called(free_port(), tmp_path)
    assert caught.value.hint == "Start pandora serve over this store." and caught.value.retryable


def test_a_serve_that_was_killed_is_none(tmp_path: Path) -> None:
    """What it wrote last does not make a call wait."""
    folder = ServingFolder(tmp_path)
    folder.path.mkdir()
    folder.write_statuses({"eyes": ServerStatus(state="asleep")})
    result = json.loads((folder.path / "serving.json").read_text())
    (folder.path / "serving.json").write_text(json.dumps(result | {"identity": "another/1"}))
    with pytest.raises(RuntimeUnreachableError, match="no pandora serve runs"):
        called(free_port(), tmp_path)


def failing(tmp_path: Path, standing: ServerStatus, **launch: Any) -> ModelError:
    folder = ServingFolder(tmp_path)
    folder.path.mkdir()
    folder.write_statuses({"eyes": standing})
    with pytest.raises(ModelError) as caught:
        called(free_port(), tmp_path, **launch)
    return caught.value


def test_a_server_that_was_given_up(tmp_path: Path) -> None:
    """The call ends with why, and where the log lies."""
    error = failing(tmp_path, ServerStatus(state="given up", says="ended with exit code 3; 5 times"))
    assert "could not be started (ended with exit code 3)" in str(error) and "eyes.log" in error.hint


def test_a_start_that_takes_too_long(tmp_path: Path) -> None:
    """The wait has its own limit."""
    assert "was not ready 0.3 s after the call" in str(failing(tmp_path, ServerStatus(state="starting"), start_s=0.3))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path / "store", {"first": {}, "eyes": {"layers": ["EYES"], "cold": True, "idle_s": 600}}).write().serve()
    yield one
    one.end_all()


def test_a_call_wakes_the_server(served: World) -> None:
    """The first call starts it and waits; here the stand-in answers nothing but its health, and refuses the call once it is up."""
    served.until("eyes", "asleep")
    failed: list[ModelError] = []

    def call() -> None:
        try:
            called(served.ports["eyes"], served.root, start_s=20)
        except ModelError as error:
            failed.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    served.until("eyes", "ready")
    caller.join()
    assert "status 501" in str(failed[0]) and served.ended() == 0
