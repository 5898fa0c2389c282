# pyright: reportUnknownMemberType=false
"""Runs of a turn through Dagster's graph in this process, and reports of turns that ran without Dagster."""

import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from pandora_dagster.app import App
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.defs.instance import add_turn_partitions, open_instance, remove_turn_partitions
from pandora_dagster.defs.turn.phase_assets import run_tags, turn_assets
from pandora_dagster.defs.turn.phase_checks import check_names, check_results, phase_recipes
from pandora_dagster.defs.turn.phase_metadata import data_version, phase_metadata
from pandora_dagster.defs.turn.phase_runner import OpenTurn, PhaseRunner, ReportCallback, ignore_report, open_app_turn
from pandora_dagster.errors import InputError, PandoraError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import phase_table
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder

# Reports of turns that ran outside Dagster's runs (chat, an API); no phase runs again.


def report_phases(instance: dg.DagsterInstance, reports: Iterable[PhaseReport], *, recipes: RecipeCatalog, folder: str) -> None:
    """Report the finished phases of one turn as events without a run: materializations with their checks."""
    for report in reports:
        if report.skipped:
            continue
        add_turn_partitions(instance, [report.key])
        spec = phase_table.phase_spec(report.phase)
        checks = check_names(spec, phase_recipes(spec, recipes))
        instance.report_runless_asset_event(_materialization(report, folder))
        for result in check_results(report, checks):
            instance.report_runless_asset_event(_check_evaluation(report.phase, result))


def _materialization(report: PhaseReport, folder: str) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        report.phase,
        partition=str(report.key),
        metadata=phase_metadata(report, folder),
        tags={"dagster/data_version": data_version(report).value},
    )


