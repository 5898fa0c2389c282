"""Dagster's entry point: the whole graph in one value. `workspace.yaml` and `[tool.dg.project]` name it."""

import os

import dagster as dg

from pandora_dagster.defs.archive_resource import ArchiveResource
from pandora_dagster.defs.assets_archive import archive_asset
from pandora_dagster.defs.assets_batch import batch_asset
from pandora_dagster.defs.assets_levels import level_assets
from pandora_dagster.defs.assets_prompts import ScoreResource, prompt_assets
from pandora_dagster.defs.assets_retention import COLD_JOB, RUNS_JOB, RetentionResource, cold_asset, runs_asset, runs_schedule
from pandora_dagster.defs.assets_turn import turn_assets
from pandora_dagster.defs.history import disable_sqlite_sync
from pandora_dagster.defs.jobs import BATCH_JOB, new_turn_job
from pandora_dagster.defs.resources import BatchResource, TurnResource
from pandora_dagster.defs.run import TURN_JOB
from pandora_dagster.defs.schedule_prompts import SCORES_JOB, scores_schedule
from pandora_dagster.defs.schedules import ARCHIVAL_JOB, missed_nights_check, missed_nights_sensor, nightly_schedule
from pandora_dagster.defs.sensor_interventions import InterventionResource, interventions_asset, interventions_sensor
from pandora_dagster.defs.sensors import inbox_sensor
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring.building import open_recipe_loader, open_versions

disable_sqlite_sync()
_SETTINGS = load_settings(os.environ)
_TURN_ASSETS = turn_assets(open_recipe_loader(_SETTINGS, open_versions(_SETTINGS)))

defs = dg.Definitions(
    assets=[
        *_TURN_ASSETS,
        batch_asset(_SETTINGS),
        archive_asset(_SETTINGS),
        *level_assets(_SETTINGS),
        cold_asset(),
        runs_asset(_SETTINGS),
        *prompt_assets(_SETTINGS),
        interventions_asset(),
    ],
    asset_checks=[missed_nights_check(_SETTINGS)],
    jobs=[TURN_JOB, new_turn_job(_TURN_ASSETS), BATCH_JOB, ARCHIVAL_JOB, COLD_JOB, RUNS_JOB, SCORES_JOB],
    schedules=[nightly_schedule(_SETTINGS), runs_schedule(_SETTINGS), scores_schedule(_SETTINGS)],
    sensors=[inbox_sensor(), missed_nights_sensor(_SETTINGS), interventions_sensor()],
    resources={
        "pandora": TurnResource(root="", runtime=""),
        "night": BatchResource(root="", runtime=""),
        "archive": ArchiveResource(root="", runtime=""),
        "retention": RetentionResource(root="", runtime=""),
        "scores": ScoreResource(root=""),
        "halts": InterventionResource(root=""),
    },
    executor=dg.in_process_executor,
)
