"""Commands that move conversations: import and export."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of, app_of_existing_store
from pandora_dagster.cli.command_options import AsJson, OnlyUser
from pandora_dagster.cli.output import (
    EXIT_HALTED,
    EXIT_WRONG,
    exit_with,
    fields_of,
    print_json,
    print_json_line,
    print_line,
    print_note,
    progress_bar,
)

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.transfer.conversation_import import ImportReport


def import_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON lines: one conversation a line, in OpenAI message format.")],
    as_json: AsJson = False,
) -> None:
    """Import conversations as recorded turns.

    Importing a file twice changes nothing. An invalid line is reported, the others are imported, and the exit code is 1.

    A line: {"id": ..., "user_id": ..., "created_at": ..., "messages": [{"role": "user", "content": ...}, ...]}

    Example: pandora import conversations.jsonl
    """
    from pandora_dagster.defs.turn.turn_run import add_partitions

    if not file.is_file():
        exit_with(EXIT_WRONG, f"{file}: not a file: expected conversations as JSON lines")
    with app_of(context) as app:
        report = _import_with_progress(file, app)
        add_partitions(app, report.keys)
    if as_json:
        print_json(fields_of(report, ("lines", "conversations", "turns", "unchanged", "faults")))
    else:
        print_line(f"{report.conversations} conversations imported, {report.turns} turns; {report.unchanged} were there already")
    for fault in report.faults:
        print_note(f"pandora: {fault}")
    if report.faults:
        raise typer.Exit(EXIT_HALTED)


def export(context: typer.Context, user: OnlyUser = "") -> None:
    """Write conversations as JSON lines to stdout.

    Imported conversations are written as they were imported, value for value. Turns whose originals were deleted (`pandora cold prune`)
    are written with their compressed texts. A conversation with a damaged document is reported and left out, and the exit code is 1.

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
            print_json_line(conversation)
            written += 1
            compressed += len(conversation.get(DELETED_FIELD, ()))
    if compressed:
        print_note(
            f"{compressed} turns are exported with compressed texts, since their originals were deleted ({DELETED_FIELD} names them)"
        )
    for fault in faults:
        print_note(f"pandora: left out: {fault}")
    if not written and not faults:
        print_note(f"no conversations{f' of {user}' if user else ''} in this store")
    if faults:
        raise typer.Exit(EXIT_HALTED)


def _import_with_progress(file: Path, app: "App") -> "ImportReport":
    with file.open("rb") as lines:
        total = sum(1 for _ in lines)
    with file.open("rb") as lines, progress_bar(f"import {file.name}", "lines") as advance:
        return app.transfer.import_conversations(lines, where=str(file), progress=lambda report: advance(report.lines, total))
