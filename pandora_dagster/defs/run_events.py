# pyright: reportUnknownMemberType=false
"""Runs that Dagster did not execute, with the events of executed ones, without those of Dagster's own machinery."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from pandora_dagster.defs.dagster_internals import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
    NULL_EVENT_POINTER,
    AssetMaterializationPlannedData,
    ErrorInfo,
    JobFailureData,
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
    RunFailureReason,
    StepFailureData,
    StepMaterializationData,
    StepSuccessData,
    UserFailureData,
)
from pandora_dagster.documents.redaction.credentials import redact

_CODE_LOCATION, _REPOSITORY = "pandora_dagster", "__repository__"
"""The code location, as `workspace.yaml` names it, and Dagster's name of the definitions in it."""
REPOSITORY_TAG = {".dagster/repository": f"{_REPOSITORY}@{_CODE_LOCATION}"}
"""The tag that shows a run under its job."""
_NO_PLANNED_EVENTS = "dagster/defer_asset_events"
"""The tag of a run that leaves out the events which announce what it will materialize."""


@dataclass(frozen=True, slots=True)
class RunEvents:
    """Stores the events of one run; the time of an event is in seconds since 1970."""

    instance: dg.DagsterInstance
    run_id: str
    job: str

    def add(self, kind: dg.DagsterEventType, time: float, message: str, data: Any = None, *, step: str | None = None) -> None:
        """Store one event."""
        event = dg.DagsterEvent(kind.value, self.job, message=message, event_specific_data=data, step_key=step)
        level = logging.ERROR if kind in (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE) else logging.DEBUG
        self.instance.report_dagster_event(event, self.run_id, level, timestamp=time)

    def plan(self, asset: str, partition: str, time: float) -> None:
        """The event that makes a partition failed where the run does not materialize it."""
        planned = AssetMaterializationPlannedData(dg.AssetKey(asset), partition=partition)
        self.add(dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED, time, "", planned, step=asset)

    def begin_step(self, step: str, time: float) -> None:
        """The start of a step."""
        self.add(dg.DagsterEventType.STEP_START, time, f'Started execution of step "{step}".', step=step)

    def evaluate_check(self, evaluation: dg.AssetCheckEvaluation, step: str, time: float) -> None:
        """The result of a check."""
        self.add(dg.DagsterEventType.ASSET_CHECK_EVALUATION, time, "", evaluation, step=step)

    def materialize(self, materialization: dg.AssetMaterialization, step: str, time: float) -> None:
        """A materialization."""
        message = f"Materialized value {materialization.asset_key.to_user_string()}."
        self.add(dg.DagsterEventType.ASSET_MATERIALIZATION, time, message, StepMaterializationData(materialization), step=step)

    def finish_step(self, step: str, begin: float, end: float) -> None:
        """The success of a step."""
        data = StepSuccessData((end - begin) * 1000)
        self.add(dg.DagsterEventType.STEP_SUCCESS, end, f'Finished execution of step "{step}".', data, step=step)

    def fail_step(self, step: str, failure: dg.Failure, time: float) -> None:
        """The failure of a step."""
        error = ErrorInfo(f"dagster.Failure: {failure.description}\n", [], "Failure")
        data = StepFailureData(error, UserFailureData("intentional-failure", failure.description, failure.metadata))
        self.add(dg.DagsterEventType.STEP_FAILURE, time, f'Execution of step "{step}" failed.', data, step=step)

    def succeed(self, time: float) -> None:
        """The success of the run."""
        self.add(dg.DagsterEventType.RUN_SUCCESS, time, f'Finished execution of run for "{self.job}".')

    def fail(self, time: float, *, step: str = "", error: BaseException | None = None) -> None:
        """The failure of the run: by a failed step, or by an error between the steps."""
        message = f"Steps failed: ['{step}']." if step else redact(str(error) or type(error).__name__)
        reason = RunFailureReason.STEP_FAILURE if step else RunFailureReason.RUN_EXCEPTION
        data = JobFailureData(ErrorInfo(message, [], None), reason)
        self.add(dg.DagsterEventType.RUN_FAILURE, time, f'Execution of run for "{self.job}" failed. {message}', data)


def begin_recorded_run(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    time: float,
    *,
    tags: Mapping[str, str],
    assets: Collection[str] | None = None,
    run_id: str | None = None,
) -> RunEvents:
    """Create the run of a job that ran outside Dagster, and store that it started. `assets`: those that it materializes; None: all.

    Without its origin the page's timeline leaves the run out, and "Re-execute" ends with a traceback.
    """
    location = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(_CODE_LOCATION), _REPOSITORY)
    run = instance.create_run_for_job(
        job,
        run_id=run_id,
        tags={**tags, **REPOSITORY_TAG, _NO_PLANNED_EVENTS: "true"},
        asset_selection=None if assets is None else {dg.AssetKey(name) for name in assets},
        remote_job_origin=RemoteJobOrigin(location, job.name),
    )
    instance.add_run_tags(run.run_id, {_NO_PLANNED_EVENTS: "false"})  # a re-execution has the tags of this run
    events = RunEvents(instance, run.run_id, job.name)
    events.add(dg.DagsterEventType.RUN_START, time, f'Started execution of run for "{job.name}".')
    return events


def check_evaluation(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """The result of a check as an event."""
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey.from_coercible(result.asset_key or ()),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


def version_tags(instance: dg.DagsterInstance, needs: Mapping[str, str | None], *, data_version: str, code_version: str) -> dict[str, str]:
    """The tags of a recorded materialization: its versions, and those of the assets that it needs, by which Dagster tells whether it is
    in sync with them. `needs`: asset -> its partition."""
    tags = {DATA_VERSION_TAG: data_version, CODE_VERSION_TAG: code_version}
    for need, partition in needs.items():
        wanted = dg.AssetRecordsFilter(dg.AssetKey(need), asset_partitions=None if partition is None else [partition])
        record = next(iter(instance.fetch_materializations(wanted, limit=1).records), None)
        stored = record.asset_materialization if record else None
        version = ((stored and stored.tags) or {}).get(DATA_VERSION_TAG)
        tags[f"{INPUT_DATA_VERSION_TAG_PREFIX}/{need}"] = version or DEFAULT_DATA_VERSION.value
        tags[f"{INPUT_EVENT_POINTER_TAG_PREFIX}/{need}"] = str(record.storage_id) if record else NULL_EVENT_POINTER
    return tags
