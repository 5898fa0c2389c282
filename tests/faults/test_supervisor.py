"""`pandora serve` over stand-in servers that are real processes: started, kept up, ended, whatever dies."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.runtime.serving.launch_command import services
from pandora_dagster.runtime.serving.server_supervisor import ServerState, ServingSupervisor, SupervisionTiming
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from tests.runtime.serving_environment import World, alive, on_a_terminal, until

Open = Callable[..., World]
GIVEN_UP_S = 120.0
"""Five starts of a Python program one after the other: a loaded machine takes seconds for each."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Open]:
    opened: list[World] = []

    def make(**servers: dict[str, Any]) -> World:
        opened.append(World(tmp_path / "store", servers).write())
        return opened[-1]

    yield make
    for one in opened:
        one.end_all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_servers_start_and_stop(world: Open, number: int) -> None:
    """Both come up at once, each with its log; a signal ends them and what they started, and the store is nobody's again."""
    one = world(first={"options": ["--starts-in=0.5"]}, second={"layers": ["VOICE"]}).serve()
    one.until("first", "ready")
    one.until("second", "ready")
    assert one.get("first", "/health") == one.get("second", "/health") == 200
    everyone = [one.pid("first"), one.pid("second"), one.child("first"), one.child("second")]
    assert "serving first-model" in (one.root / "serving" / "first.log").read_text()
    assert one.ended(number) == 0
    assert not any(map(alive, everyone)) and one.states() == {} and not list((one.root / "serving").glob("*.process"))
    assert "first: ready" in one.output() and "first: stopped" in one.output()


def test_a_killed_server_comes_back(world: Open) -> None:
    """kill -9 of a server: the rest of its processes ends, it is started again, the others do not notice."""
    one = world(first={}, second={"layers": ["VOICE"]}).serve()
    one.until("first", "ready")
    one.until("second", "ready")
    pid, child, other = one.pid("first"), one.child("first"), one.pid("second")
    os.kill(pid, signal.SIGKILL)
    until(lambda: "first: restarts: ended with exit code 137" in one.output(), "the death is told")
    one.until("first", "ready")
    assert one.pid("first") != pid and one.pid("second") == other and alive(other)
    until(lambda: not alive(child), "what the killed server had started ends")
    assert one.ended() == 0


def test_a_server_that_always_dies_is_given_up(world: Open) -> None:
    """After five deaths it is reported as given up, with the end of its log; the other goes on."""
    one = world(first={}, second={"options": ["--fails=3"], "layers": ["VOICE"]}).serve()
    one.until("second", "given up", seconds=GIVEN_UP_S)
    one.until("first", "ready")
    until(lambda: "ended with exit code 3; 5 times within 600 s; the end of its log:" in one.output(), "the end is reported")
    assert "out of memory, as if" in one.output()
    log = one.root / "serving" / "second.log"
    assert log.exists() and log.with_name("second.log.1").exists()
    assert one.ended() == 0


def test_a_server_that_does_not_listen_is_killed(world: Open) -> None:
    """What does not end on SIGTERM ends after the grace."""
    one = world(first={"options": ["--stubborn"]}).serve()
    one.until("first", "ready")
    pid = one.pid("first")
    assert one.ended() == 0 and not alive(pid)


def test_a_server_that_is_never_ready(world: Open) -> None:
    """A start has its limit."""
    one = world(first={"options": ["--starts-in=600"], "start_s": 0.4}).serve()
    until(lambda: "restarts: was not ready after 0.4 s" in one.output(), "the slow start is told")
    assert one.ended() == 0


def test_a_server_that_stays_silent_is_started_again(world: Open) -> None:
    """Its process lives and answers no health check: a moment of that is reported, a long one ends it, and a new one comes."""
    one = world(first={}, second={"layers": ["VOICE"]})
    mute = one.root / "mute"
    one.servers["first"]["options"] = [f"--mute={mute}"]
    one.write().serve()
    one.until("first", "ready")
    one.until("second", "ready")
    pid, other = one.pid("first"), one.pid("second")
    mute.touch()
    one.until("first", "silent")
    mute.unlink()
    one.until("first", "ready")
    assert one.pid("first") == pid
    mute.touch()
    until(lambda: "first: restarts: its /health did not answer for 3 s" in one.output(), "the silence is told")
    mute.unlink()
    until(lambda: one.states().get("first") == "ready" and one.pid("first") != pid, "a new one is ready")
    assert not alive(pid) and one.pid("second") == other and alive(other)
    assert one.ended() == 0


def test_how_far_a_start_is_can_be_read_from_the_folder(world: Open) -> None:
    """So that doctor tells the seconds while a large model is loaded."""
    one = world(first={"options": ["--starts-in=600"]}).serve()
    folder = ServingFolder(one.root)
    until(
        lambda: (report := (folder.statuses() or {}).get("first")) and report.state == "starting" and report.says not in ("", "0 s"),
        "the seconds go on",
    )
    assert one.ended() == 0


