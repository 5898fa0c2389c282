# pyright: reportUnknownMemberType=false
# (signatures of dg.schedule, dg.sensor and dg.define_asset_job name a bare PathLike)
"""Nightly archival in Dagster: its schedule, the days of each run, and the alarm for missed runs.

Unfinished days come from Dagster's own records: a run started the day and did not materialize it. A day that was archived without a
record (from the command line, or the records are gone) has archived turns in the store and no materialization.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from pandora_dagster.archive.archive_selection import date_ranges
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES
from pandora_dagster.defs.checked_asset import failure
from pandora_dagster.defs.instance import due_days
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
_ALARM_DAYS = 31
"""The alarm covers this number of newest days."""
_ALARM_INTERVAL_S = 1800
_RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

ARCHIVAL_JOB = dg.define_asset_job(
    JOB,
    selection=dg.AssetSelection.assets(*_ARCHIVAL_ASSETS),
    description="Archives the turns of a day, or of a range of days in one run; then summarizes their sessions and users.",
)


def archival_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`nightly_turn_archival`: starts archival runs at PANDORA_ARCHIVE_AT in PANDORA_TIMEZONE.

    They take the day that became due, earlier days with due turns, days of missed or interrupted runs, and days archived from the
    command line.
    """

    partitions = due_days(settings)  # those of the loaded asset: days that a later import added are not among them yet

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=f"{settings.archive_at.minute} {settings.archive_at.hour} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Archives the day that became due, 31 days ago, and earlier days with due turns or with a missed or interrupted run.",
    )
    def nightly_turn_archival(context: dg.ScheduleEvaluationContext, archive: dg.ResourceParam[ArchiveResource]) -> Iterator[dg.RunRequest]:
        now = context.scheduled_execution_time
        days = _partition_days(partitions, now)
        if not days:
            return
        materialized = _materialized_days(context.instance, dg.AssetKey(ASSET))
        try:
            service = archive.open()
            due = service.due_days(now)
            archived = {day for day, _ in service.by_day()}
        except PandoraError as error:
            raise failure(SCHEDULE, error) from error
        if early_days := sorted(day for day in due if day < days[0]):
            context.log.warning(f"turns of {early_days[0]} wait for a day partition: reload the definitions, which now start on that day")
        unfinished = {*due, *_interrupted_days(context.instance), *_unmaterialized_days(archived, context.instance)}
        ranges = date_ranges({days[-1], *unfinished.intersection(days), *_missed_days(days, materialized)}, materialized)
        if len(ranges) > _MAX_RUNS_PER_TICK:
            ranges = [*ranges[: _MAX_RUNS_PER_TICK - 1], ranges[-1]]
        for first, last in ranges:
            yield _run_request(first, last, now)

    return nightly_turn_archival


def missed_archival_check(settings: Settings) -> dg.AssetChecksDefinition:
    """`no_run_missed`: every day from the first archived one to the newest due one was archived completely.

    It runs after the summary levels, since until then the run that contains it is unfinished.
    """

    @dg.asset_check(
        asset=ASSET,
        name=CHECK,
        additional_deps=[NARRATIVES, DIGESTS],
        description="Every day that became due in the last month, since the first archival run, was archived; no run was interrupted.",
    )
    def no_run_missed(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        missed = _alarm_days(settings, context.instance)
        return dg.AssetCheckResult(passed=not missed, description=_alarm_description(missed), metadata=_alarm_metadata(missed))

    return no_run_missed


def missed_archival_sensor(settings: Settings) -> dg.SensorDefinition:
    """`missed_archival_runs`: evaluates the same check without a run, so that a daemon that missed the schedule reports it."""

    @dg.sensor(
        name=ALARM,
        minimum_interval_seconds=_ALARM_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Fails the check {CHECK} of {ASSET} where an archival run was missed or interrupted, until the days are archived.",
    )
    def missed_archival_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        missed = _alarm_days(settings, context.instance)
        cursor = ",".join(day.isoformat() for day in missed)
        if cursor == (context.cursor or ""):
            return dg.SkipReason(_alarm_description(missed))
        evaluation = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(ASSET),
            check_name=CHECK,
            passed=not missed,
            description=_alarm_description(missed),
            metadata=_alarm_metadata(missed),
        )
        return dg.SensorResult(asset_events=[evaluation], cursor=cursor)

    return missed_archival_runs


