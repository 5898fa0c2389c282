"""The speed ratios, in one run, as a table: `make bench`. Knows how runs are paired; what is measured lies beside it.

Each ratio compares whole runs: ours, then what it is compared with, one after the other, so that both meet the same machine.
The ratio is the median over the pairs. Exit code 1 where one is over its target.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.speed_ask import ask_pair
from benchmarks.speed_help import help_pair
from benchmarks.speed_import import import_pair
from benchmarks.speed_turn import turn_pair

Timed = Callable[[], float]
"""Runs once and gives the seconds that count."""
GIVEN = Path("../shared/data/tau_bench/airline_conversations.jsonl")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared, and how much longer ours may take."""

    name: str
    against: str
    target: float
    pair: AbstractContextManager[tuple[Timed, Timed]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians in seconds; `ratio` is the median of the pairs' ratios, between `low` and `high`."""

    ours: float
    theirs: float
    ratio: float
    low: float
    high: float


def measured(ours: Timed, theirs: Timed, pairs: int) -> Measured:
    """Time `pairs` pairs, the order turned round each time; one pair before them warms both up and does not count."""
    times: list[tuple[float, float]] = []
    for number in range(pairs + 1):
        first = ours() if number % 2 else theirs()
        second = theirs() if number % 2 else ours()
        times.append((first, second) if number % 2 else (second, first))
    counted = times[1:]
    ratios = sorted(mine / other for mine, other in counted)
    return Measured(median(m for m, _ in counted), median(o for _, o in counted), median(ratios), ratios[0], ratios[-1])


def comparisons(folder: Path, data: Path | None) -> Iterator[Comparison]:
    yield Comparison("pandora ask, start to answer", "import dagster", 1.5, ask_pair(folder, to_end=False))
    yield Comparison("pandora ask, whole command", "import dagster", 4.0, ask_pair(folder, to_end=True))
    yield Comparison("live turn, warm process", "no-op Dagster chain, same assets and checks", 1.5, turn_pair(folder))
    yield Comparison("import of conversations", "same bytes to as many files, with fsync", 3.0, import_pair(folder, data))
    yield Comparison("pandora --help", "help of a two-command typer program", 2.0, help_pair(folder))


def main(arguments: list[str]) -> int:
    asked = _parser().parse_args(arguments)
    data = asked.data or (GIVEN if GIVEN.is_file() else None)
    print(f"{asked.pairs} pairs each; disk {asked.disk.resolve()}; import of {data or 'generated conversations'}\n")
    print("| what | compared with | ours | theirs | ratio (lowest to highest) | target | |\n|---|---|---|---|---|---|---|")
    missed = 0
    with _folder_on(asked.disk) as folder:
        for compared in comparisons(folder, data):
            with compared.pair as (ours, theirs):
                found = measured(ours, theirs, asked.pairs)
            missed += found.ratio > compared.target
            print(_line(compared, found), flush=True)
    return 1 if missed else 0


def _line(compared: Comparison, found: Measured) -> str:
    spread = f"{found.ratio:.2f} ({found.low:.2f} to {found.high:.2f})"
    verdict = "met" if found.ratio <= compared.target else "MISSED"
    times = f"{found.ours:.3f} s | {found.theirs:.3f} s"
    return f"| {compared.name} | {compared.against} | {times} | {spread} | {compared.target:g} | {verdict} |"


@contextmanager
def _folder_on(disk: Path) -> Iterator[Path]:
    disk.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=disk, prefix="speed-") as folder:
        yield Path(folder).resolve()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Speed, as ratios measured in one run.")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs for each ratio (default 7)")
    parser.add_argument("--data", type=Path, help=f"conversations to import; default {GIVEN}, or generated ones where it is not there")
    parser.add_argument("--disk", type=Path, default=Path("tmp"), help="a folder on the disk that is measured (default tmp)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
