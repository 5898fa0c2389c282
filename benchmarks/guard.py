"""A guard on speed, in two minutes: ratios of processor time that may not get worse by more than a third. `make bench-guard`.

Both sides of a ratio are processor time of the same machine, measured one after the other, so that neither a busy nor a slow machine
fails it. The ratios to keep stand in guard.json, with how and why they were written: `python -m benchmarks.guard --update REASON`.
Exit code 1 where one is worse than it may be, also when it is measured again, or where one is not in the file.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from benchmarks.index_scale import BATCH, MOST, Fts5, Writer, questions
from benchmarks.speed import Timed, measured
from benchmarks.speed_ask import ask_pair
from benchmarks.speed_import import generated, imported_and_gone
from benchmarks.speed_turn import turn_pair
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA

KEPT = Path(__file__).with_name("guard.json")
WORSE = 4 / 3
CONVERSATIONS, JSON_TIMES = 30, 300
SEARCHES, FTS5_TIMES = 40, 10


@dataclass(frozen=True, slots=True)
class Guarded:
    """Two works whose processor time is compared in so many pairs."""

    name: str
    against: str
    pairs: int
    pair: AbstractContextManager[tuple[Timed, Timed]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A ratio, the one to keep, and whether it is good enough; `kept` is None where the file has none."""

    guarded: Guarded
    ratio: float
    kept: float | None

    @property
    def is_good(self) -> bool:
        return self.kept is not None and self.ratio <= self.kept * WORSE

    @property
    def _mark(self) -> str:
        return "not kept" if self.kept is None else "" if self.is_good else "WORSE"

    def __str__(self) -> str:
        kept = ("none", "-") if self.kept is None else (f"{self.kept:.2f}", f"{self.kept * WORSE:.2f}")
        return f"| {self.guarded.name} | {self.guarded.against} | {self.ratio:.2f} | {' | '.join(kept)} | {self._mark} |"


def spent(work: Callable[[], object]) -> Timed:
    """`work`, as what gives its seconds of processor time, those of processes that it waited for among them."""

    def seconds() -> float:
        before = _processor_time()
        work()
        return _processor_time() - before

    return seconds


def _processor_time() -> float:
    used = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def ask_guard(folder: Path) -> Iterator[tuple[Timed, Timed]]:
    with ask_pair(folder, to_end=True) as (ours, theirs):
        yield spent(ours), spent(theirs)


@contextmanager
def answer_guard(folder: Path) -> Iterator[tuple[Timed, Timed]]:
    """What the process has spent when the first line of its answer comes."""
    with ask_pair(folder, to_end=False) as (_, theirs):
        environment = {**os.environ, "PANDORA_ROOT": str(folder / "answers")}
        yield lambda: _spent_at_answer(folder / "ask.py", environment), spent(theirs)


def _spent_at_answer(script: Path, environment: dict[str, str]) -> float:
    command = [sys.executable, str(script), "ask", "Which chair did we order, and what did it cost?", "--no-stream"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True) as process:
        assert process.stdout
        answer = process.stdout.readline()
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
        process.stdout.read()
    assert answer.strip() and process.returncode == 0, f"no answer: exit code {process.returncode}"
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def turn_guard(folder: Path) -> Iterator[tuple[Timed, Timed]]:
    with turn_pair(folder) as (ours, theirs):
        yield spent(ours), spent(theirs)


@contextmanager
def import_guard(folder: Path) -> Iterator[tuple[Timed, Timed]]:
    """Beside JSON, not the disk: what a kernel spends on writing differs from one file system to the next."""
    lines = generated(folder / "all.jsonl").read_text("utf-8").splitlines()[:CONVERSATIONS]
    file = folder / "some.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def parsed() -> None:
        for line in lines * JSON_TIMES:
            json.dumps(json.loads(line))

    yield spent(lambda: imported_and_gone(file, folder / "imported")), spent(parsed)


@contextmanager
def search_guard(folder: Path) -> Iterator[tuple[Timed, Timed]]:
    """The same questions about one user's turns in both indexes."""
    writer, index, other = Writer(), DuckTurnIndex(DuckDBFile(folder / "turns.duckdb", TURN_SCHEMA)), Fts5(folder / "turns.sqlite")
    rows = [writer.turn(number, "user0") for number in range(1, BATCH + 1)]
    index.put(rows)
    other.put(rows)
    asked = questions(writer, rows, SEARCHES)

    def ours() -> None:
        for user, query in asked:
            index.messages(user, query, limit=MOST)

    def theirs() -> None:
        for user, query in asked * FTS5_TIMES:
            other.search(user, query)

    yield spent(ours), spent(theirs)
    other.db.close()


def guards(folder: Path) -> tuple[Guarded, ...]:
    return (
        Guarded("pandora ask, to the answer", "import dagster", 3, answer_guard(folder)),
        Guarded("pandora ask, whole command", "import dagster", 3, ask_guard(folder)),
        Guarded("live turn, warm process", "no-op Dagster chain, same assets and checks", 5, turn_guard(folder)),
        Guarded(f"search in {BATCH:,} turns", f"SQLite FTS5, {FTS5_TIMES} times", 7, search_guard(folder)),
        Guarded(f"import of {CONVERSATIONS} conversations", f"their JSON read and written {JSON_TIMES} times", 5, import_guard(folder)),
    )


def verdicts(guarded: Iterable[Guarded], kept: dict[str, float]) -> Iterator[Verdict]:
    """One that is worse than it may be is measured once more, and the lower ratio counts."""
    for each in guarded:
        with each.pair as (ours, theirs):
            verdict = Verdict(each, measured(ours, theirs, each.pairs).ratio, kept.get(each.name))
            if verdict.kept is not None and not verdict.is_good:
                again = measured(ours, theirs, each.pairs).ratio
                verdict = Verdict(each, min(verdict.ratio, again), verdict.kept)
        yield verdict


def main(arguments: list[str], *, guarded: Callable[[Path], tuple[Guarded, ...]] = guards, file: Path = KEPT) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__)
    parser.add_argument("--update", metavar="REASON", help="keep the ratios of this run, and why they are right")
    asked = parser.parse_args(arguments)
    if asked.update is not None and not asked.update.strip():
        parser.error("--update: expected the reason why these ratios are right")
    kept: dict[str, float] = json.loads(file.read_text("utf-8"))["ratios"] if file.exists() and asked.update is None else {}
    print("| what | compared with | ratio | kept | may be | |\n|---|---|---|---|---|---|")
    found: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="pandora-guard-") as folder:
        for verdict in verdicts(guarded(Path(folder)), kept):
            found.append(verdict)
            print(verdict, flush=True)
    if asked.update is not None:
        file.write_text(_kept(found, asked.update) + "\n", encoding="utf-8")
        return 0
    worse = sum(not verdict.is_good for verdict in found)
    if worse:
        print(f'\n{worse} worse by more than a third. Where that is right: python -m benchmarks.guard --update "why"')
    return 1 if worse else 0


def _kept(found: Iterable[Verdict], reason: str) -> str:
    how = "processor time of both sides; the median of alternating pairs"
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    ratios = {verdict.guarded.name: round(verdict.ratio, 2) for verdict in found}
    return json.dumps(
        {"how": how, "machine": machine, "date": f"{datetime.now(UTC):%Y-%m-%d}", "reason": reason, "ratios": ratios}, indent=2
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
