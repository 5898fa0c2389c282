# pyright: reportUnknownMemberType=false
"""Runs of turns that ran outside Dagster (`ask`, `chat`, the API), recorded from the reports of their phases; no phase runs again.

See decision 40: docs/decisions/40-the-answer-before-the-bookkeeping.md.
"""

from collections.abc import Sequence

import dagster as dg

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.defs.dagster_internals import UnresolvedAssetJobDefinition
from pandora_dagster.defs.instance import add_turn_partitions
from pandora_dagster.defs.run_events import RunEvents, begin_recorded_run, check_evaluation
from pandora_dagster.defs.turn.phase_assets import halt_failure, materialization_event, run_tags, turn_assets
from pandora_dagster.defs.turn.phase_checks import check_names, judged_results, phase_recipes
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports
from pandora_dagster.phases.flow import phase_table

TURN_JOB = "turn"


def record_run(
    instance: dg.DagsterInstance,
    key: TurnKey,
    reports: TimedReports,
    *,
    recipes: RecipeCatalog,
    session: str,
    folder: str,
    error: BaseException | None = None,
) -> str:
    """Store one run of the job `turn` for these finished phases and return its id; "" where no phase ran.

    `error`: what stopped the turn, where it was not a HALT.
    """
    ran = [(report, span) for report, span in zip(reports, reports.spans, strict=True) if not report.skipped]
    if not ran:
        return ""
    add_turn_partitions(instance, [key])
    failed = next((report.phase for report, _ in ran if report.halt), "")
    events = begin_recorded_run(
        instance,
        _recorded_job(turn_assets(recipes)),
        ran[0][1].begin,
        tags={**run_tags(key, session), "dagster/partition": str(key)},
        # of a failed run all phases, so that "Re-execute from failure" goes on to the answer
        assets=None if failed or error else [report.phase for report, _ in ran],
    )
    for report, span in ran:
        _record_phase(events, report, span.begin, span.end, recipes=recipes, folder=folder)
    if failed or error:
        events.fail(ran[-1][1].end, step=failed, error=error)
    else:
        events.succeed(ran[-1][1].end)
    return events.run_id


def turn_job(assets: Sequence[dg.AssetsDefinition]) -> UnresolvedAssetJobDefinition:
    """The job `turn` over the assets of a turn."""
    return dg.define_asset_job(
        TURN_JOB,
        selection=[key for asset in assets for key in asset.keys],
        description="All phases of an existing turn. A saved turn is never overwritten: its re-run is a numbered revision beside it.",
    )


def _recorded_job(assets: Sequence[dg.AssetsDefinition]) -> dg.JobDefinition:
    """The job `turn` as the recorded run names it; its resource is never opened."""
    job = turn_job(assets)
    runner = dg.ResourceDefinition.hardcoded_resource(None)
    return dg.Definitions(assets=assets, jobs=[job], resources={"pandora": runner}).resolve_job_def(job.name)


def _record_phase(events: RunEvents, report: PhaseReport, begin: float, end: float, *, recipes: RecipeCatalog, folder: str) -> None:
    """The events of one phase: its checks and its materialization, or the failure of a HALT."""
    phase, spec = report.phase, phase_table.phase_spec(report.phase)
    events.begin_step(phase, begin)
    if report.halt:
        events.plan(phase, str(report.key), begin)
    for result in judged_results(report, check_names(spec, phase_recipes(spec, recipes))):
        events.evaluate_check(check_evaluation(result), phase, end)
    if report.halt:
        events.fail_step(phase, halt_failure(report, report.halt, folder), end)
        return
    events.materialize(materialization_event(events.instance, report, folder), phase, end)
    events.finish_step(phase, begin, end)
