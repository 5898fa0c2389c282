"""A live turn on the embedded runtime, compared with the same graph with empty bodies: what the phases cost beside Dagster.

Both run in this warm process, on a SQLite home of their own on the same disk with the shipped settings, both instances open.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter

import dagster as dg

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.defs.instance import TURNS, add_turn_partitions, open_instance, open_instance_at
from pandora_dagster.defs.turn.phase_assets import run_tags, turn_assets
from pandora_dagster.defs.turn.recorded_run import record_run, turn_job
from pandora_dagster.phases.core.phase_report import TimedReports
from pandora_dagster.phases.flow.phase_table import phase_effects
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder

QUERY = "Which chair did we order, and what did it cost?"
USER = "example"
BRANCHES_NOT_TAKEN = tuple(phase for phase, state in phase_effects().final_states.items() if state is TurnState.CLARIFY)
"""What a turn that is answered skips; the empty chain skips the same."""


@contextmanager
def turn_pair(folder: Path) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    """A turn over a fresh store with the shipped example history; a run of the empty chain."""
    app = open_app(load_settings({"PANDORA_ROOT": str(folder / "store")}))
    app.transfer.import_example()
    with open_instance(app.settings) as used, open_instance_at(folder / "empty", shipped_folder() / "data" / "dagster.yaml") as empty:
        chain, numbers = [empty_asset(asset) for asset in turn_assets(app.recipes)], count(1)
        yield lambda: live_turn(app, used), lambda: empty_run(chain, TurnKey(user_id(USER), next(numbers)), empty)
    app.close()


def live_turn(app: App, instance: dg.DagsterInstance) -> float:
    """Seconds from the question to the saved, summarised and indexed turn with its recorded run."""
    started = perf_counter()
    key = app.start(QUERY, user=USER, session="bench")
    reports = TimedReports()
    app.run_turn(key, on_report=reports.append)
    record_run(instance, key, reports, recipes=app.recipes, session="bench", folder=app.turns.path(key))
    took = perf_counter() - started
    assert app.answer_of(key).state == "saved", f"{key} did not end saved"
    return took


def empty_run(chain: list[dg.AssetsDefinition], key: TurnKey, instance: dg.DagsterInstance) -> float:
    """Seconds for one run of the empty chain, started as a turn is: partition, job, run."""
    started = perf_counter()
    add_turn_partitions(instance, [key])
    job = turn_job(chain)
    result = (
        dg.Definitions(assets=chain, jobs=[job])
        .resolve_job_def(job.name)
        .execute_in_process(
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            instance=instance,
            partition_key=str(key),
            tags=run_tags(key, "bench"),
        )
    )
    took = perf_counter() - started
    assert result.success
    return took


def empty_asset(asset: dg.AssetsDefinition) -> dg.AssetsDefinition:
    """The same key, dependencies and checks, and a body that does nothing."""
    spec, checks = next(iter(asset.specs)), list(asset.check_specs)
    passed = [dg.AssetCheckResult(asset_key=c.asset_key, check_name=c.name, passed=True) for c in checks]
    name = spec.key.to_python_identifier()

    @dg.multi_asset(name=name, specs=[spec], check_specs=checks, partitions_def=TURNS, can_subset=spec.skippable)
    def body() -> Iterator[dg.MaterializeResult]:
        if name not in BRANCHES_NOT_TAKEN:
            yield dg.MaterializeResult(asset_key=spec.key, check_results=passed)

    return body
