"""What the levels above a turn are made with, out of an open house. Builds their store; knows no order of steps."""

from pandora_dagster.phases.levels import LevelContext, LevelRules
from pandora_dagster.stores.levels import LevelFiles
from pandora_dagster.wiring.app import App


def open_levels(app: App, *, quiet_days: int | None = None, run_id: str = "") -> LevelContext:
    """The desk of the levels; `quiet_days` in the place of archival's setting, `run_id` of the Dagster run they belong to."""
    settings = app.settings
    days = settings.archive_after_days if quiet_days is None else quiet_days
    rules = LevelRules(zone=settings.zone, quiet_days=days, concurrency=settings.archive_concurrency)
    return LevelContext(app.dependencies, LevelFiles(settings.root), rules, app.dependencies.lineage, run_id)