def test_the_folder_is_updated_of_seconds_now_and_then(tmp_path: Path) -> None:
    """Another state at once; the same with other words only after the pause between two times."""
    folder = ServingFolder(tmp_path)
    folder.path.mkdir()
    one = services(load_endpoints(World(tmp_path, {"first": {}}).write().root / "runtime.yaml"), python="python3")
    supervisor = ServingSupervisor(
        one, folder, command=lambda service: service.command, environ={}, timing=SupervisionTiming(status_interval_s=0.3)
    )

    def output(state: ServerState, says: str) -> ServerStatus:
        supervisor.report("first", ServerStatus(state=state, says=says))
        return (folder.statuses() or {})["first"]

    assert {output(ServerState.STARTING, f"{second} s").says for second in range(20)} == {"0 s"}
    assert output(ServerState.READY, "started in 20 s").says == "started in 20 s"
    assert output(ServerState.STARTING, "0 s").says == "0 s" == output(ServerState.STARTING, "1 s").says
    time.sleep(0.35)
    assert output(ServerState.STARTING, "2 s").says == "2 s"


def test_nothing_outlives_a_killed_serve(world: Open) -> None:
    """kill -9 of `pandora serve` itself: its servers end, and the next one begins with nothing in its way."""
    one = world(first={}).serve()
    one.until("first", "ready")
    pid, child = one.pid("first"), one.child("first")
    one.ended(signal.SIGKILL)
    until(lambda: not alive(pid) and not alive(child), "the servers end with it")
    one.serve().until("first", "ready")
    assert one.pid("first") != pid and one.ended() == 0


