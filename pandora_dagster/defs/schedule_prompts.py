# pyright: reportUnknownMemberType=false
# (signatures of dg.schedule and dg.define_asset_job name a bare PathLike)
"""The scorecards of a day, once it is over. Knows ticks and day keys."""

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg

from pandora_dagster.defs.assets_prompts import FAILURES, LAYERS, SCORES
from pandora_dagster.defs.partitions import days
from pandora_dagster.settings import Settings

JOB, SCHEDULE = "prompt_scores", "daily_prompt_scores"
_MINUTE, _HOUR = 30, 5
"""After the night that archives: both read the same store."""

SCORES_JOB = dg.define_asset_job(
    JOB,
    selection=[SCORES, LAYERS, FAILURES],
    description="What the calls of a day say of prompts and layers, what went wrong, and whether a version got worse.",
)


def scores_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`daily_prompt_scores`: at 05:30 in PANDORA_TIMEZONE the day before."""
    partitions = days(settings)

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=f"{_MINUTE} {_HOUR} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Scores the prompts by the calls of the day before.",
    )
    def daily_prompt_scores(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        day = (now.astimezone(settings.zone) - timedelta(days=1)).date().isoformat()
        if day in partitions.get_partition_keys(current_time=now):
            yield dg.RunRequest(run_key=day, partition_key=day)
        else:
            yield dg.SkipReason(f"{day}: before the first day of the store")

    return daily_prompt_scores
