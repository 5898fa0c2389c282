"""What `pandora doctor` says of layers, servers and what keeps them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app.health import Finding
from pandora_dagster.app.servers import layer_health
from pandora_dagster.app.servers.layer_health import check_servers
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.endpoints import RuntimeFile, select_endpoints
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from tests.runtime.fake_sglang import FakeSglang
from tests.runtime.serving_environment import LAYERS, free_port


def examined(root: Path, server: FakeSglang, *, context: int = 32_768, eyes: dict[str, Any] | None = None) -> dict[str, Finding]:
    """Findings by part; every layer on `server` but EYES, where a server of its own is reported."""

    async def work() -> tuple[Finding, ...]:
        async with server:
            fields: dict[str, Any] = {"one": {"base_url": server.base_url, "model": "tiny", "context_length": context}}
            use = {layer: {"server": "one", "temperature": 0} for layer in LAYERS}
            if eyes is not None:
                fields["eyes"] = {
                    "base_url": f"http://127.0.0.1:{free_port()}/v1",
                    "model": "sees",
                    "context_length": 4_096,
                    "launch": eyes,
                }
                use["EYES"] = {"server": "eyes", "temperature": 0}
            file = RuntimeFile.model_validate({"preset": "p", "presets": {"p": {"servers": fields, "layers": use}}})
            runtime = SglangRuntime(select_endpoints(file, source="runtime.yaml"), keys={})
            calls = DuckCallIndex(DuckDBFile(root / "indexes" / "call_index.duckdb", CALL_SCHEMA))
            try:
                return await check_servers(runtime, open_recipes(), TokenRatioFile(root), calls, ServingFolder(root))
            finally:
                await runtime.aclose()

    return {finding.part: finding for finding in asyncio.run(work())}


def able(**changes: Any) -> FakeSglang:
    return FakeSglang(**{"says": lambda _: '{"ok": true}', "context": 32_768, **changes})


def test_all_is_well(tmp_path: Path) -> None:
    """Each layer with its model, context and calibration, REFLEX against its 100 ms, and the server once."""
    TokenRatioFile(tmp_path).keep(ModelLayer.MIND, "tiny", 1.25)
    found = examined(tmp_path, able())
    assert list(found) == [*(f"layer {layer}" for layer in LAYERS_IN_ORDER), "server one"]
    assert all(finding.ok for finding in found.values())
    assert (
        ": tiny, context 32768, small calls " in found["layer MIND"].says
        and "1.25 counted tokens per planned token, 0 calls" in found["layer MIND"].says
    )
    assert "ms against 100 ms, token ratio not measured yet (1.1 counted tokens per planned token assumed)" in found["layer REFLEX"].says
    assert found["server one"].says.startswith("chat template, structured output, prefix cache (")


LAYERS_IN_ORDER = tuple(layer.value for layer in ModelLayer)


def test_what_lacks_is_reported_once(tmp_path: Path) -> None:
    """A shared server's fault names the layers that it concerns."""
    found = examined(tmp_path, able(has_metrics=False))
    assert not found["server one: metrics"].ok and found["server one: metrics"].says.startswith("REFLEX, NERVES")
    assert found["server one"].ok and [part for part in found if "metrics" in part] == ["server one: metrics"]


def test_a_slow_reflex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It works, so nothing fails; what would help is reported."""
    monkeypatch.setattr(layer_health, "MAX_REFLEX_LATENCY_MS", 1)
    found = examined(tmp_path, able(takes_s=0.02))
    assert found["layer REFLEX"].ok and found["layer REFLEX"].remedy.startswith("It works, slowly") and not found["layer MIND"].remedy


def test_a_small_context(tmp_path: Path) -> None:
    """A server that takes less than the runtime file promises is reported so for its layers."""
    found = examined(tmp_path, able(context=4_096))
    assert "takes 4096 tokens: expected the 32768 of runtime.yaml" in found["layer MIND"].says and not found["layer MIND"].ok


def test_a_context_under_the_recipes_budgets(tmp_path: Path) -> None:
    """What a layer's recipes may need and its server cannot take is reported for that layer, and for no other."""
    found = examined(tmp_path, able(context=9_000), context=9_000)
    assert "context 9000 is under the largest recipe budget 12000" in found["layer MIND"].says and not found["layer MIND"].ok
    assert found["layer REFLEX"].ok and found["server one"].ok


def test_a_context_that_the_runtime_file_cuts_short(tmp_path: Path) -> None:
    """Calls are planned with runtime.yaml's length, however much the server takes; what to change is reported."""
    found = examined(tmp_path, able(context=32_768), context=9_000)
    fields = found["layer MIND"]
    assert not fields.ok and "context 9000 is under the largest recipe budget 12000" in fields.says
    assert fields.remedy.startswith("Raise context_length in runtime.yaml, up to the 32768 that the server takes")
    untold = examined(tmp_path, able(lists_context=False), context=9_000)["layer MIND"]
    assert not untold.ok and untold.remedy.startswith("Serve the model with a longer context")
    assert found["layer REFLEX"].ok


COLD: dict[str, tuple[ServerStatus | None, bool, bool, str]] = {
    "nobody serves": (None, True, False, "is started by the first call, and no pandora serve runs"),
    "hot, nobody serves": (None, False, False, "refused the connection: expected a reachable model server, and no pandora serve runs"),
    "asleep": (ServerStatus(state="asleep"), True, True, "asleep; the first call starts it"),
    "hot and starting": (ServerStatus(state="starting", says="3 s"), False, False, "starting: 3 s"),
    "given up": (ServerStatus(state="given up", says="ended with exit code 3; 5 times"), True, False, "given up: ended with exit code 3"),
}


@pytest.mark.parametrize("case", COLD)
def test_a_server_of_ones_own(tmp_path: Path, case: str) -> None:
    """What `pandora serve` has to do with a server that does not answer."""
    standing, cold, ok, says = COLD[case]
    if standing is not None:
        folder = ServingFolder(tmp_path)
        folder.path.mkdir()
        folder.write_statuses({"eyes": standing})
    found = examined(tmp_path, able(), eyes={"cold": cold})
    assert found["layer EYES"].ok is ok and says in found["layer EYES"].says
    assert ("serving" in found) is (standing is not None) and found["layer MIND"].ok
    if case == "given up":
        assert not found["serving"].ok and "eyes.log" in found["serving"].remedy
