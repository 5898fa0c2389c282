"""Commands that move conversations and queries as JSON lines: import, export, batch."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, OnlyUser, app_of, app_of_existing_store, settings_of
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    display_path,
    exit_with,
    fields_of,
    print_json,
    print_json_line,
    print_line,
    print_note,
    print_rows,
    progress_bar,
)
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.app.batch_service import BatchRun, BatchService
    from pandora_dagster.contracts.archive_records import DueTurn
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
    from pandora_dagster.defs.turn.turn_run import report_import

    if not file.is_file():
        exit_with(EXIT_USAGE, f"{file}: not a file: expected conversations as JSON lines")
    with app_of(context) as app:
        report = _import_with_progress(file, app)
        due = report_import(app, report, source=file.name)
        archive_at = f"{app.settings.archive_at:%H:%M}"
    if as_json:
        print_json(fields_of(report, ("lines", "conversations", "turns", "unchanged", "faults")))
    else:
        imported = f"{counted(report.conversations, 'conversation')} imported, {counted(report.turns, 'turn')}"
        print_line(f"{imported}; {counted(report.unchanged, 'was', 'were')} there already")
        _print_due(due, archive_at)
    for fault in report.faults:
        print_note(f"pandora: {fault}")
    if report.faults:
        raise typer.Exit(EXIT_FAILED)


def _print_due(due: "Sequence[DueTurn]", archive_at: str) -> None:
    """What the next archival run takes, and how to keep it."""
    if not due:
        return
    days = sorted({turn.day for turn in due})
    span = f"of {days[0]}" if len(days) == 1 else f"of {len(days)} days from {days[0]} to {days[-1]}"
    turns = counted(len(due), "turn")
    print_note(f"pandora: the next archival run (daily at {archive_at} while pandora ui runs, or pandora archive) takes {turns} {span}")
    print_note("  their originals go to cold storage; to keep a turn: pandora pin TURN; to wait longer: PANDORA_ARCHIVE_AFTER_DAYS")


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
        turns = counted(compressed, "turn is", "turns are")
        print_note(f"{turns} exported with compressed texts, since their originals were deleted ({DELETED_FIELD} names them)")
    for fault in faults:
        print_note(f"pandora: left out: {fault}")
    if not written and not faults:
        print_note(f"no conversations{f' of {user}' if user else ''} in this store")
    if faults:
        raise typer.Exit(EXIT_FAILED)


def _import_with_progress(file: Path, app: "App") -> "ImportReport":
    with file.open("rb") as lines:
        total = sum(1 for _ in lines)
    with file.open("rb") as lines, progress_bar(f"import {file.name}", "lines") as advance:
        return app.transfer.import_conversations(lines, where=str(file), progress=lambda report: advance(report.lines, total))


_MAX_ROWS, _MAX_REASON_CHARACTERS = 40, 120


def batch(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON lines: one query a line.")],
    as_json: AsJson = False,
) -> None:
    """Ask many queries: every line of a file is one turn.

    Turns run in parallel as far as the model servers allow; turns of one session run in order. Invalid lines of queries.jsonl are
    reported and stored in queries.rejected.jsonl. Running the same file again continues an interrupted batch and repeats nothing. The exit
    code is 1 if a line was rejected or a turn halted.

    A line: {"query": ..., "user": ..., "session": ..., "mode": "chat" or "code", "id": ...}; only the query is required.

    Example: pandora batch queries.jsonl
    """
    from pandora_dagster.app import open_app
    from pandora_dagster.app.batch_service import BatchService
    from pandora_dagster.contracts.enums import Priority
    from pandora_dagster.defs.turn.turn_run import record_batch

    if not file.is_file():
        exit_with(EXIT_USAGE, f"{file}: not a file: expected queries as JSON lines")
    app = open_app(settings_of(context), priority=Priority.BATCH)
    try:
        run = _run_with_progress(file, BatchService(app))
        record_batch(app, [query.key for query in run.batch.queries])
    finally:
        app.close()
    if as_json:
        counts = Counter(str(row.state) for row in run.rows)
        rejected = str(run.rejected) if run.rejected else None
        fields = {"file": str(file), "batch": run.batch.digest, "day": run.batch.day, "counts": counts, "rejected": rejected}
        print_json({**fields, "rows": run.rows})
    else:
        _print_run(run)
    if any(row.intervention or row.state in ("rejected", "halted") for row in run.rows):
        raise typer.Exit(EXIT_FAILED)


def _run_with_progress(file: Path, service: "BatchService") -> "BatchRun":
    done = total = 0
    with progress_bar(f"batch {file.name}", "queries") as advance:

        def on_begin(lines: int) -> None:
            nonlocal total
            total = lines
            advance(done, total)

        def on_row() -> None:
            nonlocal done
            done += 1
            advance(done, total)

        return service.run_file(file, on_begin=lambda batch: on_begin(len(batch.queries) + len(batch.rejected)), on_row=lambda _: on_row())


def _print_run(run: "BatchRun") -> None:
    rows = run.rows
    if rows:
        print_rows(
            sorted(rows, key=lambda row: not row.reason),  # lines with a reason first
            {
                "Line": "line",
                "Id": "id",
                "Turn": "turn",
                "State": "state",
                "Tokens": lambda r: r.tokens or "",
                "Seconds": lambda r: f"{r.ms / 1_000:.1f}" if r.turn else "",
                "Why": lambda r: r.reason[:_MAX_REASON_CHARACTERS],
            },
            limit=_MAX_ROWS,
        )
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(str(row.state) for row in rows).items()))
    print_line(f"{run.batch.file}: {counts or 'no queries'}; {counted(sum(row.tokens for row in rows), 'token')}")
    if run.rejected:
        print_note(f"pandora: rejected lines with their reasons: {display_path(str(run.rejected))}")
    if halted := [row.turn for row in rows if row.intervention]:
        print_note(
            f"pandora: {counted(len(halted), 'turn has', 'turns have')} an intervention; go on with, e.g.: pandora resume {halted[0]}"
        )