def test_orphans_are_ended_at_the_next_start(world: Open) -> None:
    """Serve and guard killed at once, and a server that none of it reached: the next start ends it before it begins."""
    one = world(first={}).serve()
    one.until("first", "ready")
    orphan = subprocess.Popen(["sleep", "600"], start_new_session=True)
    one.ended(signal.SIGKILL)
    record = one.root / "serving" / "first.process"
    until(lambda: not record.exists(), "the guard is done")
    fields = Path(f"/proc/{orphan.pid}/stat").read_bytes().rpartition(b")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    record.write_text(json.dumps({"pid": orphan.pid, "identity": f"{boot}/{fields[19].decode()}"}))
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (one.root / "serving" / "gone.process").write_text(json.dumps({"pid": stranger.pid, "identity": f"{boot}/1"}))
    try:
        one.serve().until("first", "ready")
        assert orphan.wait(10) in (-signal.SIGTERM, -signal.SIGKILL) and stranger.poll() is None, "only what this store started is ended"
        assert one.ended() == 0
    finally:
        for process in (orphan, stranger):
            process.kill()
            process.wait()


def test_a_killed_leash(world: Open) -> None:
    """Should the process between them be killed, the server does not stay behind, and a new one comes."""
    one = world(first={}).serve()
    one.until("first", "ready")
    pid = one.pid("first")
    guard = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    os.kill(guard, signal.SIGKILL)
    until(lambda: not alive(pid), "the server ends")
    until(lambda: one.states() == {"first": "ready"} and one.pid("first") != pid, "a new one is ready")
    assert one.ended() == 0


def test_one_serve_a_store(world: Open) -> None:
    """A second one is refused, and the first is not disturbed."""
    one = world(first={}).serve()
    one.until("first", "ready")
    second = World(one.root, one.servers, one.ports).serve()
    assert second.process
    second.process.communicate(timeout=30)
    assert second.process.returncode == 2
    assert f"pandora serve runs over this store already (process {one.process.pid})" in one.output()  # type: ignore[union-attr]
    assert one.get("first", "/health") == 200 and one.ended() == 0


def test_a_port_that_somebody_has(world: Open) -> None:
    """It is reported before anything is started."""
    one = world(first={}, second={"layers": ["VOICE"]})
    with socket.create_server(("127.0.0.1", one.ports["second"])):
        one.serve()
        assert one.process
        one.process.communicate(timeout=30)
        assert one.process.returncode == 2
    assert f"second: port {one.ports['second']}" in one.output() and "is in use by something else" in one.output()
    assert not (one.root / "serving" / "first.log").exists()


def test_a_program_that_is_not_there(world: Open) -> None:
    """What was not found is reported, and where no server is left to keep up, it ends and says what to do."""
    one = world(first={"command": ["/nowhere/python"]}, second={"options": ["--fails=3"], "layers": ["VOICE"]}).serve()
    assert one.process
    one.process.communicate(timeout=GIVEN_UP_S)
    assert one.process.returncode == 2
    end = one.output()[one.output().index("first, second: given up: expected a server that stays up") :]
    assert "/nowhere/python: No such file or directory" in one.output() and "PANDORA_SGLANG_PYTHON" in end
    assert str(one.root / "serving") in end and (one.root / "serving" / "second.log").exists()


def test_a_cold_server_sleeps_until_it_is_called(world: Open) -> None:
    """It starts when its mark is touched, stays while it works, sleeps when nobody called for a while, and wakes again."""
    one = world(first={}, eyes={"layers": ["EYES"], "cold": True, "idle_s": 0.5})
    busy = one.root / "busy"
    one.servers["eyes"]["options"] = [f"--busy={busy}"]
    one.write().serve()
    one.until("first", "ready")
    one.until("eyes", "asleep")
    time.sleep(0.3)
    assert one.states()["eyes"] == "asleep" and one.get("eyes", "/health") == 0
    busy.write_text("1")
    mark = one.root / "serving" / "eyes.wanted"
    mark.touch()
    one.until("eyes", "ready")
    pid = one.pid("eyes")
    time.sleep(1.2)
    assert one.states()["eyes"] == "ready", "it works on a request"
    busy.write_text("0")
    one.until("eyes", "asleep")
    assert not alive(pid)
    mark.touch()
    one.until("eyes", "ready")
    assert one.pid("eyes") != pid and one.ended() == 0


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `nvidia-smi` that lists one GPU of 80,000 MiB; what is free of it stands in the file."""
    free = tmp_path / "free"
    free.write_text("80000")
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 0, Card, 80000, $(cat {free})\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return free


def test_servers_of_one_gpu(world: Open, card: Path) -> None:
    """They start one after the other, each told the fraction of what is free by then; started again, of what is free then."""
    slow = ["--starts-in=1.5"]
    one = world(
        first={"memory_fraction": 0.4, "options": slow}, second={"memory_fraction": 0.4, "layers": ["VOICE"], "options": slow}
    ).serve()
    until(lambda: sorted(one.states().values()) == ["starting", "waits"], "one waits for the other")
    before, after = sorted(one.states(), key=lambda name: one.states()[name])
    until(lambda: (one.root / "serving" / f"{before}.log").exists(), "it was told its fraction")
    card.write_text("48000")
    one.until(before, "ready")
    one.until(after, "ready")
    report = {name: (one.root / "serving" / f"{name}.log").read_text() for name in (before, after)}
    assert "--mem-fraction-static=0.400" in report[before] and "--mem-fraction-static=0.667" in report[after]
    assert one.ended() == 0


def test_models_that_do_not_fit_start_nothing(world: Open, card: Path) -> None:
    """Exit code 2, the table, and what to do; with and without --dry-run."""
    one = world(first={"memory_fraction": 0.5, "weights_gb": 60}, second={"memory_fraction": 0.4, "layers": ["VOICE"]})
    card.write_text("70000")
    for arguments in ((), ("--dry-run",)):
        one.serve(*arguments)
        assert one.process
        out, _ = one.process.communicate(timeout=60)
        assert one.process.returncode == 2 and "GPU 0: Card, 73.4 of 83.9 GB free" in out
    assert "GPU 0: 73.4 of 83.9 GB are free, 75.5 are asked for: end what else runs there, or lower memory_fraction" in one.output()
    assert not (one.root / "serving").exists()


def test_json_lines(world: Open) -> None:
    """The plan as one document, then a line for each change."""
    one = world(first={}).serve("--json")
    one.until("first", "ready")
    assert one.process
    one.process.terminate()
    out, _ = one.process.communicate(timeout=30)
    plan, _, rest = out.partition("\n}\n")
    assert json.loads(plan + "}")["servers"][0]["server"] == "first"
    assert [json.loads(line)["state"] for line in rest.splitlines()] == ["starting", "ready", "stopped"]


def test_on_a_terminal(world: Open) -> None:
    """A user sees one table that is drawn anew, and Ctrl-C ends it."""
    one = world(first={})
    code, output = on_a_terminal(one.root, lambda: one.states().get("first") == "ready")
    assert code == 0 and "ready" in output and "All servers are stopped." in output and "first-model" in output


def test_dry_run(world: Open) -> None:
    """The memory and the commands are shown, as text and as JSON; nothing is started or written."""
    one = world(first={"weights_gb": 4}, eyes={"layers": ["EYES"], "cold": True})
    one.serve("--dry-run", "--json")
    assert one.process
    out, _ = one.process.communicate(timeout=60)
    report = json.loads(out)
    assert one.process.returncode == 0 and [s["server"] for s in report["servers"]] == ["first", "eyes"]
    assert report["servers"][0]["weights_bytes"] == 4 * 10**9 and report["servers"][1]["cold"] is True
    assert "--enable-metrics" in report["servers"][0]["command"] and report["servers"][1]["layers"] == ["EYES"]
    one.serve("--dry-run")
    out, _ = one.process.communicate(timeout=60)
    assert f"--port={one.ports['eyes']}" in out and "4.0 GB" in out
    assert not (one.root / "serving").exists()
