# pyright: reportUnknownMemberType=false
"""A turn through the graph, in this process. Knows how a run starts and ends; what a phase does is not here."""

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
from pandora_dagster.defs.instance import add_keys, open_instance, remove_keys
from pandora_dagster.defs.turn.phase_assets import run_tags, turn_assets
from pandora_dagster.defs.turn.phase_checks import check_results, checks_of, phase_recipes
from pandora_dagster.defs.turn.phase_metadata import data_version, phase_metadata
from pandora_dagster.defs.turn.phase_runner import OpenTurn, PhaseRunner, ReportCallback, ignore_report, open_app_turn
from pandora_dagster.errors import InputError, PandoraError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import phase_table
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder

# Turns that ran outside Dagster's runs (chat, an API), reported to Dagster afterwards. Runs nothing itself.


def report_phases(instance: dg.DagsterInstance, reports: Iterable[PhaseReport], *, recipes: RecipeCatalog, folder: str) -> None:
    """Runless events for the finished phases of one turn: materialisations with their checks."""
    for report in reports:
        if report.skipped:
            continue
        add_keys(instance, [report.key])
        spec = phase_table.phase_spec(report.phase)
        checks = checks_of(spec, phase_recipes(spec, recipes))
        instance.report_runless_asset_event(_materialisation(report, folder))
        for result in check_results(report, checks):
            instance.report_runless_asset_event(_evaluation(report.phase, result))


def _materialisation(report: PhaseReport, folder: str) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        report.phase,
        partition=str(report.key),
        metadata=phase_metadata(report, folder),
        tags={"dagster/data_version": data_version(report).value},
    )


