"""A tool that runs for long in one process: it holds its own turn alone, so that no other command on the same store waits for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.processes import ended, pandora, started

SCRIPT = "import sys; from pathlib import Path; from tests.faults.slow_tool import main; main(*map(Path, sys.argv[1:]))"
COMMANDS = (
    ("show", "anna:2"),
    ("ask", "my favourite colour is red", "--user", "anna", "--session", "another", "--json"),
    ("ask", "my favourite wood is oak", "--user", "anna", "--session", "slow", "--json"),
    ("search", "desk", "--user", "anna", "--json"),
    ("archive", "--json"),
    ("index", "verify"),
    ("doctor", "--json"),
    ("forget", "bob", "--yes"),
)
LOCKS = Path("/proc/locks")


@contextmanager
def tool_under_way(folder: Path) -> Iterator[tuple[Path, int]]:
    """A store whose turn anna:2 has a tool under way until the block ends, and the process that runs it."""
    root, released, running = folder / "store", folder / "released", folder / "running"
    for user in ("anna", "bob"):
        code, _, err = pandora(root, "ask", "Which desk did we order?", "--user", user)
        assert code == 0, err
    slow = started(root, str(root), str(released), str(running), code=SCRIPT)
    try:
        deadline = time.monotonic() + 120
        while not running.exists():
            assert slow.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        yield root, slow.pid
        assert slow.poll() is None, "the tool ran all the time"
    finally:
        released.touch()
        code, _, err = ended(slow)
    assert code == 0, err


def locked_files(root: Path, process: int) -> list[str]:
    """The files of the store that a process has locked."""
    rows = [line.split() for line in LOCKS.read_text().splitlines()]
    inodes = {int(row[5].rpartition(":")[2]) for row in rows if row[4] == str(process)}
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.stat().st_ino in inodes)


@pytest.mark.skipif(not LOCKS.exists(), reason="the system does not list locks")
def test_no_command_waits_for_a_tool(tmp_path: Path) -> None:
    """One lock is held while the tool runs, that of its turn, and each command but those that change this turn succeeds meanwhile."""
    with tool_under_way(tmp_path) as (root, process):
        assert locked_files(root, process) == ["users/anna/turns/turn_000002/.lock"]
        for command in COMMANDS:
            code, out, err = pandora(root, *command)
            assert code == 0, (command, out, err)
    code, out, err = pandora(root, "index", "verify")
    assert code == 0, out + err


def test_a_user_is_erased_once_a_tool_has_ended(tmp_path: Path) -> None:
    """The turn under way is named, and the same command then ends what it began."""
    with tool_under_way(tmp_path) as (root, _):
        code, _, err = pandora(root, "forget", "anna", "--yes")
        assert code != 0 and "another process works on turn anna:turn_000002" in err, err
    code, out, err = pandora(root, "forget", "anna", "--yes")
    assert code == 0 and not (root / "users" / "anna").exists(), out + err
