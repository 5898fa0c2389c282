"""What the pipeline's way to the server costs: turn summaries through the executor beside the same requests sent bare."""

from pathlib import Path

from benchmarks.sglang_requests import bare, fresh, packs_of, summary_request, through_executor
from benchmarks.sglang_rows import Row, spread
from tests.sglang.real_servers import RealSglang

CALLS_PER_PLACE = 4
"""Calls of a run for each one that is under way at once."""
WANTED, WANTED_ON_GPU = 0.9, 0.97


async def call_rows(server: RealSglang, root: Path, pairs: int, *, at_once: int) -> list[Row]:
    """Budgets, packs, gates and records against OpenAI's client alone; both in turn, the prefix cache emptied before each."""
    from statistics import median

    calls = CALLS_PER_PLACE * at_once
    wanted = WANTED if server.on_cpu else WANTED_ON_GPU
    requests = [summary_request(number) for number in range(calls)]
    packs = await packs_of(requests, server, root / "warm")
    ratios: list[float] = []
    for number in range(pairs):
        seconds: dict[str, float] = {}
        for which in ("ours", "bare") if number % 2 else ("bare", "ours"):
            async with fresh(server, max_connections=at_once) as runtime:
                if which == "bare":
                    seconds[which] = (await bare(packs, server, at_once)).seconds
                else:
                    ran, records = await through_executor(requests, runtime, root / str(number))
                    silent = [record.model_dump_json() for record in records if not (record.gates or record.error)]
                    assert len(records) == calls and not silent, (
                        f"{len(records)} records of {calls}; without verdict or error: {silent[:3]}"
                    )
                    seconds[which] = ran.seconds
        ratios.append(seconds["bare"] / seconds["ours"])
    what = f"{calls} turn summaries through the executor, {at_once} at once: throughput over that of the same requests sent bare"
    return [Row(what, spread(ratios), f"at least {wanted}", median(ratios) >= wanted)]
