"""Partitions of turns and days."""

import dagster as dg

from pandora_dagster.settings import Settings
from pandora_dagster.stores.disk.turn_directory import FirstDay

TURNS = dg.DynamicPartitionsDefinition(name="turns")
"""One key per live turn, `<user>:turn_000811` (DECISIONS 15). Imported turns have keys too, but no materializations."""


def days(settings: Settings) -> dg.DailyPartitionsDefinition:
    """One key per day in the configured time zone, from the first day up to and including today."""
    return _daily(settings, end_offset=1)


def due_days(settings: Settings) -> dg.DailyPartitionsDefinition:
    """One key per day whose turns are due for archival: on day D the last key is D - 31 (with the default of 30 days)."""
    return _daily(settings, end_offset=-settings.archive_after_days)


def _daily(settings: Settings, *, end_offset: int) -> dg.DailyPartitionsDefinition:
    """Days from PANDORA_FIRST_DAY on, or from the first day with turns in the store, if that is earlier (DECISIONS 30)."""
    first = min(settings.first_day, FirstDay(settings.root).read() or settings.first_day)
    return dg.DailyPartitionsDefinition(start_date=first.isoformat(), timezone=settings.timezone, end_offset=end_offset)
