"""An archival run over many imported turns, compared with a bare loop: memory, throughput, time a turn from 100 to 10,000.

    python -m benchmarks.archival_run                      # 100, 1,000 and 10,000 turns, three pairs at 1,000 (half an hour)
    python -m benchmarks.archival_run --sizes 100 1000 --pairs 1

Every measurement is a process of its own over a fresh copy of one imported store. *Run* is Dagster's job `archival` over all days in one
run, of which the step `archived_turns` counts: selection, compression, cold objects read back, switch, indexes, lineage, tables, checks;
narratives and digests, which make calls of their own, are reported separately; the memory is of both. A run may use every processor: its
texts are shortened in processes of their own, whose memory (of the largest) and processor seconds count. The *bare loop* has read the
turns before, makes the same compression calls one after the other, and writes the same files (cold object, compressed documents, manifest)
into a flat folder, each with fsync; it verifies nothing afterwards and keeps no index. Data: tau-bench conversations, repeated under new
names for as many turns as are wanted; without `--data` generated ones.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import zstandard
from dagster import DagsterInstance

from benchmarks.speed import GIVEN
from benchmarks.speed_import import generated
from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.turn_archival import CONTEXT_FILE, PHASE, compression_targets, readable_documents
from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType, Priority
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.defs.instance import add_archival_days
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.turns.cold_files import ZSTD_LEVEL, build_tar

_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
MEMORY, THROUGHPUT, FLAT = 1.3, 0.7, 1.25
"""Peak memory of the largest run against that of 1,000 turns; turns a second against the bare loop; time a turn, largest against 100."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process: seconds of its work (of a run, those of `archived_turns`), of its processors, and the most memory it had, with the
    largest of those that worked for it."""

    turns: int
    seconds: float
    processor_s: float
    peak_mb: float
    levels_s: float = 0.0
    """Seconds of the narratives and digests after it, whose calls the bare loop does not make."""


def prepared(root: Path, turns: int, data: Path | None) -> None:
    """A store of at least `turns` imported turns, of many users and days."""
    lines = (data or generated(root.parent / "generated.jsonl")).read_text(encoding="utf-8").splitlines()
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    stored, rounds = 0, count()
    while stored < turns:
        number = next(rounds)
        wanted = list(_renamed(lines, number, turns - stored))
        stored += app.transfer.import_conversations(wanted, where=f"round {number}").turns
    app.close()


def _renamed(lines: Sequence[str], number: int, turns: int) -> Iterator[bytes]:
    """The conversations under new names and on another day, as many as hold `turns` user messages."""
    for line in lines:
        record = json.loads(line)
        if turns <= 0:
            return
        asked = [place for place, message in enumerate(record["messages"]) if message["role"] == "user"]
        if len(asked) > turns:
            record["messages"] = record["messages"][: asked[turns]]
        turns -= len(asked)
        record["id"] = f"{record['id']}-{number}"
        record["user_id"] = f"{record['user_id']}-{number % 10}"
        record["created_at"] = f"2026-01-{number % 28 + 1:02d}T10:00:00Z"
        yield json.dumps(record, ensure_ascii=False).encode()


def archival_run(root: Path) -> tuple[int, float, float]:
    """All that is due in one run of Dagster's job: how many turns were archived, seconds of that, seconds of the levels above."""
    os.environ["PANDORA_ROOT"] = str(root)
    from pandora_dagster.definitions import defs
    from pandora_dagster.defs.instance import open_instance

    settings = load_settings({"PANDORA_ROOT": str(root)})
    with open_instance(settings) as instance:
        tags: dict[str, str] = dict(zip(_RANGE, _days(instance), strict=True))
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        done = defs.resolve_job_def("archival").execute_in_process(instance=instance, tags=tags, run_config=quiet)
        checks = {e.check_name: e.passed for e in done.get_asset_check_evaluations() if e.asset_key.path == ["archived_turns"]}
        checks.pop("no_run_missed", None)
        assert done.success and all(checks.values()), checks
        took = {str(e.step_key): e.step_success_data.duration_ms / 1000 for e in done.all_events if e.event_type_value == "STEP_SUCCESS"}
        turns = sum(int(str(m.metadata["turns"].value)) for m in done.asset_materializations_for_node("archived_turns"))
        return turns, took["archived_turns"], took["session_summaries"] + took["user_digests"]


def _days(instance: DagsterInstance) -> tuple[str, str]:
    """The first and the last day of the conversations, all of which become partitions, as an import makes them."""
    keys = add_archival_days(instance, [date(2026, 1, day) for day in range(1, 29)])
    return keys[0], keys[-1]


