"""Dagster's entry point: the whole graph in one value. `workspace.yaml` and `[tool.dg.project]` name it."""

import os

import dagster as dg

from pandora_dagster.defs.archive_resource import Archive
from pandora_dagster.defs.assets_archive import archive_asset
from pandora_dagster.defs.assets_batch import batch_asset
from pandora_dagster.defs.assets_levels import level_assets
from pandora_dagster.defs.assets_prompts import Scores, prompt_assets
from pandora_dagster.defs.assets_retention import COLD_JOB, RUNS_JOB, Retention, cold_asset, runs_asset, runs_schedule
from pandora_dagster.defs.assets_turn import turn_assets
from pandora_dagster.defs.history import relax_history
from pandora_dagster.defs.jobs import BATCH_JOB, new_turn_job
from pandora_dagster.defs.resources import Night, Pandora
from pandora_dagster.defs.run import TURN_JOB
from pandora_dagster.defs.schedule_prompts import SCORES_JOB, scores_schedule
from pandora_dagster.defs.schedules import ARCHIVAL_JOB, missed_nights_check, missed_nights_sensor, nightly_schedule
from pandora_dagster.defs.sensor_interventions import Halts, interventions_asset, interventions_sensor
from pandora_dagster.defs.sensors import inbox_sensor
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring.building import open_cookbook, open_versions

relax_history()
_SETTINGS = load_settings(os.environ)
_TURN_ASSETS = turn_assets(open_cookbook(_SETTINGS, open_versions(_SETTINGS)))

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
        "pandora": Pandora(root="", runtime=""),
        "night": Night(root="", runtime=""),
        "archive": Archive(root="", runtime=""),
        "retention": Retention(root="", runtime=""),
        "scores": Scores(root=""),
        "halts": Halts(root=""),
    },
    executor=dg.in_process_executor,
)
