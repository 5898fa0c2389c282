"""What is reported of real servers before a turn begins: health, model names, context, and which layer goes where."""

import json
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.runtime.sglang.server_status import LayerStatus
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from tests.runtime.sglang_packs import endpoints, pack, run
from tests.sglang.commands import pandora
from tests.sglang.real_servers import CONTEXT, RealSglang


def look(runtime: SglangRuntime) -> dict[ModelLayer, LayerStatus]:
    async def work() -> tuple[LayerStatus, ...]:
        try:
            return await runtime.check(timeout_s=30)
        finally:
            await runtime.aclose()

    return {status.layer: status for status in run(work)}


def test_two_servers_for_two_layers(runtime_file: Path, server: RealSglang, small: RealSglang) -> None:
    """Each layer finds its own server, model and context; all are well."""
    found = look(SglangRuntime(load_endpoints(runtime_file), keys={}))
    assert [status.message for status in found.values()] == [""] * 5
    assert {status.context for status in found.values()} == {CONTEXT}
    assert (found[ModelLayer.VOICE].endpoint, found[ModelLayer.VOICE].model) == (small.base_url, "small")
    assert (found[ModelLayer.MIND].endpoint, found[ModelLayer.MIND].model) == (server.base_url, "tiny")


def test_a_call_goes_to_its_layers_server(runtime_file: Path, server: RealSglang, small: RealSglang) -> None:
    """VOICE's call is counted by VOICE's server and by no other."""
    runtime = SglangRuntime(load_endpoints(runtime_file), keys={})
    name = "sglang:num_requests_total"
    before = server.metric(name), small.metric(name)

    async def work() -> str:
        try:
            return (await runtime.complete(pack(layer=ModelLayer.VOICE), timeout_s=60)).model
        finally:
            await runtime.aclose()

    assert run(work) == "small"
    assert (server.metric(name), small.metric(name)) == (before[0], before[1] + 1)


def test_a_wrong_model_name_is_found_before_a_turn(server: RealSglang, tmp_path: Path) -> None:
    """The server takes any name and echoes it; the check tells the difference, and no turn begins."""
    served = endpoints(server.base_url, model="larger", context_length=CONTEXT)
    runtime = SglangRuntime(served, keys={})
    assert {s.message.partition("/v1: ")[2] for s in look(runtime).values()} == {"serves tiny: expected larger"}
    app: App = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), runtime=SglangRuntime(served, keys={}))
    with pytest.raises(ConfigurationError, match="serves tiny: expected larger"):
        app.start("which chair?")
    assert list(app.turns.keys()) == []
    app.close()


def test_a_context_that_is_too_small_is_reported(server: RealSglang) -> None:
    """A runtime file that promises more than the server takes is corrected."""
    found = look(SglangRuntime(endpoints(server.base_url, context_length=2 * CONTEXT), keys={}))[ModelLayer.MIND]
    assert "takes 32768 tokens: expected the 65536" in found.message and found.remedy.startswith("Set context_length to 32768")


def test_doctor_over_real_servers(runtime_file: Path) -> None:
    """`pandora doctor` finds every layer well, and says so for each."""
    code, out, err = pandora(runtime_file.parent, "doctor", "--json")
    assert code == 0, err
    layers = {f["part"]: f for f in json.loads(out) if f["part"].startswith("layer ")}
    assert len(layers) == 5 and all(f["ok"] for f in layers.values())


def test_doctor_names_the_wrong_model(runtime_file: Path) -> None:
    """With the wrong name in the file, doctor and ask both stop with the layer, the endpoint and the remedy."""
    runtime_file.write_text(runtime_file.read_text().replace("model: small", "model: Llama"))
    code, out, _ = pandora(runtime_file.parent, "doctor", "--json")
    wrong = [f for f in json.loads(out) if not f["ok"]]
    assert code == 1 and [f["part"] for f in wrong] == ["layer VOICE"]
    assert "serves small: expected Llama" in wrong[0]["says"] and "Set model in runtime.yaml" in wrong[0]["remedy"]
    code, _, err = pandora(runtime_file.parent, "ask", "which chair?")
    assert code == 2 and "serves small: expected Llama" in err