def _check_evaluation(phase: str, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(phase),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


_QUIET_RUN_CONFIG = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_RUN_LOCK = Lock()
"""Two runs at once in one process hang (4 of 4 times, Dagster 1.13.27); two processes do not."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run of a turn ended. `success`: no phase failed; a turn that asks for clarification (CLARIFY) succeeds."""

    key: TurnKey
    run_id: str
    success: bool
    reports: tuple[PhaseReport, ...]
    """One per phase that ran, in order."""
    error: Exception | None = None
    """What stopped the run, where it was not a HALT."""

    @property
    def turn(self) -> Turn | None:
        """The turn as the last phase left it."""
        return self.reports[-1].turn if self.reports else None

    @property
    def halt(self) -> Intervention | None:
        """The first intervention of the run; the phases after the answer are independent, so each of them may HALT."""
        return next((report.halt for report in self.reports if report.halt), None)


def run_turn(
    app: App,
    key: TurnKey,
    *,
    select: Collection[str] = (),
    on_report: ReportCallback = ignore_report,
    instance: dg.DagsterInstance | None = None,
) -> RunOutcome:
    """Run the unfinished phases of a turn through the graph, on the instance of DAGSTER_HOME.

    `select`: run these phases and those that depend on them again. Raises InputError where no phase is unfinished, StoreError where
    another process works on the turn.

    `on_report` receives each report at once (decision 16: docs/decisions/16-the-answer-comes-first.md). A HALT is in the outcome;
    any other error is raised. A process that runs many turns passes the instance that it keeps open: opening one takes 0.1 s.
    """
    with (
        nullcontext(instance) if instance else open_instance(app.settings, captures_output=False) as open_dagster,
        open_app_turn(app, key) as turn,
    ):
        phases = downstream_phases(select) if select else app.pending_phases(key)
        if not phases:
            raise InputError(f"{key}: nothing is left to do; the turn is {app.turns.manifest(key).state}")
        turn.on_report = on_report
        outcome = execute_turn(turn_assets(app.dependencies.recipes), turn, open_dagster, select=phases)
    if outcome.error:
        raise outcome.error
    return outcome


def add_partitions(app: App, keys: Iterable[TurnKey]) -> None:
    """Add the partitions of imported turns, all at once (decision 30: docs/decisions/30-imported-turns.md).

    An archived turn has no partition until it is restored.
    """
    archived = {turn.key for turn in app.turn_index.activities(archived=True)}
    with open_instance(app.settings) as instance:
        add_turn_partitions(instance, (key for key in keys if key not in archived))


def remove_archived_partitions(app: App) -> None:
    """Delete the partitions of archived turns, including those that an interrupted archival run left."""
    with open_instance(app.settings) as instance:
        remove_turn_partitions(instance, (turn.key for turn in app.turn_index.activities(archived=True)))


def report_turn(app: App, key: TurnKey, reports: Sequence[PhaseReport]) -> None:
    """Report a turn that ran outside Dagster (chat, an API) to it, after the answer.

    A turn that HALTed becomes a run of its own, which fails where the turn did: its page shows the failed check and the intervention.
    """
    folder = app.dependencies.turns.path(key)
    with open_instance(app.settings) as instance:
        record_turn(instance, key, reports, recipes=app.dependencies.recipes, session=app.turns.manifest(key).session_id, folder=folder)


def record_turn(
    instance: dg.DagsterInstance, key: TurnKey, reports: Sequence[PhaseReport], *, recipes: RecipeCatalog, session: str, folder: str
) -> None:
    """`report_turn` on an open instance."""
    if any(report.halt for report in reports):
        by_phase = {report.phase: report for report in reports if not report.skipped}
        finished_turn = OpenTurn(key, session, phase=lambda name: by_phase[name], folder=lambda revision: folder)
        execute_turn(turn_assets(recipes), finished_turn, instance, select=tuple(by_phase))
    else:
        report_phases(instance, reports, recipes=recipes, folder=folder)


def ui_commands(settings: Settings, *, host: str, port: int) -> tuple[tuple[list[str], ...], dict[str, str]]:
    """The commands of the programs behind `pandora ui`, and the environment variables that they need beside this process's own.

    The programs are Dagster's web server, its daemon, which evaluates sensors and schedules, and the server of the archive's pages, to
    which the web page links. They open the `workspace.yaml` of the working directory, or where there is none the shipped one.
    """
    with open_instance(settings) as instance:
        home = instance.root_directory
    local_workspace = Path("workspace.yaml")
    workspace = str(local_workspace if local_workspace.is_file() else shipped_folder() / "workspace.yaml")
    web_server = [sys.executable, "-m", "dagster_webserver", "-w", workspace, "-h", host, "-p", str(port)]
    daemon = [sys.executable, "-m", "dagster._daemon", "run", "-w", workspace]
    archive_pages = [[sys.executable, "-c", "from pandora_dagster.cli.program import run; run()", "pages"]] if settings.pages_port else []
    environment = {"DAGSTER_HOME": home, "PANDORA_ROOT": str(settings.root.absolute()), "PANDORA_RUNTIME": settings.runtime}
    return (web_server, daemon, *archive_pages), environment


def turn_job(assets: Sequence[dg.AssetsDefinition]) -> UnresolvedAssetJobDefinition:
    """The job `turn` over the assets of a turn."""
    return dg.define_asset_job(
        "turn",
        selection=[key for asset in assets for key in asset.keys],
        description="All phases of an existing turn. A saved turn is never overwritten: its re-run is a numbered revision beside it.",
    )


def resolved_turn_job(assets: Sequence[dg.AssetsDefinition], pandora: PhaseRunner) -> dg.JobDefinition:
    """The job `turn` over these assets and this resource (built in about 10 ms, so again for each run)."""
    job = turn_job(assets)
    return dg.Definitions(assets=assets, jobs=[job], resources={"pandora": pandora}).resolve_job_def(job.name)


def execute_turn(
    assets: Sequence[dg.AssetsDefinition], turn: OpenTurn, instance: dg.DagsterInstance, *, select: Collection[str] = ()
) -> RunOutcome:
    """Run the job `turn` once for one turn: exactly the phases `select`, or all. An error of a phase is in the outcome, not raised."""
    key = turn.key
    add_turn_partitions(instance, [key])
    with _RUN_LOCK:
        result = resolved_turn_job(assets, turn).execute_in_process(
            run_config=_QUIET_RUN_CONFIG,
            instance=instance,
            partition_key=str(key),
            asset_selection=[dg.AssetKey(name) for name in select] if select else None,
            tags=run_tags(key, turn.session),
            raise_on_error=False,
        )
    return RunOutcome(key, result.run_id, result.success, tuple(turn.reports), turn.error or _run_error(result, key))


def _run_error(result: dg.ExecuteInProcessResult, key: TurnKey) -> PandoraError | None:
    """The error of a step that failed outside its phase; a HALT is in the report of its phase."""
    for event in result.all_events:
        failure = event.step_failure_data if event.is_step_failure else None
        if failure and failure.error and failure.error.cls_name == "DagsterExecutionInterruptedError":
            return PandoraError(f"{key}: interrupted in {event.step_key}: the finished phases stay", hint=f"pandora resume {key}")
        if failure and failure.error and not failure.user_failure_data:
            return PandoraError(
                f"{event.step_key}: {failure.error.message.strip()} {failure.error.cause.message if failure.error.cause else ''}".strip()
            )
    return None


def downstream_phases(select: Collection[str]) -> tuple[str, ...]:
    """The selected phases and all that depend on them, in the order of the flow; raises ValueError for an unknown one."""
    if unknown := set(select) - {spec.name for spec in phase_table.PHASES}:
        raise ValueError(f"select: {sorted(unknown)}: expected phases of the flow")
    selected: list[str] = []
    for spec in phase_table.PHASES:
        if spec.name in select or any(needed in selected for needed in spec.needs):
            selected.append(spec.name)
    return tuple(selected)
