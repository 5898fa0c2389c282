"""Replay beside the calls alone: 500 logged calls of the embedded runtime, made again by themselves and through a replay.

python -m benchmarks.replay [--calls 500] [--rounds 3]

Prints calls of both for each second of the processor (the best round of each recipe; on a machine with other work, seconds of the
clock differ each time), their ratio (expected: at least 0.9) and how many answers are the same (expected: all).
"""

import argparse
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from pandora_dagster.app import App, open_app
from pandora_dagster.app.composition import open_counter, open_recipe_loader
from pandora_dagster.app.recipe_admin import DryRun, open_dry_run
from pandora_dagster.contracts.model_calls import CallRecord, CallRequest
from pandora_dagster.contracts.recipe_schema import CallCase
from pandora_dagster.execution.call.recorded_inputs import replay_request
from pandora_dagster.governance.call_replay import replay_calls
from pandora_dagster.settings import load_settings

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
        app = open_app(settings)
        by_recipe = _logged(app, asked.calls)
        trying = open_dry_run(settings, open_recipe_loader(settings), open_counter())
        alone, through, same = 0.0, 0.0, 0
        for name, records in by_recipe.items():
            one = {name: records}
            _replayed(app, trying, one)  # both are warm before they are measured, and take turns
            pairs = [(_alone(app, trying, one), *_replayed(app, trying, one)) for _ in range(asked.rounds)]
            alone, through = alone + min(a for a, _, _ in pairs), through + min(r for _, r, _ in pairs)
            same += min(s for _, _, s in pairs)
        trying.close()
        app.close()
    calls = sum(len(records) for records in by_recipe.values())
    ratio = alone / through
    print(f"{calls} calls: alone {calls / alone:.0f} a CPU second, replayed {calls / through:.0f}: {ratio:.2f} (expected {RATIO})")
    print(f"{same} of {calls} answers are the same (expected all)")
    return 0 if ratio >= RATIO and same == calls else 1


def _logged(app: App, wanted: int) -> dict[str, list[CallRecord]]:
    """At least `wanted` calls of turns over the example's history, by recipe."""
    app.transfer.import_example()
    recipes = {app.recipes.load(name).name: name for name in app.recipes.names()}
    found: list[CallRecord] = []
    for number in range(1_000):
        key = app.start(QUERIES[number % len(QUERIES)], user="example", session=f"s{number}")
        app.run_turn(key, on_report=lambda _: None)
        found = [r for r in app.calls.files.read(key.user, report=print) if r.request_ref]
        if len(found) >= wanted:
            break
    by_recipe: dict[str, list[CallRecord]] = {}
    for record in islice(found, wanted):
        by_recipe.setdefault(recipes[record.recipe], []).append(record)
    return by_recipe


def _alone(app: App, trying: DryRun, by_recipe: dict[str, list[CallRecord]]) -> float:
    """Seconds of the processor for the calls themselves, everything that they need in memory."""
    ready: dict[str, list[CallRequest]] = {
        name: [replay_request(CallCase.model_validate_json(app.vault.read(r.request_ref)), name, user=r.user_id) for r in records]
        for name, records in by_recipe.items()
    }

    async def made(requests: list[CallRequest]) -> None:
        for request in requests:
            await trying.executor.execution.attempt(request)

    began = time.process_time()
    for name, requests in ready.items():
        trying.executor.select_version(app.recipes.load(name))
        trying.run(made(requests))
    return time.process_time() - began


def _replayed(app: App, trying: DryRun, by_recipe: dict[str, list[CallRecord]]) -> tuple[float, int]:
    """Seconds of the processor for the same through a replay, and how many answers are the same."""
    same, began = 0, time.process_time()
    for name, records in by_recipe.items():
        trying.executor.select_version(app.recipes.load(name))
        same += trying.run(replay_calls(iter(records), trying.executor, app.vault.read)).same
    return time.process_time() - began, same


if __name__ == "__main__":
    sys.exit(main())
