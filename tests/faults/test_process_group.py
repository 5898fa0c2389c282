"""Programs that run together, and `pandora ui` as one: page and daemon begin and end with it, and a file in the inbox becomes turns."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.conftest import REPOSITORY

RUN = (
    "import json, os, sys; from pandora_dagster.cli.serve_commands import run_process_group; "
    "sys.exit(run_process_group(json.loads(sys.argv[1]), os.environ))"
)
SLEEPS = "import time, os; open(os.path.join({folder!r}, {name!r}), 'w').write(str(os.getpid())); time.sleep(60)"


def together(folder: Path, *scripts: str) -> "subprocess.Popen[bytes]":
    commands = [[sys.executable, "-c", script] for script in scripts]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen([sys.executable, "-c", RUN, json.dumps(commands)], env=environment, cwd=folder)


def sleeper(folder: Path, name: str) -> str:
    return SLEEPS.format(folder=str(folder), name=name)


def number(path: Path, seconds: float = 30) -> int:
    deadline = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path.name} did not begin"
        time.sleep(0.05)
    return int(path.read_text())


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_all_end_when_asked_to(tmp_path: Path, how: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end every program; the exit code says that all is well."""
    process = together(tmp_path, sleeper(tmp_path, "one"), sleeper(tmp_path, "two"))
    pids = [number(tmp_path / name) for name in ("one", "two")]
    process.send_signal(how)
    assert process.wait(30) == 0 and not any(is_there(pid) for pid in pids)


def test_one_that_ends_takes_the_others_with_it(tmp_path: Path) -> None:
    """Its exit code is what is left of it; one that does not end on SIGTERM is killed."""
    process = together(tmp_path, sleeper(tmp_path, "one"), "import time, sys; time.sleep(1); sys.exit(7)")
    pid = number(tmp_path / "one")
    assert process.wait(40) == 7 and not is_there(pid)


def test_the_page_and_the_daemon_run_together(tmp_path: Path) -> None:
    """A file put into the inbox becomes turns while `pandora ui` runs; SIGTERM ends page and daemon, and the exit code is 0."""
    root = tmp_path / "store"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PANDORA_", "DAGSTER_"))}
    command = [sys.executable, "-c", "from pandora_dagster.cli.program import run; run()", "--root", str(root), "ui", "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        ui = subprocess.Popen(command, cwd=REPOSITORY, env={**kept, "PYTHONPATH": str(REPOSITORY)}, stdout=log, stderr=log)
    try:
        (root / "inbox").mkdir(parents=True)
        (root / "inbox" / "q.jsonl").write_text('{"query": "The oak desk costs 248 euros.", "user": "ann"}\n')
        deadline = time.monotonic() + 240
        while not list((root / "inbox" / "done").glob("*/q.jsonl")):
            assert time.monotonic() < deadline and ui.poll() is None, (tmp_path / "log").read_text(errors="replace")[-3_000:]
            time.sleep(0.5)
        with urlopen(f"http://127.0.0.1:{port}/server_info", timeout=30) as page:
            assert page.status == 200
    finally:
        ui.send_signal(signal.SIGTERM)
        code = ui.wait(60)
    assert code == 0
    assert '"state": "saved"' in (root / "users" / "ann" / "turns" / "turn_000001" / "turn.json").read_text()
