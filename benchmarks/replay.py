"""Replay beside the calls alone: 500 logged calls of the embedded runtime, made again by themselves and through a replay.

python -m benchmarks.replay [--calls 500] [--rounds 3]

Prints calls of both for each second of the processor (the best round of each recipe; on a machine with other work, seconds of the
clock say something else each time), their ratio (expected: at least 0.9) and how many answers are the same (expected: all).
"""

import argparse
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from pandora_dagster.contracts.calls import CallRecord, CallRequest
from pandora_dagster.contracts.recipe_tests import CallCase
from pandora_dagster.execution.cases import request_of
from pandora_dagster.governance.replaying import replayed
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring import House, open_house
from pandora_dagster.wiring.building import open_cookbook, open_counter
from pandora_dagster.wiring.trying import Trying, open_trying

RATIO = 0.9
QUERIES = (
    "Which desk did we order, and what did it cost?",
    "What is my budget for desk and chair together?",
    "Which chair did we order, and when did it arrive?",
    "What happened with the scratched top of the desk?",
    "Please remember that I prefer grey fabric.",
)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--calls", type=int, default=500)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({"PANDORA_ROOT": str(Path(folder) / "store")})
        house = open_house(settings)
        by_recipe = _logged(house, asked.calls)
        trying = open_trying(settings, open_cookbook(settings), open_counter(settings))
        alone, through, same = 0.0, 0.0, 0
        for name, records in by_recipe.items():
            one = {name: records}
            _replayed(house, trying, one)  # both are warm before they are measured, and take turns
            pairs = [(_alone(house, trying, one), *_replayed(house, trying, one)) for _ in range(asked.rounds)]
            alone, through = alone + min(a for a, _, _ in pairs), through + min(r for _, r, _ in pairs)
            same += min(s for _, _, s in pairs)
        trying.close()
        house.close()
    calls = sum(len(records) for records in by_recipe.values())
    ratio = alone / through
    print(f"{calls} calls: alone {calls / alone:.0f} a CPU second, replayed {calls / through:.0f}: {ratio:.2f} (expected {RATIO})")
    print(f"{same} of {calls} answers are the same (expected all)")
    return 0 if ratio >= RATIO and same == calls else 1


def _logged(house: House, wanted: int) -> dict[str, list[CallRecord]]:
    """At least `wanted` calls of turns over the example's history, by recipe."""
    house.import_example()
    recipes = {house.cookbook.load(name).name: name for name in house.cookbook.names()}
    found: list[CallRecord] = []
    for number in range(1_000):
        key = house.start(QUERIES[number % len(QUERIES)], user="example", session=f"s{number}")
        house.run_turn(key, on_report=lambda _: None)
        found = [r for r in house.calls.files.read(key.user, report=print) if r.request_ref]
        if len(found) >= wanted:
            break
    by_recipe: dict[str, list[CallRecord]] = {}
    for record in islice(found, wanted):
        by_recipe.setdefault(recipes[record.recipe], []).append(record)
    return by_recipe


def _alone(house: House, trying: Trying, by_recipe: dict[str, list[CallRecord]]) -> float:
    """Seconds of the processor for the calls themselves, everything that they need in memory."""
    ready: dict[str, list[CallRequest]] = {
        name: [request_of(CallCase.model_validate_json(house.vault.read(r.request_ref)), name, user=r.user_id) for r in records]
        for name, records in by_recipe.items()
    }

    async def made(requests: list[CallRequest]) -> None:
        for request in requests:
            await trying.bench.execution.attempt(request)

    began = time.process_time()
    for name, requests in ready.items():
        trying.bench.on(house.cookbook.load(name))
        trying.run(made(requests))
    return time.process_time() - began


def _replayed(house: House, trying: Trying, by_recipe: dict[str, list[CallRecord]]) -> tuple[float, int]:
    """Seconds of the processor for the same through a replay, and how many answers are the same."""
    same, began = 0, time.process_time()
    for name, records in by_recipe.items():
        trying.bench.on(house.cookbook.load(name))
        same += trying.run(replayed(iter(records), trying.bench, house.vault.read)).same
    return time.process_time() - began, same


if __name__ == "__main__":
    sys.exit(main())
