"""`pandora ask` as a new process on the embedded runtime, to the answer and to its end, compared with `import dagster`."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

_ASK = "from pandora_dagster.cli import main\n\nmain()\n"
_QUERY = "Which chair did we order, and what did it cost?"


@contextmanager
def ask_pair(folder: Path, *, to_end: bool) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    """An ask in a store of its own; the import of Dagster by this interpreter. `to_end`: the whole command, not only to the answer."""
    script, environment = folder / "ask.py", {**os.environ, "PANDORA_ROOT": str(folder / "ask-store")}
    script.write_text(_ASK, encoding="utf-8")
    yield lambda: ask(script, environment, to_end=to_end), imported


def ask(script: Path, environment: dict[str, str], *, to_end: bool) -> float:
    """Seconds from the start of the process to the first line of its answer, or to its end."""
    started = perf_counter()
    command = [sys.executable, str(script), "ask", _QUERY, "--no-stream"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        answered = perf_counter() - started
        process.stdout.read()
    assert first.strip() and process.returncode == 0, f"no answer: exit code {process.returncode}"
    return perf_counter() - started if to_end else answered


def imported() -> float:
    """Seconds of one whole process that imports Dagster."""
    started = perf_counter()
    subprocess.run([sys.executable, "-c", "import dagster"], check=True)
    return perf_counter() - started
