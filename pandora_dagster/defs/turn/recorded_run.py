# pyright: reportUnknownMemberType=false
"""Runs of turns that ran outside Dagster (`ask`, `chat`, the API), recorded from the reports of their phases; no phase runs again.

See decision 40: docs/decisions/40-the-answer-before-the-bookkeeping.md. A recorded run has the events that an executed one has, without
those of Dagster's own machinery.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventType,
    JobFailureData,
    RunFailureReason,
    StepMaterializationData,
)
from dagster._core.execution.plan.objects import StepFailureData, StepSuccessData, UserFailureData
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._utils.error import SerializableErrorInfo  # pyright: ignore[reportPrivateImportUsage] - of dagster_shared, no dependency of ours

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.defs.instance import add_turn_partitions
from pandora_dagster.defs.turn.phase_assets import (
    CODE_LOCATION,
    REPOSITORY,
    check_evaluation,
    halt_failure,
    materialization_event,
    run_tags,
    turn_assets,
)
from pandora_dagster.defs.turn.phase_checks import check_names, judged_results, phase_recipes
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports
from pandora_dagster.phases.flow import phase_table

TURN_JOB = "turn"
_ORIGIN = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(CODE_LOCATION), REPOSITORY), TURN_JOB)
"""The job as the web page knows it. Without it the page's timeline leaves the run out, and "Re-execute" ends with a traceback."""
_NO_PLANNED_EVENTS = "dagster/defer_asset_events"
"""The tag of a run that leaves out the events which announce what it will materialize."""


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
    job = _recorded_job(turn_assets(recipes))
    run = instance.create_run_for_job(
        job,
        tags={**run_tags(key, session), "dagster/partition": str(key), _NO_PLANNED_EVENTS: "true"},
        # of a failed run all phases, so that "Re-execute from failure" goes on to the answer
        asset_selection=None if failed or error else {dg.AssetKey(report.phase) for report, _ in ran},
        remote_job_origin=_ORIGIN,
    )
    instance.add_run_tags(run.run_id, {_NO_PLANNED_EVENTS: "false"})  # a re-execution has the tags of this run
    events = RunEvents(instance, run.run_id, TURN_JOB)
    events.add(DagsterEventType.RUN_START, ran[0][1].begin, f'Started execution of run for "{TURN_JOB}".')
    for report, span in ran:
        _record_phase(events, report, span.begin, span.end, recipes=recipes, folder=folder)
    end = ran[-1][1].end
    if failed:
        events.fail(end, f"Steps failed: ['{failed}'].", RunFailureReason.STEP_FAILURE)
    elif error:
        events.fail(end, redact(str(error) or type(error).__name__), RunFailureReason.RUN_EXCEPTION)
    else:
        events.add(DagsterEventType.RUN_SUCCESS, end, f'Finished execution of run for "{TURN_JOB}".')
    return run.run_id


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


def _record_phase(events: "RunEvents", report: PhaseReport, begin: float, end: float, *, recipes: RecipeCatalog, folder: str) -> None:
    """The events of one phase: its checks and its materialization, or the failure of a HALT."""
    spec = phase_table.phase_spec(report.phase)
    checks = check_names(spec, phase_recipes(spec, recipes))
    events.add(DagsterEventType.STEP_START, begin, f'Started execution of step "{report.phase}".', step=report.phase)
    if report.halt:
        events.plan(report, begin)
    for result in judged_results(report, checks):
        events.add(DagsterEventType.ASSET_CHECK_EVALUATION, end, "", check_evaluation(spec.name, result), step=report.phase)
    if report.halt:
        failure = halt_failure(report, report.halt, folder)
        error = SerializableErrorInfo(f"dagster.Failure: {failure.description}\n", [], "Failure")
        data = StepFailureData(error, UserFailureData("intentional-failure", failure.description, failure.metadata))
        events.add(DagsterEventType.STEP_FAILURE, end, f'Execution of step "{report.phase}" failed.', data, step=report.phase)
        return
    materialized = StepMaterializationData(materialization_event(events.instance, report, folder))
    events.add(DagsterEventType.ASSET_MATERIALIZATION, end, f"Materialized value {report.phase}.", materialized, step=report.phase)
    message = f'Finished execution of step "{report.phase}".'
    events.add(DagsterEventType.STEP_SUCCESS, end, message, StepSuccessData((end - begin) * 1000), step=report.phase)


@dataclass(frozen=True, slots=True)
class RunEvents:
    """Stores the events of one run; the time of an event is in seconds since 1970."""

    instance: dg.DagsterInstance
    run_id: str
    job: str

    def add(self, kind: DagsterEventType, time: float, message: str, data: Any = None, *, step: str | None = None) -> None:
        event = DagsterEvent(kind.value, self.job, message=message, event_specific_data=data, step_key=step)
        level = logging.ERROR if kind in (DagsterEventType.STEP_FAILURE, DagsterEventType.RUN_FAILURE) else logging.DEBUG
        self.instance.report_dagster_event(event, self.run_id, level, timestamp=time)

    def plan(self, report: PhaseReport, time: float) -> None:
        """The event that makes a partition failed where the run does not materialize it."""
        planned = AssetMaterializationPlannedData(dg.AssetKey(report.phase), partition=str(report.key))
        self.add(DagsterEventType.ASSET_MATERIALIZATION_PLANNED, time, "", planned, step=report.phase)

    def fail(self, time: float, message: str, reason: RunFailureReason) -> None:
        data = JobFailureData(SerializableErrorInfo(message, [], None), reason)
        self.add(DagsterEventType.RUN_FAILURE, time, f'Execution of run for "{self.job}" failed. {message}', data)
