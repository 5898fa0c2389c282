"""Dagster's entry point: `defs` holds the whole asset graph. `workspace.yaml` and `[tool.dg.project]` name this module."""

import dagster as dg

from pandora_dagster.app.composition import open_recipe_loader, open_versions
from pandora_dagster.defs.archival.archival_schedule import ARCHIVAL_JOB, archival_schedule, missed_archival_check, missed_archival_sensor
from pandora_dagster.defs.archival.archive_assets import archive_asset
from pandora_dagster.defs.archival.level_assets import level_assets
from pandora_dagster.defs.archival.retention_assets import COLD_JOB, RUNS_JOB, cold_asset, runs_asset, runs_schedule
from pandora_dagster.defs.batch import BATCH_JOB, batch_asset, inbox_sensor
from pandora_dagster.defs.imported_turns import imported_turns_asset
from pandora_dagster.defs.instance import disable_sqlite_sync
from pandora_dagster.defs.intervention_events import interventions_asset, interventions_sensor
from pandora_dagster.defs.prompt_scores import SCORES_JOB, prompt_assets, scores_schedule
from pandora_dagster.defs.resources import ArchiveResource, BatchResource, InterventionResource, ResearchResource, ScoreResource
from pandora_dagster.defs.topic_assets import REFRESH_JOB, refresh_schedule, topics_asset
from pandora_dagster.defs.turn.phase_assets import turn_assets
from pandora_dagster.defs.turn.phase_runner import TurnResource
from pandora_dagster.defs.turn.recorded_run import turn_job
from pandora_dagster.defs.turn.turn_jobs import new_turn_job
from pandora_dagster.settings import load_settings, process_environment

disable_sqlite_sync()
_SETTINGS = load_settings(process_environment())
_RECIPES = open_recipe_loader(_SETTINGS, open_versions(_SETTINGS))
_TURN_ASSETS = turn_assets(_RECIPES)

defs = dg.Definitions(
    assets=[
        *_TURN_ASSETS,
        batch_asset(_SETTINGS),
        archive_asset(),
        *level_assets(),
        cold_asset(),
        runs_asset(_SETTINGS),
        *prompt_assets(_SETTINGS),
        interventions_asset(),
        imported_turns_asset(),
        topics_asset(),
    ],
    asset_checks=[missed_archival_check(_SETTINGS)],
    jobs=[turn_job(_TURN_ASSETS), new_turn_job(_RECIPES), BATCH_JOB, ARCHIVAL_JOB, COLD_JOB, RUNS_JOB, SCORES_JOB, REFRESH_JOB],
    schedules=[archival_schedule(_SETTINGS), runs_schedule(_SETTINGS), scores_schedule(_SETTINGS), refresh_schedule(_SETTINGS)],
    sensors=[inbox_sensor(), missed_archival_sensor(_SETTINGS), interventions_sensor()],
    resources={
        "pandora": TurnResource(root="", runtime=""),
        "batches": BatchResource(root="", runtime=""),
        "archive": ArchiveResource(root="", runtime=""),
        "retention": ArchiveResource(root="", runtime=""),
        "research": ResearchResource(root="", runtime=""),
        "scores": ScoreResource(root=""),
        "interventions": InterventionResource(root=""),
    },
    executor=dg.in_process_executor,
)
