"""What the levels above a turn are made with, out of an open house. Builds their store; knows no order of steps."""

from pandora_dagster.phases.levels import LevelDesk, LevelRules
from pandora_dagster.stores.levels import LevelFiles
from pandora_dagster.wiring.house import House


def open_levels(house: House, *, quiet_days: int | None = None, run_id: str = "") -> LevelDesk:
    """The desk of the levels; `quiet_days` in the place of archival's setting, `run_id` of the Dagster run they belong to."""
    settings = house.settings
    days = settings.archive_after_days if quiet_days is None else quiet_days
    rules = LevelRules(zone=settings.zone, quiet_days=days, concurrency=settings.archive_concurrency)
    return LevelDesk(house.kit, LevelFiles(settings.root), rules, house.kit.lineage, run_id)
