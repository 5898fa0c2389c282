# pyright: reportUnknownMemberType=false
# (signatures of dg.schedule, dg.sensor and dg.define_asset_job name a bare PathLike)
"""The night: when archival runs, over which days, and the alarm where a night is missing. Knows ticks, ranges and run keys.

What a night left undone is read from Dagster's own records: a day that a run began and did not materialise. A day that was archived where
no record tells of it (by hand, or the records are gone) is one that the store has archived turns of and no materialisation.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from pandora_dagster.archive.eligibility import date_ranges
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES
from pandora_dagster.defs.partitions import due_days
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import Settings

JOB, SCHEDULE, ALARM, CHECK = "archival", "nightly_turn_archival", "missed_nights", "no_night_missed"
_RUNS = 5
"""Runs of one tick, each over a range of days: the oldest and the newest; what lies between waits for the next night."""
_GRACE = timedelta(hours=6)
"""A night may take this long after its tick, and a run after its start, before it counts as missed."""
_NIGHTLY_ASSETS = [dg.AssetKey(name) for name in (ASSET, NARRATIVES, DIGESTS)]
"""What a night materialises of a day, all of it."""
_LOOK_BACK = 31
"""Days of which each must have had its night."""
_CHECK_EVERY_S = 1800
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

ARCHIVAL_JOB = dg.define_asset_job(
    JOB,
    selection=dg.AssetSelection.assets(*_NIGHTLY_ASSETS),
    description="Archive the turns of a day, or of a range of days in one run; then what their sessions and people came to.",
)


def nightly_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`nightly_turn_archival`: at PANDORA_ARCHIVE_AT in PANDORA_TIMEZONE the day that became due, every earlier day that holds turns due,
    the days of nights that were missed or cut off, and days that were archived by hand."""

    partitions = due_days(settings)  # as the loaded asset has them: a day that an import added since is no partition of it yet

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=f"{settings.archive_at.minute} {settings.archive_at.hour} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Archives the day that became due, 31 days ago, and earlier days with turns due or whose night was missed or cut off.",
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
            raise dg.Failure(f"{SCHEDULE}: {error}", metadata={"hint": error.hint} if error.hint else {}) from error
        if early := sorted(day for day in due if day < keys[0]):
            context.log.warning(f"turns of {early[0]} wait for a day partition: reload the definitions, which begin there now")
        left = {*due, *_cut_off(context.instance), *_unmaterialised_days(archived, context.instance)}
        ranges = date_ranges({keys[-1], *left.intersection(keys), *_missed(keys, done)}, done)
        for first, last in ranges if len(ranges) <= _RUNS else (*ranges[: _RUNS - 1], ranges[-1]):
            yield _request(first, last, now)

    return nightly_turn_archival


