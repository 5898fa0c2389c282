"""The command `batch`: many queries from a file, without a daemon."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import settings_of
from pandora_dagster.cli.command_options import AsJson
from pandora_dagster.cli.output import (
    EXIT_HALTED,
    EXIT_WRONG,
    display_path,
    exit_with,
    print_json,
    print_line,
    print_note,
    print_rows,
    progress_bar,
)

if TYPE_CHECKING:
    from pandora_dagster.app.batch_service import BatchRun, BatchService

_SHOWN = 40


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
    from pandora_dagster.defs.turn.turn_run import add_partitions

    if not file.is_file():
        exit_with(EXIT_WRONG, f"{file}: not a file: expected queries as JSON lines")
    app = open_app(settings_of(context), priority=Priority.BATCH)
    try:
        run = _run(file, BatchService(app))
        add_partitions(app, [query.key for query in run.batch.queries])  # so that a halted turn can be resumed in Dagster's UI
    finally:
        app.close()
    if as_json:
        counts = Counter(str(row.state) for row in run.rows)
        rejected = str(run.rejected) if run.rejected else None
        head = {"file": str(file), "batch": run.batch.digest, "day": run.batch.day, "counts": counts, "rejected": rejected}
        print_json({**head, "rows": run.rows})
    else:
        _print_run(run)
    if any(row.intervention or row.state in ("rejected", "halted") for row in run.rows):
        raise typer.Exit(EXIT_HALTED)


def _run(file: Path, batching: "BatchService") -> "BatchRun":
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

        return batching.run_file(file, on_begin=lambda b: on_begin(len(b.queries) + len(b.rejected)), on_row=lambda _: on_row())


def _print_run(run: "BatchRun") -> None:
    rows = run.rows
    print_rows(
        sorted(rows, key=lambda row: not row.reason),  # lines with a reason first
        {
            "Line": "line",
            "Id": "id",
            "Turn": "turn",
            "State": "state",
            "Tokens": lambda r: r.tokens or "",
            "Seconds": lambda r: f"{r.ms / 1_000:.1f}" if r.turn else "",
            "Why": lambda r: r.reason[:120],
        },
        limit=_SHOWN,
    )
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(str(row.state) for row in rows).items()))
    print_line(f"{run.batch.file}: {counts or 'no queries'}; {sum(row.tokens for row in rows):,} tokens")
    if run.rejected:
        print_note(f"pandora: rejected lines with their reasons: {display_path(str(run.rejected))}")
    if halted := [row.turn for row in rows if row.intervention]:
        print_note(f"pandora: {len(halted)} turns have an intervention; go on with, e.g.: pandora resume {halted[0]}")
