"""A server that is killed in the middle of a turn and comes back: the turn goes on where it stopped."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import ModelError, RuntimeUnreachableError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from tests.runtime.sglang_packs import endpoints, pack
from tests.sglang.real_servers import CONTEXT, RealSglang

FIRST = "query_analysis"
ENDLESS = {"output_schema": {"type": "array", "minItems": 4_000, "items": {"enum": ["a chair"]}}, "max_output_tokens": 16_000}


@dataclass
class Day:
    """What happened: the turn that was under way, and what it looked like before and after."""

    app: App
    key: TurnKey
    broken: list[ModelError]
    """Of the answer that another caller was listening to."""
    halted: list[PhaseReport]
    stood: Manifest
    resumed: list[PhaseReport]


@pytest.fixture(scope="module")
def day(servers: dict[str, RealSglang], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    server = servers["tiny"]
    layers = {name: {"temperature": 1.0} for name in ("REFLEX", "NERVES", "MIND", "VOICE")}
    served = endpoints(server.base_url, layers=layers, context_length=CONTEXT)
    root = tmp_path_factory.mktemp("store")
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), runtime=SglangRuntime(served, keys={}))
    key, halted, broken = _interrupted(app, server)
    stood = app.turns.manifest(key)
    server.start().ready()
    resumed: list[PhaseReport] = []
    app.run_turn(key, on_report=resumed.append)
    yield Day(app, key, broken, halted, stood, resumed)
    app.close()


def _interrupted(app: App, server: RealSglang) -> tuple[TurnKey, list[PhaseReport], list[ModelError]]:
    """A turn during whose second phase the server died. A random model may fail the first one: then the next turn is taken."""
    for _ in range(8):
        key = app.start("Which chair did we order?", user="anna", session="s1")
        reports: list[PhaseReport] = []
        broken: list[ModelError] = []
        listener = threading.Thread(target=_listen, args=(server, broken))
        killer = threading.Timer(0.03, server.kill)

        app.run_turn(key, on_report=partial(_heard, server, reports, listener, killer))
        if killer.ident is not None:
            killer.join()
            listener.join()
            return key, reports, broken
    raise AssertionError("8 turns in a row halted at their first phase")


def _heard(server: RealSglang, reports: list[PhaseReport], listener: threading.Thread, killer: threading.Thread, one: PhaseReport) -> None:
    """Once the first phase stands, let somebody listen to a long answer, and the server die while the second phase calls it."""
    reports.append(one)
    if one.phase == FIRST and one.halt is None:
        listener.start()
        _until_running(server)
        killer.start()


def _until_running(server: RealSglang) -> None:
    """Returns once the listener's request is being worked on."""
    for _ in range(600):
        if server.running() > 0:
            return
        threading.Event().wait(0.05)
    raise AssertionError("the request did not begin within 30 s")


def _listen(server: RealSglang, broken: list[ModelError]) -> None:
    async def work() -> None:
        runtime = SglangRuntime(endpoints(server.base_url, context_length=CONTEXT), keys={})
        try:
            await runtime.complete(pack(call_id="listener", temperature=1.0, **ENDLESS), timeout_s=300, on_words=lambda _: None)
        except ModelError as error:
            broken.append(error)
        finally:
            await runtime.aclose()

    asyncio.run(work())


def test_the_turn_halts_and_says_why(day: Day) -> None:
    """The phase under way halts as unreachable, with the endpoint; the phase before it stands."""
    halt = day.halted[-1].halt
    assert halt and halt.type == "runtime_unreachable", halt
    assert "http://127.0.0.1:" in halt.message and halt.hint
    assert day.stood.state == "halted" and day.stood.intervention == halt.id
    assert [report.phase for report in day.halted][:2] == ["turn_request", FIRST] and day.stood.has_finished(FIRST)
    assert not day.stood.has_finished(day.halted[-1].phase)


def test_a_listener_is_reported(day: Day) -> None:
    """Who was in the middle of a streamed answer learns that the server is gone, and that trying again can help."""
    (error,) = day.broken
    assert type(error) is RuntimeUnreachableError and error.retryable


def test_the_turn_goes_on_where_it_stopped(day: Day) -> None:
    """With the server back, the phase that halted runs and nothing before it runs again."""
    assert day.resumed[0].phase == day.halted[-1].phase
    assert FIRST not in [report.phase for report in day.resumed]
    now = day.app.turns.manifest(day.key)
    assert [p for p in now.phases if p.phase == FIRST] == [p for p in day.stood.phases if p.phase == FIRST]
    assert all(r.halt is None or r.halt.type != "runtime_unreachable" for r in day.resumed)


def test_nothing_is_half_written(day: Day) -> None:
    """The documents are whole: they load against their hashes, and no temporary file is left."""
    day.app.turns.load(day.key)
    assert not list(Path(day.app.folder(day.key)).rglob("*.part"))


def test_each_call_of_the_turn_left_one_record(day: Day) -> None:
    """The call that met the dead server is a record of its own, beside the one that was made when it was back."""
    phase = day.halted[-1].phase
    lines = (day.app.folder(day.key) / "calls.jsonl").read_text().splitlines()
    assert sum(f'"phase":"{FIRST}"' in line for line in lines) == 1
    served = [line for line in lines if f'"phase":"{phase}"' in line]
    assert len(served) >= 2 and '"success":false' in served[0]
