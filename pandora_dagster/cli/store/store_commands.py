"""Commands around the pipeline: demo, ui, doctor."""

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote
from shutil import which
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import StoreOptions, app_of, settings_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, display_path, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.phases.core.phase_report import PhaseReport

EXAMPLE_USER = "example"
EXAMPLE_QUERY = "Which chair did we order, and what did it cost?"


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)
    app.command("ui")(ui)
    app.command("doctor")(doctor)


def demo(context: typer.Context) -> None:
    """Index the shipped example and run one live turn over it.

    The turn goes through the Dagster graph on the embedded runtime: no server, no network, no model.

    Example: pandora demo
    """
    from pandora_dagster.defs.turn.turn_run import add_partitions, run_turn

    with app_of(context, embedded=True) as app:
        report = app.transfer.import_example()
        add_partitions(app, report.keys)
        print_line(
            f"Example history: {report.turns} turns of user '{EXAMPLE_USER}' indexed, {report.unchanged} conversations were there already."
        )
        key = app.start(EXAMPLE_QUERY, user=EXAMPLE_USER, session="demo", mode="chat")
        print_line(f"Live turn {key} on the {app.dependencies.runtime} runtime: {EXAMPLE_QUERY}\n")
        reports: list[PhaseReport] = []
        run_turn(app, key, on_report=reports.append)
        _print_summary(app, reports)
        answer = app.answer_of(key)
        if answer.state == "halted":
            exit_with(EXIT_HALTED, f"the turn halted; see: pandora interventions show {answer.intervention}")
        print_line(f"\nAnswer\n{indent(answer.response, '  ')}\n\nCitations")
        for cited in answer.citations:
            print_line(f"  [{cited['label']}] {display_path(cited['path'])}")
        print_line(f"\nDocuments\n  {display_path(app.turns.path(key))}\n\nNext")
        for command in _next_commands(str(key)):
            print_line(f"  {_program(context)} {command}")


def _print_summary(app: "App", reports: "list[PhaseReport]") -> None:
    rows: list[tuple[object, ...]] = []
    for report in reports:
        gates = ", ".join(v.gate if v.passed else f"{v.gate} FAILED" for v in report.verdicts)
        if not report.calls:
            rows.append((report.phase, "", "", "", gates))
        for n, call in enumerate(report.calls):
            last = n == len(report.calls) - 1
            tokens = f"{call.tokens.total} / {call.tokens.budget}"
            rows.append((report.phase if n == 0 else "", call.recipe, call.model_layer.value, tokens, gates if last else ""))
    print_table(("Phase", "Recipe", "Layer", "Tokens / budget", "Gates passed"), rows)


def _next_commands(turn: str) -> tuple[str, ...]:
    return (
        f"show {turn}",
        f'ask "What happened with the scratched desk?" --user {EXAMPLE_USER}',
        f"turns --user {EXAMPLE_USER}",
        "ui",
    )


def _program(context: typer.Context) -> str:
    """How this program is called from here: by its name where the shell finds it, else by its path; over the same store."""
    given: StoreOptions = context.obj or StoreOptions()
    called = Path(sys.argv[0])
    name = "pandora" if which("pandora") or called.name != "pandora" else os.path.relpath(called)
    return f"{name} --root {quote(given.root)}" if given.root else name


def ui(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="Port of the web page.", min=1, max=65535)] = 3000,
    host: Annotated[str, typer.Option(help="Address it listens on.")] = "127.0.0.1",
) -> None:
    """Open Dagster's web page over the same store, with the daemon that ticks its sensors and schedules.

    Everything that `pandora ask` and `pandora demo` ran is there; a file of queries put into <root>/inbox begins by itself.
    Ctrl-C stops both.

    Example: pandora ui --port 3001
    """
    from pandora_dagster.cli.serve.process_group import run_process_group
    from pandora_dagster.defs.turn.turn_run import ui_commands
    from pandora_dagster.settings import process_environment

    settings = settings_of(context)
    _check_port_free(host, port, "--port")
    if settings.pages_port:
        _check_port_free("127.0.0.1", settings.pages_port, "PANDORA_PAGES_PORT")
    (settings.root / "inbox").mkdir(parents=True, exist_ok=True)
    commands, environment = ui_commands(settings, host=host, port=port)
    print_note(
        f"Dagster on http://{host}:{port} over {settings.root}; the graph: http://{host}:{port}/locations/pandora_dagster/asset-groups/turn"
    )
    if code := run_process_group(commands, process_environment(**environment)):
        exit_with(EXIT_WRONG, f"a part of Dagster ended by itself with exit code {code}: expected both to run; what it said stands above")


def _check_port_free(host: str, port: int, setting: str) -> None:
    """Stops where somebody listens there already: three programs would start and end one after the other."""
    with suppress(OSError), socket.create_connection((host, port), timeout=1.0):
        exit_with(EXIT_WRONG, f"{host}:{port}: something listens there already: expected a free port", f"choose another: {setting}")


def doctor(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False) -> None:
    """Say for each part whether it works.

    Where one does not, what to do stands beside it and the exit code is 1.

    Example: pandora doctor
    """
    with app_of(context) as app:
        findings = app.run(app.health.check())
    if as_json:
        print_json([{"part": f.part, "ok": f.ok, "says": f.says, "remedy": f.remedy} for f in findings])
    else:
        print_table(("Part", "", "Says", "Remedy"), [(f.part, "ok" if f.ok else "NOT OK", f.says, f.remedy) for f in findings])
        print_line(f"Python {sys.version.split()[0]}")
    if not all(f.ok for f in findings):
        raise typer.Exit(EXIT_HALTED)