def missed_nights_check(settings: Settings) -> dg.AssetChecksDefinition:
    """`no_night_missed`: no day between the first that was archived and the newest due one lacks its night, and none had half of it.

    It looks once the levels are made: before, its own night is half of one.
    """

    @dg.asset_check(
        asset=ASSET,
        name=CHECK,
        additional_deps=[NARRATIVES, DIGESTS],
        description="Every day that became due in the last month, since the first night, had its own; no night was cut off.",
    )
    def no_night_missed(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        missed = _missing_days(settings, context.instance)
        return dg.AssetCheckResult(passed=not missed, description=_description(missed), metadata=_metadata(missed))

    return no_night_missed


def missed_nights_sensor(settings: Settings) -> dg.SensorDefinition:
    """`missed_nights`: the same check where no run is there to do it: a daemon that was off that night raises the alarm itself."""

    @dg.sensor(
        name=ALARM,
        minimum_interval_seconds=_CHECK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Fails the check {CHECK} of {ASSET} where a night was missed or cut off, and passes it once that was made up.",
    )
    def missed_nights(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        missed = _missing_days(settings, context.instance)
        cursor = ",".join(day.isoformat() for day in missed)
        if cursor == (context.cursor or ""):
            return dg.SkipReason(_description(missed))
        told = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(ASSET), check_name=CHECK, passed=not missed, description=_description(missed), metadata=_metadata(missed)
        )
        return dg.SensorResult(asset_events=[told], cursor=cursor)

    return missed_nights


def _keys(partitions: dg.DailyPartitionsDefinition, now: datetime) -> list[date]:
    """The partitions that are due at `now`, oldest first."""
    return [date.fromisoformat(key) for key in partitions.get_partition_keys(current_time=now)]


def _expected(settings: Settings) -> list[date]:
    """The partitions whose night should be over by now."""
    since_midnight = timedelta(hours=settings.archive_at.hour, minutes=settings.archive_at.minute)
    return _keys(due_days(settings), datetime.now(UTC) - since_midnight - _GRACE)


def _materialised(instance: dg.DagsterInstance, asset: dg.AssetKey) -> set[date]:
    return {date.fromisoformat(key) for key in instance.get_materialized_partitions(asset)}


def _unmaterialised_days(archived: Collection[date], instance: dg.DagsterInstance) -> set[date]:
    """Of the days that have archived turns those that were never materialised whole."""
    return {day for asset in _NIGHTLY_ASSETS for day in set(archived) - _materialised(instance, asset)}


def _cut_off(instance: dg.DagsterInstance) -> dict[date, frozenset[str]]:
    """The days that a run was to materialise and did not, or not yet, and none did since; with the newest such run of each asset."""
    found: dict[date, frozenset[str]] = {}
    for asset in _NIGHTLY_ASSETS:
        begun = instance.event_log_storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
        for key, (run_id, _) in begun.items():
            day = date.fromisoformat(key)
            found[day] = found.get(day, frozenset()) | {run_id}
    return found


def _under_way(runs: Collection[str], instance: dg.DagsterInstance) -> set[str]:
    """Those of these runs that began lately and go on; a run whose process was killed says that it goes on for ever."""
    if not runs:
        return set()
    lately = dg.RunsFilter(run_ids=sorted(runs), created_after=datetime.now(UTC) - _GRACE)
    return {run.run_id for run in instance.get_runs(lately) if not run.is_finished}


def _missing_days(settings: Settings, instance: dg.DagsterInstance) -> list[date]:
    """The days for which the alarm is raised: missed ones, and those of runs that ended halfway or take longer than a night may."""
    left = _cut_off(instance)
    under_way = _under_way({run_id for found in left.values() for run_id in found}, instance)
    keys = _keys(due_days(settings), datetime.now(UTC))
    cut_off = {day for day, found in left.items() if found - under_way}.intersection(keys)
    return sorted(cut_off.union(_missed(_expected(settings), _materialised(instance, dg.AssetKey(ASSET)))))


def _missed(keys: Sequence[date], done: set[date]) -> list[date]:
    """Of the newest days those without a night of their own, from the first of them that had one; all of them where only older days had.

    Older days are not missed but wait: what they hold is due, and the next night takes it.
    """
    newest = keys[-_LOOK_BACK:]
    had = [day for day in newest if day in done]
    first = had[0] if had else date.min
    return [day for day in newest if done and first < day and day not in done]


def _description(missed: Sequence[date]) -> str:
    if not missed:
        return "no night was missed"
    span = f"{missed[0]}" if len(missed) == 1 else f"{len(missed)} days from {missed[0]} to {missed[-1]}"
    return f"{span}: not archived, or not to the end: run the job {JOB} for this range, or wait for the next night"


def _metadata(missed: Sequence[date]) -> dict[str, str | int]:
    return {"missed": len(missed), **({"days": ", ".join(day.isoformat() for day in missed[:31])} if missed else {})}


def _request(first: date, last: date, now: datetime) -> dg.RunRequest:
    key = f"{first}...{last}@{now:%Y-%m-%dT%H:%M}"
    if first == last:
        return dg.RunRequest(run_key=key, partition_key=first.isoformat())
    return dg.RunRequest(run_key=key, tags=dict(zip(_RANGE, (first.isoformat(), last.isoformat()), strict=True)))