def _partition_days(partitions: dg.DailyPartitionsDefinition, now: datetime) -> list[date]:
    """The days of the partitions that exist at `now`, oldest first."""
    return [date.fromisoformat(key) for key in partitions.get_partition_keys(current_time=now)]


def _expected_days(settings: Settings) -> list[date]:
    """The partitions whose archival run should be finished by now."""
    since_midnight = timedelta(hours=settings.archive_at.hour, minutes=settings.archive_at.minute)
    return _partition_days(due_days(settings), datetime.now(UTC) - since_midnight - _MAX_RUN_TIME)


def _materialized_days(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[date]:
    """The days that a run materialized."""
    return {date.fromisoformat(key) for key in instance.get_materialized_partitions(asset)}


def _unmaterialized_days(archived: Collection[date], instance: dg.DagsterInstance) -> set[date]:
    """The days with archived turns of which not every archival asset was materialized."""
    return {day for asset in _ARCHIVAL_ASSETS for day in set(archived) - _materialized_days(instance, asset)}


def _interrupted_days(instance: dg.DagsterInstance) -> dict[date, frozenset[str]]:
    """Day -> the newest run of each asset that started and has not materialized the day, where no later run did."""
    run_ids: dict[date, frozenset[str]] = {}
    for asset in _ARCHIVAL_ASSETS:
        attempts = instance.event_log_storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
        for key, (run_id, _) in attempts.items():
            day = date.fromisoformat(key)
            run_ids[day] = run_ids.get(day, frozenset()) | {run_id}
    return run_ids


def _running_ids(run_ids: Collection[str], instance: dg.DagsterInstance) -> set[str]:
    """The runs that are unfinished and started recently; a run whose process was killed stays unfinished for ever."""
    if not run_ids:
        return set()
    recent = dg.RunsFilter(run_ids=sorted(run_ids), created_after=datetime.now(UTC) - _MAX_RUN_TIME)
    return {run.run_id for run in instance.get_runs(recent) if not run.is_finished}


def _alarm_days(settings: Settings, instance: dg.DagsterInstance) -> list[date]:
    """The days for which the alarm is raised: missed days, and those of runs that were interrupted or take too long."""
    unmaterialized = _interrupted_days(instance)
    running = _running_ids({run_id for run_ids in unmaterialized.values() for run_id in run_ids}, instance)
    due = _partition_days(due_days(settings), datetime.now(UTC))
    interrupted = {day for day, run_ids in unmaterialized.items() if run_ids - running}.intersection(due)
    return sorted(interrupted.union(_missed_days(_expected_days(settings), _materialized_days(instance, dg.AssetKey(ASSET)))))


def _missed_days(days: Sequence[date], materialized: set[date]) -> list[date]:
    """The days without a run after the first day with one, among the newest days; all of these where only older days had a run.

    Older days are not missed: their turns are due, and the next run archives them.
    """
    newest = days[-_ALARM_DAYS:]
    first = next((day for day in newest if day in materialized), date.min)
    return [day for day in newest if materialized and first < day and day not in materialized]


def _alarm_description(missed: Sequence[date]) -> str:
    if not missed:
        return "no archival run was missed"
    span = f"{missed[0]}" if len(missed) == 1 else f"{len(missed)} days from {missed[0]} to {missed[-1]}"
    return f"{span}: not archived, or not completely: run the job {JOB} for this range, or wait for the next run"


def _alarm_metadata(missed: Sequence[date]) -> dict[str, str | int]:
    return {"missed": len(missed), **({"days": ", ".join(day.isoformat() for day in missed[:_ALARM_DAYS])} if missed else {})}


def _run_request(first: date, last: date, now: datetime) -> dg.RunRequest:
    """The archival run over the days from `first` to `last`."""
    run_key = f"{first}...{last}@{now:%Y-%m-%dT%H:%M}"
    if first == last:
        return dg.RunRequest(run_key=run_key, partition_key=first.isoformat())
    return dg.RunRequest(run_key=run_key, tags=dict(zip(_RANGE_TAGS, (first.isoformat(), last.isoformat()), strict=True)))
