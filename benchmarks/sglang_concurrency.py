"""The adaptive limit of concurrent calls, compared with the best of several fixed limits on batch calls."""

from pathlib import Path
from statistics import median

from benchmarks.sglang_requests import Ran, bare, fresh, packs_of, summary_request, through_runtime
from benchmarks.sglang_rows import Row, spread
from tests.sglang.real_servers import RealSglang

CALLS = 96
FIXED = (1, 2, 4, 8, 16, 32)
WANTED = 0.95


async def concurrency_rows(server: RealSglang, root: Path, pairs: int) -> list[Row]:
    """Every fixed number once, sent bare; the best of them against the runtime, which knows nothing of the server when it begins."""
    packs = await packs_of([summary_request(number) for number in range(CALLS)], server, root / "warm")
    alone: dict[int, Ran] = {}
    for at_once in FIXED:
        async with fresh(server):
            alone[at_once] = await bare(packs, server, at_once)
    best = min((n for n in FIXED if not alone[n].refused), key=lambda n: alone[n].seconds)
    ratios: list[float] = []
    refused, places = 0, 0
    for number in range(pairs):
        seconds: dict[str, float] = {}
        for which in ("ours", "bare") if number % 2 else ("bare", "ours"):
            async with fresh(server) as runtime:
                ran = await (bare(packs, server, best) if which == "bare" else through_runtime(packs, runtime))
                seconds[which] = ran.seconds
                refused += ran.refused if which == "ours" else 0
                places = runtime.max_concurrent_calls() if which == "ours" else places
        ratios.append(seconds["bare"] / seconds["ours"])
    table = ", ".join(f"{n}: {ran.answered / ran.seconds:.1f}{' (503s)' if ran.refused else ''}" for n, ran in alone.items())
    what = f"{CALLS} calls with as many at once as the server is seen to take: throughput over that of the best fixed number, {best}"
    return [
        Row(
            what,
            f"{spread(ratios)}; {places} places at the end; fixed, calls a second: {table}",
            f"at least {WANTED}",
            median(ratios) >= WANTED,
        ),
        Row("503s that reached a caller there", str(refused), "0", refused == 0),
    ]
