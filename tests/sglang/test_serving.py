"""`pandora serve` with the real server: started, found well, killed and back, woken by a call, ended."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app.composition import open_counter, open_runtime
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer
from pandora_dagster.errors import BadAnswerError
from pandora_dagster.runtime.token_counter import TokenCounter
from pandora_dagster.settings import load_settings
from tests.faults.processes import PANDORA, environment
from tests.runtime.serving_environment import alive, free_port, until
from tests.runtime.sglang_packs import pack
from tests.sglang.commands import pandora
from tests.sglang.real_servers import CONTEXT, ENVIRONMENT, MODEL, READY_S, REPOSITORY

IDLE_S = 6
OPTIONS = [
    *("--device=cpu", "--attention-backend=torch_native", "--max-total-tokens=65536", "--grammar-backend=xgrammar"),
    *("--reasoning-parser=qwen3", "--sleep-on-idle", "--max-running-requests=16"),
]
_CALLS = itertools.count(1)


@dataclass
class Served:
    """A store, and `pandora serve` over it."""

    root: Path
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        """Serve, unless it is served already."""
        if self.process is None or self.process.poll() is not None:
            with (self.root / "stderr").open("ab") as printed_text:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", PANDORA, "serve"], env=environment(self.root), cwd=self.root, stderr=printed_text, text=True
                )

    def states(self) -> dict[str, str]:
        report = self.root / "serving" / "serving.json"
        return {name: one["state"] for name, one in json.loads(report.read_text())["servers"].items()} if report.exists() else {}

    def until(self, name: str, state: str) -> None:
        def stands() -> bool:
            assert self.process and self.process.poll() is None, self.printed_text()
            assert self.states().get(name) != "given up", self.printed_text()
            return self.states().get(name) == state

        until(stands, f"{name} {state}", seconds=READY_S)

    def pid(self, name: str) -> int:
        return int(json.loads((self.root / "serving" / f"{name}.process").read_text())["pid"])

    def printed_text(self) -> str:
        return (self.root / "stderr").read_text()


def _group(pid: int) -> list[int]:
    """The living processes of a server."""

    def group_of(entry: Path) -> str:
        try:
            return (entry / "stat").read_text().rpartition(")")[2].split()[2]
        except OSError:
            return ""

    everyone = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [int(entry.name) for entry in everyone if group_of(entry) == str(pid) and alive(int(entry.name))]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`tiny` for every layer but EYES, whose server is cold."""
    if not (MODEL / ".made").exists():
        pytest.fail(f"{MODEL.relative_to(ENVIRONMENT.parent)} is missing: make test-sglang builds it", pytrace=False)
    root = tmp_path_factory.mktemp("served")
    program = [
        "env",
        "OMP_NUM_THREADS=1",
        str(ENVIRONMENT / "bin" / "python"),
        str(REPOSITORY / "tests" / "sglang" / "server" / "launch.py"),
    ]
    launch = {"command": program, "model_path": str(MODEL), "memory_fraction": 0.1, "options": OPTIONS, "start_s": READY_S}
    servers = {
        "tiny": {"base_url": f"http://127.0.0.1:{free_port()}/v1", "model": "tiny", "context_length": CONTEXT, "launch": launch},
        "eyes": {
            "base_url": f"http://127.0.0.1:{free_port()}/v1",
            "model": "sees",
            "context_length": CONTEXT,
            "launch": launch | {"cold": True, "idle_s": IDLE_S},
        },
    }
    layers: dict[str, Any] = {layer.value: {"server": "tiny", "temperature": 1.0} for layer in ModelLayer}
    layers["EYES"]["server"] = "eyes"
    (root / "runtime.yaml").write_text(json.dumps({"preset": "p", "presets": {"p": {"servers": servers, "layers": layers}}}))
    one = Served(root)
    try:
        yield one
    finally:
        if one.process and one.process.poll() is None:
            one.process.terminate()
            one.process.wait(90)


@pytest.fixture
def served(store: Served) -> Served:
    """The store, with its hot server ready, whatever the test before it did."""
    store.start()
    store.until("tiny", "ready")
    return store


def ask(served: Served, layer: ModelLayer, **changes: Any) -> ModelAnswer:
    """One call as the project makes it, over the store's own runtime file."""
    settings = load_settings({"PANDORA_ROOT": str(served.root), "PANDORA_RUNTIME": "sglang"})

    async def work() -> ModelAnswer:
        runtime = open_runtime(settings, _counter())
        try:
            asked = pack(layer=layer, call_id=f"serving-{next(_CALLS)}", max_output_tokens=400, **changes)
            return await runtime.complete(asked, timeout_s=120)
        finally:
            await runtime.aclose()

    return asyncio.run(work())


def _counter() -> TokenCounter:
    return open_counter()


def usable(served: Served, layer: ModelLayer, **changes: Any) -> ModelAnswer:
    """An answer of a random model, asked again where it is empty or cut."""
    for _ in range(8):
        try:
            return ask(served, layer, **changes)
        except BadAnswerError:
            continue
    raise AssertionError("8 unusable answers in a row")


def findings(served: Served) -> tuple[int, dict[str, dict[str, Any]]]:
    code, out, err = pandora(served.root, "doctor", "--json")
    assert out, err
    return code, {f["part"]: f for f in json.loads(out)}


def test_doctor_finds_all_well(served: Served) -> None:
    """Every layer and every ability of the server, the cold one asleep; in reasonable time."""
    began = time.monotonic()
    code, found = findings(served)
    assert code == 0, found
    assert time.monotonic() - began < 60  # with the interpreter's own start on a busy machine; doctor itself asks for 6 s at most
    assert found["serving"]["says"] == "tiny ready, eyes asleep"
    able = found["server tiny"]["says"]
    for what in ("chat template", "structured output", "prefix cache", "metrics"):
        assert what in able
    assert f"context {CONTEXT}" in found["layer REFLEX"]["says"] and "against 100 ms" in found["layer REFLEX"]["says"]
    assert "asleep; the first call starts it" in found["layer EYES"]["says"]


def test_a_killed_server_comes_back(served: Served) -> None:
    """kill -9: nothing of it stays, it is started again, and answers."""
    pid = served.pid("tiny")
    everyone = _group(pid)
    assert len(everyone) >= 3, "SGLang works with several processes"
    os.kill(pid, signal.SIGKILL)
    until(lambda: served.states()["tiny"] != "ready", "its death is noticed")
    until(lambda: not any(map(alive, everyone)), "its other processes end", seconds=60)
    served.until("tiny", "ready")
    assert served.pid("tiny") != pid
    assert usable(served, ModelLayer.REFLEX, output_schema={"enum": ["yes", "no"]}).model == "tiny"
    assert findings(served)[0] == 0


def test_a_call_wakes_the_cold_server(served: Served) -> None:
    """EYES' call waits for its server and is answered; left alone, the server ends."""
    assert served.states()["eyes"] == "asleep"
    assert usable(served, ModelLayer.EYES, output_schema={"enum": ["yes", "no"]}).model == "sees"
    pid = served.pid("eyes")
    served.until("eyes", "asleep")
    assert _group(pid) == []


def test_ctrl_c_ends_all(served: Served) -> None:
    """Nothing runs afterwards, and a call of a cold layer is reported what is missing."""
    everyone = _group(served.pid("tiny"))
    assert served.process
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(90) == 0, served.printed_text()
    assert everyone and not any(map(alive, everyone)) and not list((served.root / "serving").glob("*.process"))
    code, found = findings(served)
    assert code == 1 and found["layer MIND"]["remedy"] == found["layer EYES"]["remedy"] == "Start pandora serve."
