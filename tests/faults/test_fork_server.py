"""A forked process is what `python -c` starts: its own number, arguments, environment, folder and end, and nothing of a process before."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fork_server import REPOSITORY, forked

SHOWS = """
import json, os, random, sys, threading
import pandora_dagster.cli.program as program
told = getattr(program, "told", "nothing")
program.told = "a process before"
print(json.dumps({"argv": sys.argv, "name": __name__, "env": dict(os.environ), "cwd": os.getcwd(), "told": told, "path": sys.path[:2],
                  "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1], "threads": threading.active_count(), "pid": os.getpid()}))
print(random.random(), file=sys.stderr)
sys.exit(3)
"""


def own(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PANDORA_ROOT": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}


def test_it_is_what_an_interpreter_of_its_own_is(tmp_path: Path) -> None:
    """Twice: what one left in a module or drew by chance, the next does not meet."""
    env = own(tmp_path)
    interpreter = subprocess.run(
        [sys.executable, "-c", SHOWS, "a", "b"], env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True
    )
    expected = json.loads(interpreter.stdout)
    drawn = {interpreter.stderr.decode()}
    for _ in range(2):
        process = forked(SHOWS, "a", "b", env=env, cwd=tmp_path)
        out, err = process.communicate(60)
        found = json.loads(out)
        assert process.returncode == interpreter.returncode == 3
        assert found.pop("pid") == process.pid != os.getpid()
        assert found == {name: value for name, value in expected.items() if name != "pid"}
        drawn.add(err)
    assert len(drawn) == 3


IGNORES = """
import os, signal, sys
from pathlib import Path
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
from tests.fork_server import forked
codes = []
for number in (signal.SIGTERM, signal.SIGINT):
    process = forked("print('ready', flush=True); import time; time.sleep(600)", env=os.environ, cwd=Path.cwd())
    process.stdout.readline()
    process.send_signal(number)
    process.communicate(30)
    codes.append(process.returncode)
print(*codes)
"""


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_and_no_other(tmp_path: Path, ends: signal.Signals) -> None:
    waits = "import sys; print('ready', flush=True); import time; time.sleep({seconds})"
    one = forked(waits.format(seconds=600), env=own(tmp_path), cwd=tmp_path)
    other = forked(waits.format(seconds=1), env=own(tmp_path), cwd=tmp_path)
    assert one.stdout.readline() == other.stdout.readline() == "ready\n"
    assert one.poll() is None
    one.send_signal(ends)
    one.communicate(30)
    assert one.wait() == one.poll() == -ends
    with pytest.raises(ProcessLookupError):
        os.kill(one.pid, 0)
    other.communicate(30)
    assert other.returncode == 0


def test_an_error_is_a_traceback_and_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    process = forked("raise ValueError('so')", env=own(tmp_path), cwd=tmp_path)
    out, err = process.communicate(60)
    assert (process.returncode, out) == (1, "") and err.startswith("Traceback") and err.endswith("ValueError: so\n")
    slow = forked("import time; time.sleep(600)", env=own(tmp_path), cwd=tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        slow.communicate(0.5)
    assert slow.wait(30) == -signal.SIGKILL


def test_signals_that_the_tests_ignore_end_it(tmp_path: Path) -> None:
    """A shell starts programs in the background with SIGINT ignored, and Dagster's daemon then ignores SIGTERM too."""
    ignores = subprocess.run([sys.executable, "-c", IGNORES], env=own(tmp_path), cwd=tmp_path, capture_output=True, text=True)
    assert ignores.stdout.split() == [str(-signal.SIGTERM), str(-signal.SIGINT)], ignores.stderr
