"""A tool that runs for long in one process: it runs without a lock, so that no other command on the same store waits for it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.processes import ended, pandora, started
from tests.fork_server import ForkedProcess

SCRIPT = "import sys; from pathlib import Path; from tests.faults.slow_tool import main; main(*map(Path, sys.argv[1:]))"
COMMANDS = (
    ("show", "anna:2"),
    ("export", "--user", "anna"),
    ("turns", "--user", "anna"),
    ("ask", "my favourite colour is red", "--user", "anna", "--session", "slow", "--json"),
    ("search", "desk", "--user", "anna", "--json"),
    ("archive", "--json"),
    ("pin", "anna:2"),
    ("index", "verify"),
    ("forget", "bob", "--yes"),
)
LEASE = "users/anna/tool_runs/turn_000002.0.lock"
LOCKS = Path("/proc/locks")


@dataclass
class SlowTurn:
    """The store, and the process whose turn anna:2 has a tool under way."""

    root: Path
    process: ForkedProcess
    released: Path

    def ended(self) -> tuple[int, str, str]:
        """The tool gets what it waits for: how the process ended."""
        self.released.touch()
        return ended(self.process)


@contextmanager
def tool_under_way(folder: Path) -> Iterator[SlowTurn]:
    """A store whose turn anna:2 has a tool under way."""
    root, released, running = folder / "store", folder / "released", folder / "running"
    slow = SlowTurn(root, started(root, str(root), str(released), str(running), code=SCRIPT), released)
    try:
        deadline = time.monotonic() + 120
        while not running.exists():
            assert slow.process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        yield slow
    finally:
        if slow.process.poll() is None:
            slow.ended()


def locked_files(root: Path, process: int) -> list[str]:
    """The files of the store that a process has locked."""
    rows = [line.split() for line in LOCKS.read_text().splitlines()]
    inodes = {int(row[5].rpartition(":")[2]) for row in rows if row[4] == str(process)}
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.stat().st_ino in inodes)


@pytest.mark.skipif(not LOCKS.exists(), reason="the system does not list locks")
def test_no_command_waits_for_a_tool(tmp_path: Path) -> None:
    """The process holds the lease of its tool and no lock: every command but another run of the turn succeeds meanwhile."""
    with tool_under_way(tmp_path) as slow:
        assert locked_files(slow.root, slow.process.pid) == [LEASE]
        second = started(slow.root, "resume", "anna:2")
        for command in COMMANDS:
            code, out, err = pandora(slow.root, *command)
            assert code == 0, (command, out, err)
            if command[0] == "show":
                assert f"the tool doc.search was begun by process {slow.process.pid} and has no result" in err
        code, _, err = ended(second)
        assert code and f"turn anna:turn_000002: its tool doc.search runs in process {slow.process.pid} until" in err, err
        assert slow.process.poll() is None, "the tool ran all the time"
        code, _, err = slow.ended()
        assert code == 0, err
    code, out, err = pandora(slow.root, "show", "anna:2", "--json")
    shown = json.loads(out)
    assert (shown["manifest"]["state"], shown["manifest"]["tool_run"]) == ("saved", None), err
    assert "Desk [1]" in shown["sections"]["4"] and not (slow.root / LEASE).exists()


def test_the_erasure_of_a_user_cancels_a_tool(tmp_path: Path) -> None:
    """The command succeeds while the tool runs; the tool is stopped, and its result is written nowhere."""
    with tool_under_way(tmp_path) as slow:
        code, out, err = pandora(slow.root, "forget", "anna", "--yes")
        assert code == 0, out + err
        code, _, err = ended(slow.process)
        assert code == 1 and "anna:turn_000002: doc.search: its result is dropped: the turn was changed or erased meanwhile" in err
        assert not slow.released.exists() and not (slow.root / "users" / "anna").exists()


def test_a_tool_of_a_killed_process_runs_again(tmp_path: Path) -> None:
    """The lease ends with its process, so that the turn goes on at once."""
    with tool_under_way(tmp_path) as slow:
        slow.process.kill()
        ended(slow.process)
        manifest = slow.root / "users" / "anna" / "turns" / "turn_000002" / "turn.json"
        assert json.loads(manifest.read_text())["tool_run"]["tool"] == "doc.search"
        code, out, err = pandora(slow.root, "resume", "anna:2")
        assert code == 0, out + err
        assert json.loads(manifest.read_text())["state"] == "saved"
