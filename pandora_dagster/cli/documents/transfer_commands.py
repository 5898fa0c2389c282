"""Commands that move conversations: import and export."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of, app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_note

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.transfer.conversation_import import ImportReport


def register(app: typer.Typer) -> None:
    app.command("import")(import_file)
    app.command("export")(export)


def import_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON lines: one conversation a line, in OpenAI message format.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Import conversations as recorded turns.

    Importing a file twice changes nothing. A broken line is named, the rest is imported, and the exit code is 1.

    A line: {"id": ..., "user_id": ..., "created_at": ..., "messages": [{"role": "user", "content": ...}, ...]}

    Example: pandora import conversations.jsonl
    """
    from pandora_dagster.defs.turn.turn_run import add_partitions

    if not file.is_file():
        exit_with(EXIT_WRONG, f"{file}: not a file; expected conversations as JSON lines")
    with app_of(context) as app:
        report = _import_with_progress(file, app)
        add_partitions(app, report.keys)
    if as_json:
        fields = ("lines", "conversations", "turns", "unchanged")
        print_json({**{name: getattr(report, name) for name in fields}, "faults": list(report.faults)})
    else:
        print_line(f"{report.conversations} conversations imported, {report.turns} turns; {report.unchanged} were there already")
    for fault in report.faults:
        print_note(f"pandora: {fault}")
    if report.faults:
        raise typer.Exit(EXIT_HALTED)


def export(
    context: typer.Context,
    user: Annotated[str, typer.Option("--user", "-u", help="Only this person's conversations.")] = "",
) -> None:
    """Write conversations as JSON lines to stdout.

    Imported ones leave as they came, value for value; turns whose originals were deleted (`pandora cold prune`) by their compressed texts.
    A conversation with a damaged document is named and left out, and the exit code is 1.

    Example: pandora export --user example > example.jsonl
    """
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.transfer.conversation_export import DELETED_FIELD

    written = compressed = 0
    faults: list[str] = []
    with app_of_existing_store(context) as app:
        for conversation in app.transfer.export_conversations(
            user_id(user) if user else None, on_fault=lambda error: faults.append(error.with_hint)
        ):
            print_line(json.dumps(conversation, ensure_ascii=False))
            written += 1
            compressed += len(conversation.get(DELETED_FIELD, ()))
    if compressed:
        print_note(f"{compressed} turns leave by their compressed texts, since their originals were deleted ({DELETED_FIELD} names them)")
    for fault in faults:
        print_note(f"pandora: left out: {fault}")
    if not written and not faults:
        print_note(f"no conversations{f' of {user}' if user else ''} in this store")
    if faults:
        raise typer.Exit(EXIT_HALTED)


def _import_with_progress(file: Path, app: "App") -> "ImportReport":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} lines"), TimeElapsedColumn())
    with file.open("rb") as lines, Progress(*shown, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"import {file.name}", total=_lines(file))
        return app.transfer.import_conversations(lines, where=str(file), progress=lambda r: bar.update(task, completed=r.lines))


def _lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(1 for _ in lines)
