# pyright: reportUnknownMemberType=false
# (signatures of dg.schedule, dg.sensor and dg.define_asset_job name a bare PathLike)
"""Nightly archival in Dagster: its schedule, the days of each run, and the alarm for missed runs.

A day has a partition once it has due or archived turns; an empty day has none. Unfinished days come from Dagster's own records: a run
started the day and did not materialize it. A day that was archived without a record (from the command line, or the records are gone) has
archived turns in the store and no materialization, until `recorded_archival` records it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.archive.archive_selection import last_due_day
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES
from pandora_dagster.defs.checked_asset import failure
from pandora_dagster.defs.instance import add_archival_days
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import Settings

JOB, SCHEDULE, ALARM, CHECK = "archival", "nightly_turn_archival", "missed_archival_runs", "no_run_missed"
_MAX_RUNS_PER_TICK = 5
"""Each run takes a range of days: the oldest ranges and the newest one; the others wait for the next tick."""
_MAX_RUN_TIME = timedelta(hours=6)
"""An archival run counts as missed this long after the tick, and an unfinished run as interrupted this long after its start."""
_ARCHIVAL_ASSETS = [dg.AssetKey(name) for name in (ASSET, NARRATIVES, DIGESTS)]
"""The assets that an archival run materializes of a day."""
_MAX_LISTED_DAYS = 31
_ALARM_INTERVAL_S = 1800
_RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

ARCHIVAL_JOB = dg.define_asset_job(
    JOB,
    selection=dg.AssetSelection.assets(*_ARCHIVAL_ASSETS),
    description="Archives the turns of a day, or of a range of days in one run; then summarizes their sessions and users.",
)


def archival_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`nightly_turn_archival`: starts archival runs at PANDORA_ARCHIVE_AT in PANDORA_TIMEZONE.

    They take the days with due turns, days of interrupted runs, and archived days without a record.
    """

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=f"{settings.archive_at.minute} {settings.archive_at.hour} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Archives every day that has due turns, or whose run was missed or interrupted. Days without turns have no run.",
    )
    def nightly_turn_archival(
        context: dg.ScheduleEvaluationContext, archive: dg.ResourceParam[ArchiveResource]
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        try:
            service = archive.open()
            archived, due = _archived_days(service), service.due_days(now)
        except PandoraError as error:
            raise failure(SCHEDULE, error) from error
        unfinished = {*due, *_interrupted_days(context.instance, now, settings), *unmaterialized_days(archived, context.instance)}
        if not unfinished:
            yield dg.SkipReason("no turn is due")
            return
        ranges = partition_ranges(add_archival_days(context.instance, {*archived, *unfinished}), unfinished)
        if len(ranges) > _MAX_RUNS_PER_TICK:
            ranges = [*ranges[: _MAX_RUNS_PER_TICK - 1], ranges[-1]]
        for first, last in ranges:
            yield _run_request(first, last, now)

    return nightly_turn_archival


def missed_archival_check(settings: Settings) -> dg.AssetChecksDefinition:
    """`no_run_missed`, as a run sees it: no archival run was interrupted. The sensor adds the days that no run took.

    It runs after the summary levels, since until then the run that contains it is unfinished.
    """

    @dg.asset_check(
        asset=ASSET,
        name=CHECK,
        additional_deps=[NARRATIVES, DIGESTS],
        description="No archival run was interrupted, and no turn that was due at the time of the schedule is still due six hours later.",
    )
    def no_run_missed(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        missed = _days_of_ended_runs(context.instance, settings)
        return dg.AssetCheckResult(passed=not missed, description=_alarm_description(missed), metadata=_alarm_metadata(missed))

    return no_run_missed


def missed_archival_sensor(settings: Settings) -> dg.SensorDefinition:
    """`missed_archival_runs`: adds the days with due turns as partitions, and evaluates `no_run_missed` without a run, so that a daemon
    that missed the schedule reports it."""

    @dg.sensor(
        name=ALARM,
        minimum_interval_seconds=_ALARM_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adds the days with due turns; fails the check {CHECK} of {ASSET} where an archival run was missed or interrupted.",
    )
    def missed_archival_runs(
        context: dg.SensorEvaluationContext, archive: dg.ResourceParam[ArchiveResource]
    ) -> dg.SensorResult | dg.SkipReason:
        now = datetime.now(UTC)
        try:
            service = archive.open()
            archived, due = _archived_days(service), service.due_days(now)
        except PandoraError as error:
            raise failure(ALARM, error) from error
        add_archival_days(context.instance, {*archived, *due})
        before = AlarmCursor.parse(context.cursor)
        due_since = {day: before.due_since.get(day) or _first_due(day, before.evaluated, now, settings) for day in sorted(due)}
        overdue = {day for day, since in due_since.items() if since <= _last_expected_tick(now, settings)}
        missed = tuple(sorted(overdue.union(_days_of_ended_runs(context.instance, settings))))
        cursor = AlarmCursor(evaluated=now, due_since=due_since, missed=missed).encode()
        if missed == before.missed:
            return dg.SensorResult(skip_reason=dg.SkipReason(_alarm_description(missed)), cursor=cursor)
        evaluation = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(ASSET),
            check_name=CHECK,
            passed=not missed,
            description=_alarm_description(missed),
            metadata=_alarm_metadata(missed),
        )
        return dg.SensorResult(asset_events=[evaluation], cursor=cursor)

    return missed_archival_runs


@dataclass(frozen=True, slots=True)
class AlarmCursor:
    """What the sensor knows from its last evaluation. `due_since`: day with due turns -> the moment since which it is known to be due."""

    evaluated: datetime | None = None
    due_since: Mapping[date, datetime] = field(default_factory=dict[date, datetime])
    missed: tuple[date, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> "AlarmCursor":
        """The cursor of `text`; an empty one where there is none, or where an older version wrote it."""
        try:
            return _CURSOR.validate_json(text or "{}")
        except ValidationError:
            return cls()

    def encode(self) -> str:
        """The cursor as JSON."""
        return _CURSOR.dump_json(self).decode()


_CURSOR = TypeAdapter(AlarmCursor)


def _archived_days(service: ArchiveService) -> set[date]:
    return {day for day, _ in service.by_day()}


def _first_due(day: date, last_evaluated: datetime | None, now: datetime, settings: Settings) -> datetime:
    """Since when a day is due that was not at the last evaluation: since its calendar moment if that came after it; otherwise its turns
    were imported or released since then, and count as due from now on."""
    calendar_moment = datetime.combine(day + timedelta(days=settings.archive_after_days + 1), time(), settings.zone)
    return calendar_moment if last_evaluated and calendar_moment > last_evaluated else now


def _last_expected_tick(now: datetime, settings: Settings) -> datetime:
    """The newest time of the schedule whose runs should be finished by now."""
    limit = (now - _MAX_RUN_TIME).astimezone(settings.zone)
    tick = datetime.combine(limit.date(), settings.archive_at, settings.zone)
    return tick if tick <= limit else datetime.combine(limit.date() - timedelta(days=1), settings.archive_at, settings.zone)


def partition_ranges(keys: Sequence[str], unfinished: Collection[date]) -> list[tuple[str, str]]:
    """The fewest ranges (first key, last key) of `keys` that contain every unfinished day and no other, oldest first; each becomes one
    run."""
    unfinished_keys = {day.isoformat() for day in unfinished}
    groups = (list(group) for is_unfinished, group in groupby(keys, key=unfinished_keys.__contains__) if is_unfinished)
    return sorted((group[0], group[-1]) for group in groups)


def _materialized_days(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[date]:
    """The days that a run materialized."""
    return {date.fromisoformat(key) for key in instance.get_materialized_partitions(asset)}


def unmaterialized_days(archived: Collection[date], instance: dg.DagsterInstance) -> set[date]:
    """The days with archived turns of which not every archival asset was materialized."""
    return {day for asset in _ARCHIVAL_ASSETS for day in set(archived) - _materialized_days(instance, asset)}


def _interrupted_days(instance: dg.DagsterInstance, now: datetime, settings: Settings) -> dict[date, frozenset[str]]:
    """Day, if its turns can be due -> the newest run of each asset that started and has not materialized it, where no later run did."""
    run_ids: dict[date, frozenset[str]] = {}
    for asset in _ARCHIVAL_ASSETS:
        attempts = instance.event_log_storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
        for key, (run_id, _) in attempts.items():
            day = date.fromisoformat(key)
            run_ids[day] = run_ids.get(day, frozenset()) | {run_id}
    last_due = last_due_day(now, settings.zone, settings.archive_after_days)
    return {day: day_run_ids for day, day_run_ids in run_ids.items() if day <= last_due}


def _running_ids(run_ids: Collection[str], instance: dg.DagsterInstance) -> set[str]:
    """The runs that are unfinished and started recently; a run whose process was killed stays unfinished for ever."""
    if not run_ids:
        return set()
    recent = dg.RunsFilter(run_ids=sorted(run_ids), created_after=datetime.now(UTC) - _MAX_RUN_TIME)
    return {run.run_id for run in instance.get_runs(recent) if not run.is_finished}


def active_days(instance: dg.DagsterInstance, settings: Settings) -> set[date]:
    """The days that a run started and is working on."""
    return set(_interrupted_days(instance, datetime.now(UTC), settings)) - _days_of_ended_runs(instance, settings)


def range_tags(first: str, last: str) -> dict[str, str]:
    """The tags of a run over the days from `first` to `last`."""
    return {"dagster/partition": first} if first == last else dict(zip(_RANGE_TAGS, (first, last), strict=True))


def _days_of_ended_runs(instance: dg.DagsterInstance, settings: Settings) -> set[date]:
    """The days that a run started and did not materialize, and no run is working on."""
    run_ids = _interrupted_days(instance, datetime.now(UTC), settings)
    running = _running_ids({run_id for day_run_ids in run_ids.values() for run_id in day_run_ids}, instance)
    return {day for day, day_run_ids in run_ids.items() if day_run_ids - running}


def _alarm_description(missed: Collection[date]) -> str:
    if not missed:
        return "no archival run was missed"
    span = f"{min(missed)}" if len(missed) == 1 else f"{len(missed)} days from {min(missed)} to {max(missed)}"
    return f"{span}: not archived, or not completely: run the job {JOB} for this range, or wait for the next run"


def _alarm_metadata(missed: Collection[date]) -> dict[str, str | int]:
    return {"missed": len(missed), **({"days": ", ".join(day.isoformat() for day in sorted(missed)[:_MAX_LISTED_DAYS])} if missed else {})}


def _run_request(first: str, last: str, now: datetime) -> dg.RunRequest:
    """The archival run over the days from `first` to `last`."""
    run_key = f"{first}...{last}@{now:%Y-%m-%dT%H:%M}"
    if first == last:
        return dg.RunRequest(run_key=run_key, partition_key=first)
    return dg.RunRequest(run_key=run_key, tags=dict(zip(_RANGE_TAGS, (first, last), strict=True)))
