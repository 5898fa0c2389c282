"""What the pipeline's way to the server costs: turn summaries through the executor beside the same requests sent bare."""

from pathlib import Path

from benchmarks.sglang_requests import bare, fresh, packs_of, summary_request, through_executor
from benchmarks.sglang_rows import Row, spread
from tests.sglang.real_servers import RealSglang

CALLS, AT_ONCE = 64, 16
WANTED = 0.9


async def call_rows(server: RealSglang, root: Path, pairs: int) -> list[Row]:
    """Budgets, packs, gates and records against OpenAI's client alone; both in turn, the prefix cache emptied before each."""
    from statistics import median

    requests = [summary_request(number) for number in range(CALLS)]
    packs = await packs_of(requests, server, root / "warm")
    ratios: list[float] = []
    for number in range(pairs):
        seconds: dict[str, float] = {}
        for which in ("ours", "bare") if number % 2 else ("bare", "ours"):
            async with fresh(server, max_connections=AT_ONCE) as runtime:
                if which == "bare":
                    seconds[which] = (await bare(packs, server, AT_ONCE)).seconds
                else:
                    ran, records = await through_executor(requests, runtime, root / str(number))
                    assert len(records) == CALLS and all(record.gates for record in records), "a call left no verdict"
                    seconds[which] = ran.seconds
        ratios.append(seconds["bare"] / seconds["ours"])
    what = f"{CALLS} turn summaries through the executor, {AT_ONCE} at once: throughput over that of the same requests sent bare"
    return [Row(what, spread(ratios), f"at least {WANTED}", median(ratios) >= WANTED)]
