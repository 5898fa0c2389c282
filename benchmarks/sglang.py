"""The pipeline over a real server, as ratios of one run: `make bench-sglang`. Knows the parts; what each measures lies beside it.

    python -m benchmarks.sglang [--only calls cache concurrency kills] [--pairs 7] [--turns 100] [--kills 20]
                               [--gpu [--server-arguments "--attention-backend triton"]]

The model is tiny and random: what it says is nonsense, what it takes is real. `--gpu` serves a random model of Qwen3-0.6B's shape on the
GPU of this machine instead. Exit code 1 where something wanted is not met.
"""

import argparse
import asyncio
import shlex
import sys
import tempfile
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sglang_cache import cache_rows
from benchmarks.sglang_calls import call_rows
from benchmarks.sglang_concurrency import concurrency_rows
from benchmarks.sglang_kills import kill_rows
from benchmarks.sglang_machine import RUNNING, RUNNING_ON_GPU, cpu, gpu
from benchmarks.sglang_rows import Row
from tests.sglang.real_servers import RealSglang

Work = Coroutine[Any, Any, list[Row]]
PARTS = ("calls", "cache", "concurrency", "kills")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    parts: tuple[str, ...]
    pairs: int
    turns: int
    kills: int
    on_gpu: bool
    server_arguments: tuple[str, ...]


def main(arguments: list[str]) -> int:
    asked = _asked(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-sglang-") as name, _served(asked, Path(name)) as server:
        print("| what | measured | wanted | |\n|---|---|---|---|", flush=True)
        for part in asked.parts:
            for row in asyncio.run(_work(part, asked, server, Path(name))()):
                rows.append(row)
                print(row.line, flush=True)
    return 1 if any(not row.met for row in rows) else 0


def _work(part: str, asked: Asked, server: RealSglang, folder: Path) -> Callable[[], Work]:
    root = folder / part
    works: dict[str, Callable[[], Work]] = {
        "calls": lambda: call_rows(server, root, asked.pairs, at_once=RUNNING_ON_GPU if asked.on_gpu else RUNNING),
        "cache": lambda: cache_rows(server, root),
        "concurrency": lambda: concurrency_rows(server, root, asked.pairs),
        "kills": lambda: kill_rows(server, root, turns=asked.turns, kills=asked.kills),
    }
    return works[part]


@contextmanager
def _served(asked: Asked, folder: Path) -> Generator[RealSglang]:
    log = folder / "server.log"
    server = gpu(log, *asked.server_arguments) if asked.on_gpu else cpu(log)
    server.start()
    try:
        yield server.ready()
    finally:
        server.stop()


def _asked(arguments: list[str]) -> Asked:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sglang", description="The pipeline over real servers, as ratios.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure (default all)")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs for each ratio (default 7)")
    parser.add_argument("--turns", type=int, default=100, help="turns while the server is killed (default 100)")
    parser.add_argument("--kills", type=int, default=20, help="how often it is killed meanwhile (default 20)")
    parser.add_argument("--gpu", action="store_true", help="serve on the GPU")
    parser.add_argument("--server-arguments", default="", help="more arguments of SGLang's server, with --gpu")
    options = parser.parse_args(arguments)
    return Asked(
        tuple(options.only), options.pairs, options.turns, options.kills, options.gpu, tuple(shlex.split(options.server_arguments))
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
