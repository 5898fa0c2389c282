"""Partitions. Knows how a turn and a day are named in Dagster; knows nothing of what they are."""

import dagster as dg

from pandora_dagster.settings import Settings

TURNS = dg.DynamicPartitionsDefinition(name="turns")
"""One key per live turn, `<user>:turn_000811` (DECISIONS 15). Imported turns have keys too, but no materialisations."""


def days(settings: Settings) -> dg.DailyPartitionsDefinition:
    """One key per day in the configured time zone, from PANDORA_FIRST_DAY up to today, which is one too."""
    return dg.DailyPartitionsDefinition(start_date=settings.first_day.isoformat(), timezone=settings.timezone, end_offset=1)
