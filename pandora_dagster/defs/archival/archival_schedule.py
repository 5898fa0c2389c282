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
_RUNS = 5
"""Runs of one tick, each over a range of days: the oldest ranges and the newest; the others wait for the next tick."""
_GRACE = timedelta(hours=6)
"""How long after the tick an archival run, and after its start any run, may take before it counts as missed."""
_ARCHIVAL_ASSETS = [dg.AssetKey(name) for name in (ASSET, NARRATIVES, DIGESTS)]
"""The assets that an archival run materializes of a day."""
_LOOK_BACK = 31
"""Number of newest days that the alarm covers."""
_CHECK_EVERY_S = 1800
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

ARCHIVAL_JOB = dg.define_asset_job(
    JOB,
    selection=dg.AssetSelection.assets(*_ARCHIVAL_ASSETS),
    description="Archives the turns of a day, or of a range of days in one run; then summarizes their sessions and users.",
)


def archival_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`nightly_turn_archival`: at PANDORA_ARCHIVE_AT in PANDORA_TIMEZONE, over the day that became due, earlier days with due turns, days
    of missed or interrupted runs, and days archived from the command line."""

    partitions = due_days(settings)  # as in the loaded asset: a day that a later import added is not a partition of it yet

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
        keys = _keys(partitions, now)
        if not keys:
            return
        done = _materialised(context.instance, dg.AssetKey(ASSET))
        try:
            service = archive.open()
            due = service.waiting(now)
            archived = {day for day, _ in service.by_day()}
        except PandoraError as error:
            raise failure(SCHEDULE, error) from error
        if early := sorted(day for day in due if day < keys[0]):
            context.log.warning(f"turns of {early[0]} wait for a day partition: reload the definitions, which now start on that day")
        left = {*due, *_interrupted(context.instance), *_unmaterialised_days(archived, context.instance)}
        ranges = date_ranges({keys[-1], *left.intersection(keys), *_missed(keys, done)}, done)
        for first, last in ranges if len(ranges) <= _RUNS else (*ranges[: _RUNS - 1], ranges[-1]):
            yield _request(first, last, now)

    return nightly_turn_archival


def missed_archival_check(settings: Settings) -> dg.AssetChecksDefinition:
    """`no_run_missed`: every day from the first archived one to the newest due one was archived, and none only in part.

    It runs after the summary levels: before, its own run is unfinished.
    """

    @dg.asset_check(
        asset=ASSET,
        name=CHECK,
        additional_deps=[NARRATIVES, DIGESTS],
        description="Every day that became due in the last month, since the first archival run, was archived; no run was interrupted.",
    )
    def no_run_missed(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        missed = _missing_days(settings, context.instance)
        return dg.AssetCheckResult(passed=not missed, description=_description(missed), metadata=_metadata(missed))

    return no_run_missed


def missed_archival_sensor(settings: Settings) -> dg.SensorDefinition:
    """`missed_archival_runs`: the same check without a run: a daemon that was off at the time raises the alarm itself."""

    @dg.sensor(
        name=ALARM,
        minimum_interval_seconds=_CHECK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Fails the check {CHECK} of {ASSET} where an archival run was missed or interrupted, until the days are archived.",
    )
    def missed_archival_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        missed = _missing_days(settings, context.instance)
        cursor = ",".join(day.isoformat() for day in missed)
        if cursor == (context.cursor or ""):
            return dg.SkipReason(_description(missed))
        evaluation = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(ASSET), check_name=CHECK, passed=not missed, description=_description(missed), metadata=_metadata(missed)
        )
        return dg.SensorResult(asset_events=[evaluation], cursor=cursor)

    return missed_archival_runs


def _keys(partitions: dg.DailyPartitionsDefinition, now: datetime) -> list[date]:
    """The partitions that are due at `now`, oldest first."""
    return [date.fromisoformat(key) for key in partitions.get_partition_keys(current_time=now)]


def _expected(settings: Settings) -> list[date]:
    """The partitions whose archival run should be finished by now."""
    since_midnight = timedelta(hours=settings.archive_at.hour, minutes=settings.archive_at.minute)
    return _keys(due_days(settings), datetime.now(UTC) - since_midnight - _GRACE)


def _materialised(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[date]:
    return {date.fromisoformat(key) for key in instance.get_materialized_partitions(asset)}


def _unmaterialised_days(archived: Collection[date], instance: dg.DagsterInstance) -> set[date]:
    """The days with archived turns that were never materialized completely."""
    return {day for asset in _ARCHIVAL_ASSETS for day in set(archived) - _materialised(instance, asset)}


def _interrupted(instance: dg.DagsterInstance) -> dict[date, frozenset[str]]:
    """The days that a run did not materialize, or not yet, and no later run did; with the newest such run of each asset."""
    found: dict[date, frozenset[str]] = {}
    for asset in _ARCHIVAL_ASSETS:
        begun = instance.event_log_storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
        for key, (run_id, _) in begun.items():
            day = date.fromisoformat(key)
            found[day] = found.get(day, frozenset()) | {run_id}
    return found


def _running(runs: Collection[str], instance: dg.DagsterInstance) -> set[str]:
    """Those of these runs that started recently and are unfinished; a run whose process was killed stays unfinished for ever."""
    if not runs:
        return set()
    recent = dg.RunsFilter(run_ids=sorted(runs), created_after=datetime.now(UTC) - _GRACE)
    return {run.run_id for run in instance.get_runs(recent) if not run.is_finished}


def _missing_days(settings: Settings, instance: dg.DagsterInstance) -> list[date]:
    """The days for which the alarm is raised: missed days, and those of runs that were interrupted or take too long."""
    left = _interrupted(instance)
    running = _running({run_id for found in left.values() for run_id in found}, instance)
    keys = _keys(due_days(settings), datetime.now(UTC))
    interrupted = {day for day, found in left.items() if found - running}.intersection(keys)
    return sorted(interrupted.union(_missed(_expected(settings), _materialised(instance, dg.AssetKey(ASSET)))))


def _missed(keys: Sequence[date], done: set[date]) -> list[date]:
    """Of the newest days, those without a run, from the first of them that had one; all of them where only older days had one.

    Older days are not missed: their turns are due, and the next run archives them.
    """
    newest = keys[-_LOOK_BACK:]
    had = [day for day in newest if day in done]
    first = had[0] if had else date.min
    return [day for day in newest if done and first < day and day not in done]


def _description(missed: Sequence[date]) -> str:
    if not missed:
        return "no archival run was missed"
    span = f"{missed[0]}" if len(missed) == 1 else f"{len(missed)} days from {missed[0]} to {missed[-1]}"
    return f"{span}: not archived, or not completely: run the job {JOB} for this range, or wait for the next run"


def _metadata(missed: Sequence[date]) -> dict[str, str | int]:
    return {"missed": len(missed), **({"days": ", ".join(day.isoformat() for day in missed[:31])} if missed else {})}


def _request(first: date, last: date, now: datetime) -> dg.RunRequest:
    key = f"{first}...{last}@{now:%Y-%m-%dT%H:%M}"
    if first == last:
        return dg.RunRequest(run_key=key, partition_key=first.isoformat())
    return dg.RunRequest(run_key=key, tags=dict(zip(_RANGE, (first.isoformat(), last.isoformat()), strict=True)))
