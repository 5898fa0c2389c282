# pyright: reportUnknownMemberType=false
"""Archival runs outside Dagster (`pandora archive`), recorded as runs of the job `archival`, with the materializations and checks that
an executed run has; nothing is archived again.

The record comes last. What a killed archival archived without a record, the next one records: the days, and the run that their documents
name.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from uuid import uuid4

import dagster as dg

from pandora_dagster.app import App
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.contracts.archive_records import ArchivedTurn, ArchiveReport, DayCheck
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.user.summary_levels import LevelOutcome, LevelReport, LevelRow, LevelSubject
from pandora_dagster.defs.archival.archival_schedule import ARCHIVAL_JOB, active_days, partition_ranges, range_tags, unmaterialized_days
from pandora_dagster.defs.archival.archive_assets import ASSET, archive_asset, day_check_result, day_metadata, stop_failure
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES, level_assets, level_check_result, level_metadata
from pandora_dagster.defs.imported_turns import ASSET as IMPORTED_TURNS
from pandora_dagster.defs.imported_turns import imported_turns_asset
from pandora_dagster.defs.instance import add_archival_days, open_instance, remove_turn_partitions
from pandora_dagster.defs.run_events import RunEvents, begin_recorded_run, check_evaluation, version_tags
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.phase_table import phase_in_role

_LEVELS = {NARRATIVES: ASSET, DIGESTS: NARRATIVES}
"""The asset of each summary level -> the one before it, which it needs."""
_CODE_VERSION = "1"
"""That of these assets: `checked_asset`."""
_RELATIONS = {Relation.COMPRESSED: ASSET, Relation.SUMMARIZED: NARRATIVES, Relation.DIGESTED: DIGESTS}
"""What the rows of a run in the lineage index say -> the asset whose step made them."""
_SETTLED = timedelta(hours=1)
"""A run whose newest row is this old is not about to be recorded by its own process: a text that takes ten minutes stays whole."""


@dataclass(slots=True)
class ArchivalRecord:
    """What an archival run outside Dagster did, collected while it runs."""

    clock: Callable[[], float] = time.time
    run_id: str = field(default_factory=lambda: str(uuid4()))
    """The id of its run, which the lineage of its documents names."""
    days: set[date] = field(default_factory=set[date])
    """The days of the turns that it tried to archive."""
    level_rows: dict[str, dict[LevelSubject, LevelRow]] = field(default_factory=lambda: {name: {} for name in _LEVELS})
    reports: dict[str, ArchiveReport | LevelReport] = field(default_factory=dict[str, ArchiveReport | LevelReport])
    """Asset -> the report of its step, in order."""
    times: list[float] = field(default_factory=list[float])
    """The begin of the first step and the end of each."""

    def __post_init__(self) -> None:
        self.times.append(self.clock())

    @classmethod
    def idle(cls) -> "ArchivalRecord":
        """The record of a run for which nothing was due."""
        record = cls()
        record.finish(ASSET, ArchiveReport())
        for level in _LEVELS:
            record.finish(level, LevelReport())
        return record

    def add_turn(self, row: ArchivedTurn) -> None:
        """Add the row of a turn."""
        self.days.add(date.fromisoformat(row.day))

    def add_level_row(self, name: str) -> Callable[[LevelRow], None]:
        """The callback that adds the rows of one level."""
        return lambda row: self.level_rows[name].update({row.subject: row})

    def finish(self, asset: str, report: ArchiveReport | LevelReport) -> None:
        """Add the report of a finished step."""
        self.reports[asset] = report
        self.times.append(self.clock())

    @property
    def is_empty(self) -> bool:
        """Whether no turn was due and no level changed."""
        idle = {LevelOutcome.UNCHANGED, LevelOutcome.WAITING}
        return not self.days and all(row.outcome in idle for rows in self.level_rows.values() for row in rows.values())


def report_archival(app: App, record: ArchivalRecord) -> str:
    """Delete the partitions of archived turns, then record the run and return its id; "" where there is nothing to record.

    The days of the run are those of its turns, archived days that no run materialized, and those of killed runs, which are recorded with
    it. A day that an active run of Dagster works on is left to it.
    """
    service = ArchiveService(app)
    with open_instance(app.settings, captures_output=False) as instance:
        remove_turn_partitions(instance, (turn.key for turn in app.turn_index.activities(archived=True)))
        archived = {day for day, _ in service.by_day()}
        days = record.days | unmaterialized_days(archived, instance)
        for run_id in unrecorded_archivals(app, instance):
            days |= _record_killed_run(app, instance, service, run_id)
        days -= active_days(instance, app.settings)
        if not days and record.is_empty:
            return ""
        return _record_run(instance, service, record, sorted(days))


def unrecorded_archivals(app: App, instance: dg.DagsterInstance) -> list[str]:
    """The runs that archived documents name and Dagster does not know, oldest first: their processes were killed, or its records are gone.

    A run older than PANDORA_RUNS_KEEP_DAYS may have been deleted.
    """
    now, keep_days = app.dependencies.clock(), app.settings.runs_keep_days
    runs = ((run_id, now - datetime.fromisoformat(newest)) for run_id, newest in app.lineage.index.runs())
    settled = (run_id for run_id, age in runs if age > _SETTLED and not (keep_days and age.days >= keep_days))
    return [run_id for run_id in settled if not instance.has_run(run_id)]


def _record_killed_run(app: App, instance: dg.DagsterInstance, service: ArchiveService, run_id: str) -> set[date]:
    """Record a run by what it made, as it is now; return the days of its turns."""
    rows = app.lineage.index.rows_of_run(run_id)
    made_at = sorted(datetime.fromisoformat(row.at).timestamp() for row in rows)
    record = ArchivalRecord(clock=iter([made_at[0], *[made_at[-1]] * len(_RELATIONS)]).__next__, run_id=run_id)
    made = {row.relation for row in rows}
    for relation, asset in _RELATIONS.items():
        if relation in made:
            record.finish(asset, ArchiveReport() if asset == ASSET else LevelReport())
    days = set(_days_of(app, rows))
    _record_run(instance, service, record, sorted(days))
    return days


def _days_of(app: App, rows: Iterable[LineageEdge]) -> Iterator[date]:
    """The days of the turns that these rows name; a turn that cannot be read is left out: `doctor` names it."""
    ends = (DocumentId.parse(end).turn for row in rows for end in (row.child, row.parent))
    for key in {turn.key for turn in ends if turn}:
        with suppress(PandoraError):
            record = app.turns.manifest(key).archive
            if record:
                yield date.fromisoformat(record.day)


def _record_run(instance: dg.DagsterInstance, service: ArchiveService, record: ArchivalRecord, days: list[date]) -> str:
    ranges = partition_ranges(add_archival_days(instance, days), days)
    tags = range_tags(*ranges[0]) if len(ranges) == 1 else {}
    events = begin_recorded_run(instance, _recorded_job(), record.times[0], tags=tags, assets=record.reports, run_id=record.run_id)
    spans = zip(record.times, record.times[1:], strict=False)
    for (asset, report), (begin, end) in zip(record.reports.items(), spans, strict=True):
        events.begin_step(asset, begin)
        if report.stopped:
            for day in days:
                events.plan(asset, day.isoformat(), begin)
            events.fail_step(asset, stop_failure(asset, report), end)
            events.fail(end, step=asset)
            return events.run_id
        if isinstance(report, ArchiveReport):
            _record_days(events, service, days, end)
        else:
            _record_level(events, service, asset, report, record.level_rows[asset], days, end)
        events.finish_step(asset, begin, end)
    events.succeed(record.times[-1])
    return events.run_id


def _record_days(events: RunEvents, service: ArchiveService, dates: list[date], time: float) -> None:
    """The events of `archived_turns`."""
    days = list(service.verify_days(dates))
    for day in days:
        _materialize(events, ASSET, day.day, day_metadata(day, service), time, needs={IMPORTED_TURNS: None})
    _evaluate(events, ASSET, (day_check_result(check, days) for check in DayCheck if days), time)


def _record_level(
    events: RunEvents,
    service: ArchiveService,
    asset: str,
    report: LevelReport,
    rows: Mapping[LevelSubject, LevelRow],
    days: list[date],
    time: float,
) -> None:
    """The events of `session_summaries` or `user_digests`."""
    by_day = service.subjects(days, by_user=asset == DIGESTS)
    subjects = frozenset(subject for day_subjects in by_day.values() for subject in day_subjects)
    for day in days:
        _materialize(events, asset, day, level_metadata(by_day.get(day, ()), rows, service), time, needs={_LEVELS[asset]: day.isoformat()})
    if days:
        _evaluate(events, asset, [level_check_result(asset, days, subjects, list(service.source_faults(subjects)), report)], time)


def _materialize(
    events: RunEvents, asset: str, day: date, metadata: dict[str, dg.MetadataValue], time: float, *, needs: Mapping[str, str | None]
) -> None:
    partition = day.isoformat()
    tags = version_tags(events.instance, needs, data_version=events.run_id, code_version=_CODE_VERSION)
    events.materialize(dg.AssetMaterialization(asset, partition=partition, metadata=metadata, tags=tags), asset, time)


def _evaluate(events: RunEvents, asset: str, results: Iterable[dg.AssetCheckResult], time: float) -> None:
    for result in results:
        events.evaluate_check(check_evaluation(result), asset, time)


def _recorded_job() -> dg.JobDefinition:
    """The job `archival` as the recorded run names it; its resource is never opened."""
    above = [dg.AssetSpec(phase_in_role(PhaseRole.SUMMARY)), imported_turns_asset()]
    service = dg.ResourceDefinition.hardcoded_resource(None)
    definitions = dg.Definitions(assets=[archive_asset(), *level_assets(), *above], jobs=[ARCHIVAL_JOB], resources={"archive": service})
    return definitions.resolve_job_def(ARCHIVAL_JOB.name)
