"""`pandora --help` as a whole process, compared with the help of a typer program with two commands."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

OURS = "from pandora_dagster.cli import main\n\nmain()\n"
THEIRS = '''import typer

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    """Say hello."""


@app.command()
def goodbye(name: str) -> None:
    """Say goodbye."""


app()
'''


@contextmanager
def help_pair(folder: Path) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    """Both as small scripts, run by this interpreter."""
    ours, theirs = folder / "ours.py", folder / "theirs.py"
    ours.write_text(OURS, encoding="utf-8")
    theirs.write_text(THEIRS, encoding="utf-8")
    yield lambda: shown(ours), lambda: shown(theirs)


def shown(script: Path) -> float:
    """Seconds of one whole process that prints its help."""
    started = perf_counter()
    result = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, check=True)
    took = perf_counter() - started
    assert "Commands" in result.stdout
    return took
