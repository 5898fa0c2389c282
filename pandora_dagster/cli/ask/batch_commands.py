"""The command batch: many queries from a file, without a daemon."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import settings_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, display_path, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandora_dagster.app.batch_service import BatchRun, BatchService
    from pandora_dagster.contracts.batches import BatchRow

_SHOWN = 40


def register(app: typer.Typer) -> None:
    app.command("batch")(batch)


def batch(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="JSON lines: one query a line.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Ask many things at once: each line of a file becomes a turn.

    As many turns run as the model servers take; those of one session go one after the other. A line that is no query is told and
    kept beside the file, of queries.jsonl in queries.rejected.jsonl; the others run. The same file again goes on where it was cut off:
    nothing runs twice.
    Exit code 1 where a line was rejected or a turn halted.

    A line: {"query": ..., "user": ..., "session": ..., "mode": "chat" or "code", "id": ...}; all but the query may be left out.

    Example: pandora batch queries.jsonl
    """
    from pandora_dagster.app import open_app
    from pandora_dagster.app.batch_service import BatchService
    from pandora_dagster.contracts.enums import Priority

    if not file.is_file():
        exit_with(EXIT_WRONG, f"{file}: not a file; expected queries as JSON lines")
    app = open_app(settings_of(context), priority=Priority.BATCH)
    try:
        run = _run(file, BatchService(app))
        _add_partitions(run, BatchService(app))
    finally:
        app.close()
    if as_json:
        counts = Counter(str(row.state) for row in run.rows)
        rejected = str(run.rejected) if run.rejected else None
        told = {"file": str(file), "batch": run.batch.digest, "day": run.batch.day, "counts": counts, "rejected": rejected}
        print_json({**told, "rows": [asdict(row) for row in run.rows]})
    else:
        _show(run)
    if any(row.intervention or row.state in ("rejected", "halted") for row in run.rows):
        raise typer.Exit(EXIT_HALTED)


def _run(file: Path, batching: "BatchService") -> "BatchRun":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} queries"))
    with Progress(*shown, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(f"batch {file.name}", total=None)
        return batching.run_file(
            file,
            on_begin=lambda begun: bar.update(task, total=len(begun.queries) + len(begun.rejected)),
            on_row=lambda _: bar.advance(task),
        )


def _add_partitions(run: "BatchRun", batching: "BatchService") -> None:
    """Its turns get partitions, so that a halted one can be resumed from the web page."""
    from pandora_dagster.defs.turn.turn_run import add_partitions

    add_partitions(batching.app, [query.key for query in run.batch.queries])


def _show(run: "BatchRun") -> None:
    rows: Sequence[BatchRow] = run.rows
    shown = [row for row in rows if row.reason] + [row for row in rows if not row.reason]
    print_table(
        ("Line", "Id", "Turn", "State", "Tokens", "Seconds", "Why"),
        [(r.line, r.id, r.turn, r.state, r.tokens or "", f"{r.ms / 1_000:.1f}" if r.turn else "", r.reason[:120]) for r in shown[:_SHOWN]],
    )
    if len(shown) > _SHOWN:
        print_note(f"{len(shown) - _SHOWN} further lines are not shown; --json shows all")
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(str(row.state) for row in rows).items()))
    print_line(f"{run.batch.file}: {counts or 'no queries'}; {sum(row.tokens for row in rows):,} tokens")
    if run.rejected:
        print_note(f"pandora: rejected lines with their reasons: {display_path(str(run.rejected))}")
    if halted := [row.turn for row in rows if row.intervention]:
        print_note(f"pandora: {len(halted)} turns have an intervention; go on with, e.g.: pandora resume {halted[0]}")
