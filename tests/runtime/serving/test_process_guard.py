"""The guard between a supervisor and its server, by itself."""

import subprocess
import sys
from pathlib import Path

from pandora_dagster.runtime.serving import process_guard
from pandora_dagster.runtime.serving.process_guard import BoundedLog

TALKS = "import sys\nfor n in range(20_000): print('x' * 99)\nsys.exit(7)"


def held(tmp_path: Path, limit: int, code: str = TALKS) -> int:
    """The exit code of a server under a guard whose supervisor holds the pipe until it ends."""
    words = [str(tmp_path / "one.log"), str(limit), str(tmp_path / "one.process"), "1", sys.executable, "-c", code]
    process = subprocess.Popen([sys.executable, "-I", "-S", process_guard.__file__, *words], stdin=subprocess.PIPE)
    try:
        return process.wait(60)
    finally:
        process.communicate()


def test_a_log_is_bounded(tmp_path: Path) -> None:
    """Two files of at most the limit hold the end of what was said; the exit code is the server's."""
    assert held(tmp_path, 100_000) == 7
    kept = [tmp_path / "one.log", tmp_path / "one.log.1"]
    assert all(0 < path.stat().st_size <= 100_000 for path in kept) and kept[0].read_bytes().endswith(b"x\n")
    assert not (tmp_path / "one.process").exists()


def test_a_full_disk_loses_words_and_nothing_else(tmp_path: Path) -> None:
    """Where the disk takes nothing more, a server can go on saying what it has to say."""
    log = BoundedLog(tmp_path / "one.log", 100)
    log._file.close()
    log._file = Path("/dev/full").open("ab", buffering=0)  # noqa: SIM115
    for _ in range(3):
        log.write(b"x" * 60)
    log._file.close()
    assert (tmp_path / "one.log").stat().st_size == 0


def test_a_server_killed_by_a_signal(tmp_path: Path) -> None:
    """128 and the signal's number, as a shell says it."""
    assert held(tmp_path, 1_000, "import os; os.kill(os.getpid(), 9)") == 137