def _evaluation(phase: str, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(phase),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_ONE_RUN = Lock()
"""Two runs at once in one process hang (4 of 4 times, Dagster 1.13.27); two processes do not."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run of a turn ended. Success means that no phase failed: a turn that asks back (CLARIFY) is one."""

    key: TurnKey
    run_id: str
    success: bool
    reports: tuple[PhaseReport, ...]
    """One per phase that ran, in order."""
    error: Exception | None = None
    """What stopped the run where it was no HALT."""

    @property
    def turn(self) -> Turn | None:
        """The turn as the last phase left it."""
        return self.reports[-1].turn if self.reports else None

    @property
    def halt(self) -> Intervention | None:
        """The first one: what follows a saved turn goes on beside it."""
        return next((report.halt for report in self.reports if report.halt), None)


def run_turn(
    app: App,
    key: TurnKey,
    *,
    select: Collection[str] = (),
    on_report: ReportCallback = ignore_report,
    instance: dg.DagsterInstance | None = None,
) -> RunOutcome:
    """Run what is left of a turn through the graph, on the instance of DAGSTER_HOME; with `select` these phases and what follows, again.

    Raises InputError where nothing is left, StoreError where another process works on the turn: nothing is done twice.

    `on_report` receives each report at once (DECISIONS 16). A HALT is in the outcome; any other error is raised. A process that
    runs many turns passes the instance that it keeps open: opening one takes 0.1 s.
    """
    with nullcontext(instance) if instance else open_instance(app.settings, listens=False) as opened, open_app_turn(app, key) as turn:
        phases = downstream_phases(select) if select else app.pending_phases(key)
        if not phases:
            raise InputError(f"{key}: nothing is left to do; the turn is {app.turns.manifest(key).state}")
        turn.on_report = on_report
        outcome = execute_turn(turn_assets(app.dependencies.recipes), turn, opened, select=phases)
    if outcome.error:
        raise outcome.error
    return outcome


def add_partitions(app: App, keys: Iterable[TurnKey]) -> None:
    """Make turns known to Dagster, all at once (imported ones: DECISIONS 30). Archived ones have no key until they are restored."""
    archived = {turn.key for turn in app.turn_index.activities(archived=True)}
    with open_instance(app.settings) as instance:
        add_keys(instance, (key for key in keys if key not in archived))


def remove_archived_partitions(app: App) -> None:
    """Take archived turns out of the partitions that the UI lists, those of a run that was cut off too."""
    with open_instance(app.settings) as instance:
        remove_keys(instance, (turn.key for turn in app.turn_index.activities(archived=True)))


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
    """`report_turn` on an open instance; no phase runs again."""
    if any(report.halt for report in reports):
        by_phase = {report.phase: report for report in reports if not report.skipped}
        finished = OpenTurn(key, session, phase=lambda name: by_phase[name], folder=lambda revision: folder)
        execute_turn(turn_assets(recipes), finished, instance, select=tuple(by_phase))
    else:
        report_phases(instance, reports, recipes=recipes, folder=folder)


def ui_commands(settings: Settings, *, host: str, port: int) -> tuple[tuple[list[str], ...], dict[str, str]]:
    """The commands of Dagster's web page, of its daemon, which ticks sensors and schedules, and of the archive's pages, to which the web
    page leads; and what their environment needs beside this process's own.

    They open the `workspace.yaml` of the working directory, or where there is none the shipped one.
    """
    with open_instance(settings) as instance:
        home = instance.root_directory
    own = Path("workspace.yaml")
    workspace = str(own if own.is_file() else shipped_folder() / "workspace.yaml")
    page = [sys.executable, "-m", "dagster_webserver", "-w", workspace, "-h", host, "-p", str(port)]
    daemon = [sys.executable, "-m", "dagster._daemon", "run", "-w", workspace]
    archive = [[sys.executable, "-c", "from pandora_dagster.cli.program import run; run()", "pages"]] if settings.pages_port else []
    environment = {"DAGSTER_HOME": home, "PANDORA_ROOT": str(settings.root.absolute()), "PANDORA_RUNTIME": settings.runtime}
    return (page, daemon, *archive), environment


def turn_job(assets: Sequence[dg.AssetsDefinition]) -> UnresolvedAssetJobDefinition:
    """The job `turn` over the assets of a turn."""
    return dg.define_asset_job(
        "turn",
        selection=[key for asset in assets for key in asset.keys],
        description="All phases of an existing turn. A saved turn is never overwritten: its re-run is a numbered revision beside it.",
    )


def resolved_turn_job(assets: Sequence[dg.AssetsDefinition], pandora: PhaseRunner) -> dg.JobDefinition:
    """The job `turn` over these assets and this resource (about 10 ms: made again for each run)."""
    job = turn_job(assets)
    return dg.Definitions(assets=assets, jobs=[job], resources={"pandora": pandora}).resolve_job_def(job.name)


def execute_turn(
    assets: Sequence[dg.AssetsDefinition], turn: OpenTurn, instance: dg.DagsterInstance, *, select: Collection[str] = ()
) -> RunOutcome:
    """One run of the job `turn` for one turn: exactly the phases `select`, or all. An error of a phase is in the outcome."""
    key = turn.key
    add_keys(instance, [key])
    with _ONE_RUN:
        result = resolved_turn_job(assets, turn).execute_in_process(
            run_config=_QUIET,
            instance=instance,
            partition_key=str(key),
            asset_selection=[dg.AssetKey(name) for name in select] if select else None,
            tags=run_tags(key, turn.session),
            raise_on_error=False,
        )
    return RunOutcome(key, result.run_id, result.success, tuple(turn.reports), turn.error or _fault(result, key))


def _fault(result: dg.ExecuteInProcessResult, key: TurnKey) -> PandoraError | None:
    """What failed outside the phases themselves (a HALT is in its report)."""
    for event in result.all_events:
        failed = event.step_failure_data if event.is_step_failure else None
        if failed and failed.error and failed.error.cls_name == "DagsterExecutionInterruptedError":
            return PandoraError(f"{key}: interrupted in {event.step_key}: what is finished stays", hint=f"pandora resume {key}")
        if failed and failed.error and not failed.user_failure_data:
            return PandoraError(
                f"{event.step_key}: {failed.error.message.strip()} {failed.error.cause.message if failed.error.cause else ''}".strip()
            )
    return None


def downstream_phases(select: Collection[str]) -> tuple[str, ...]:
    """The selected phases and all that need them, in the order of the flow; raises ValueError for an unknown one."""
    if unknown := set(select) - {spec.name for spec in phase_table.PHASES}:
        raise ValueError(f"select: {sorted(unknown)}: expected phases of the flow")
    chosen: list[str] = []
    for spec in phase_table.PHASES:
        if spec.name in select or any(need in chosen for need in spec.needs):
            chosen.append(spec.name)
    return tuple(chosen)