def bare(root: Path) -> tuple[int, float, float]:
    """The same compression calls, the same files, each with fsync: turns, seconds, processor seconds. What it works on is read before."""
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), priority=Priority.BATCH)
    ctx = open_archive(app)
    summarizer = app.dependencies.summarizer
    assert summarizer
    work: list[tuple[CallSite, dict[str, bytes], dict[str, str]]] = []
    for due in select_turns(ctx).due:
        turn, files = ctx.folders.originals(due.key)
        site = CallSite(PHASE, due.key.user, turn.manifest.session_id, due.key, turn.manifest.revision, Priority.BATCH)
        work.append(
            (site, dict(files), readable_documents(turn, count=app.dependencies.counter.count, min_tokens=ctx.rules.document_tokens))
        )
    (folder := root / "bare").mkdir()
    started, used = perf_counter(), process_time()
    for number, (site, files, texts) in enumerate(work):
        small: dict[str, str] = {}
        for name, text in texts.items():
            tried = compression_targets(app.dependencies.counter.count(text), ctx.rules)
            content = CompressionInput(text, name, ContentType.CONTEXT_DOC if name == CONTEXT_FILE else None)
            small[name] = app.run(summarizer.compress_for_archive(content, targets=tried, site=site)).text if tried else text
        _synced(folder / f"{number}.tar.zst", zstandard.ZstdCompressor(ZSTD_LEVEL, write_checksum=True).compress(build_tar(files)))
        for name, text in small.items():
            _synced(folder / f"{number}-{name}", text.encode())
        _synced(folder / f"{number}-turn.json", files["turn.json"])
    took = perf_counter() - started, process_time() - used
    app.close()
    return len(work), *took


def _synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)


def child(kind: str, root: Path) -> None:
    """What one process measures, as a line of JSON."""
    above = 0.0
    if kind == "bare":
        turns, seconds, processor = bare(root)
    else:
        from pandora_dagster.definitions import defs  # the interpreter's start is nobody's work

        assert defs
        used = process_time()
        turns, seconds, above = archival_run(root)
        processor = process_time() - used
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + others.ru_maxrss) / 1024
    processor += others.ru_utime + others.ru_stime
    sys.stdout.write(json.dumps(asdict(Run(turns, seconds, processor, peak, above))) + "\n")


def measured(kind: str, store: Path, folder: Path) -> Run:
    """One process over a fresh copy of a prepared store."""
    root = folder / "copy"
    shutil.copytree(store, root)
    environment = {**os.environ, "PANDORA_ROOT": str(root), "DAGSTER_HOME": str(root / "dagster")}
    command = [sys.executable, "-m", "benchmarks.archival_run", "--child", kind, str(root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    shutil.rmtree(root)
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.archival_run", description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000], help="turns of an archival run")
    asked.add_argument("--pairs", type=int, default=3, help="pairs of archival run and bare loop")
    asked.add_argument("--paired", type=int, default=1_000, help="turns of each of them")
    asked.add_argument("--data", type=Path, default=GIVEN, help="conversations as JSON lines; generated ones where there are none")
    asked.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.child:
        child(given.child[0], Path(given.child[1]))
        return
    data = given.data.resolve() if given.data.is_file() else None
    with tempfile.TemporaryDirectory(prefix="archival-run-") as name:
        folder = Path(name)
        stores = {size: folder / f"store-{size}" for size in {*given.sizes, given.paired}}
        for size, root in stores.items():
            prepared(root, size, data)
        runs = {size: measured("run", stores[size], folder) for size in sorted(given.sizes)}
        for size, run in runs.items():
            line = f"{run.seconds / run.turns * 1000:6.1f} ms a turn, {run.levels_s / run.turns * 1000:6.1f} for the levels above it"
            sys.stdout.write(f"run of {size:>6} turns: {line}, peak {run.peak_mb:,.0f} MB\n")
        ratios = [_ratio(stores[given.paired], folder, turned=bool(pair % 2)) for pair in range(given.pairs)]
    sys.exit(0 if meets_targets(runs, ratios) else 1)


def _ratio(store: Path, folder: Path, *, turned: bool) -> float:
    """Turns a second of an archival run against those of the bare loop, as a pair."""
    order = ("bare", "run") if turned else ("run", "bare")
    runs = {kind: measured(kind, store, folder) for kind in order}
    assert runs["run"].turns == runs["bare"].turns
    line = (f"{kind} {run.seconds:.1f} s ({run.processor_s:.1f} of a processor)" for kind, run in sorted(runs.items()))
    sys.stdout.write(f"pair: {', '.join(line)}\n")
    return runs["bare"].seconds / runs["run"].seconds


def meets_targets(runs: dict[int, Run], ratios: Sequence[float]) -> bool:
    """The three figures, each with its target; False where one is missed."""
    rows: list[tuple[str, float, str, bool]] = []
    small, large = min(runs), max(runs)
    if 1_000 in runs and large > 1_000:
        memory = runs[large].peak_mb / runs[1_000].peak_mb
        rows.append((f"peak memory, {large:,} turns over 1,000", memory, f"at most {MEMORY}", memory <= MEMORY))
    if ratios:
        rows.append(("throughput, run over bare loop", median(ratios), f"at least {THROUGHPUT}", median(ratios) >= THROUGHPUT))
    if large > small:
        flat = (runs[large].seconds / runs[large].turns) / (runs[small].seconds / runs[small].turns)
        rows.append((f"time a turn, {large:,} turns over {small:,}", flat, f"at most {FLAT}", flat <= FLAT))
    for name, value, wanted, holds in rows:
        sys.stdout.write(f"{name:<42} {value:6.2f}  {wanted}{'' if holds else '  MISSED'}\n")
    return all(holds for *_, holds in rows)


if __name__ == "__main__":
    main()
