"""What the commands do with Dagster beside a turn: its record as a run, partitions, imports, and the programs of the web page."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pandora_dagster.app import App
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.contracts.archive_records import DueTurn
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.dagster_internals import DAEMON_MODULE
from pandora_dagster.defs.imported_turns import record_import
from pandora_dagster.defs.instance import add_turn_partitions, open_instance, remove_turn_partitions
from pandora_dagster.defs.turn.missing_runs import record_recent_turns, record_stored_turns
from pandora_dagster.defs.turn.recorded_run import record_run
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.core.phase_report import TimedReports
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.transfer.conversation_import import ImportReport


def report_turn(app: App, key: TurnKey, reports: TimedReports, error: BaseException | None = None) -> str:
    """Record a turn that ran outside Dagster (`ask`, `chat`, the API) as a run, after the answer; return the id of the run.

    Turns of the user whose process died before its record are recorded with it. `error`: what stopped the turn, where it was not a HALT.
    """
    session, folder = app.turns.manifest(key).session_id, app.turns.path(key)
    with open_instance(app.settings, captures_output=False) as instance:
        run_id = record_run(instance, key, reports, recipes=app.recipes, session=session, folder=folder, error=error)
        record_recent_turns(app, instance, key.user)
    return run_id


def record_batch(app: App, keys: Sequence[TurnKey]) -> None:
    """Record the turns of a batch that ran outside Dagster as runs, and give each a partition, by which a halted one can be resumed."""
    with open_instance(app.settings, captures_output=False) as instance:
        record_stored_turns(app, instance, keys)
        add_turn_partitions(instance, keys)


def add_partitions(app: App, keys: Iterable[TurnKey]) -> None:
    """Add the partitions of these turns, all at once, and delete those of imported ones, for which no phase runs.

    An archived turn has no partition until it is restored.
    """
    archived = {turn.key for turn in app.turn_index.activities(archived=True)}
    live: list[TurnKey] = []
    imported: list[TurnKey] = []
    for key in keys:
        if key not in archived:
            (imported if _is_imported(app, key) else live).append(key)
    with open_instance(app.settings) as instance:
        add_turn_partitions(instance, live)
        remove_turn_partitions(instance, imported)


def _is_imported(app: App, key: TurnKey) -> bool:
    """Whether the turn was imported; a turn that cannot be read counts as live."""
    try:
        return app.turns.manifest(key).recorded
    except PandoraError:
        return False


def report_import(app: App, report: ImportReport, *, source: str) -> tuple[DueTurn, ...]:
    """Report an import to Dagster; return the turns that the next archival run takes."""
    due = select_turns(open_archive(app)).due
    with open_instance(app.settings) as instance:
        record_import(instance, report, source=source, due=due)
    return due


_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
"""What a web server listens on for all addresses of the machine."""


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
    daemon = [sys.executable, "-m", DAEMON_MODULE, "run", "-w", workspace]
    address = f"http://{'127.0.0.1' if host in _EVERY_ADDRESS else host}:{port}"
    pages = [sys.executable, "-c", "from pandora_dagster.cli.program import run; run()", "pages", "--dagster", address]
    environment = {"DAGSTER_HOME": home, "PANDORA_ROOT": str(settings.root.absolute()), "PANDORA_RUNTIME": settings.runtime}
    return (web_server, daemon, *([pages] if settings.pages_port else [])), environment
