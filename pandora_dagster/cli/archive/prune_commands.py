"""The command `cold prune`: deletion of old originals in cold storage."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.archive.archive_commands import days_of
from pandora_dagster.cli.command_options import AsJson, Yes
from pandora_dagster.cli.output import (
    EXIT_HALTED,
    EXIT_WRONG,
    MAX_ROWS,
    exit_with,
    fields_of,
    print_json,
    print_line,
    print_note,
    print_notes,
    print_rows,
)

if TYPE_CHECKING:
    from pandora_dagster.contracts.retention import PrunedTurn, PruneReport


def prune(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Minimum age in days since the archival; default PANDORA_COLD_KEEP_DAYS.")
    ] = "",
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted and what is kept, and delete nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete old originals; compressed documents are kept.

    Deletion is permanent. A tombstone records what was deleted, when and why. Originals that a pin, an open intervention or a turn that is
    not archived refers to are kept and listed with the reason. An object that a later archival of the same turn replaced is deleted after
    the same number of days. The exit code is 1 if an object is damaged, or missing without a tombstone.

    Example: pandora cold prune --older-than 400d --dry-run
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.archive.original_retention import prune as prune_originals

    with app_of_existing_store(context) as app:
        days = days_of(older_than) if older_than else app.settings.cold_keep_days
        if not days:
            exit_with(EXIT_WRONG, "PANDORA_COLD_KEEP_DAYS: 0: originals are kept for ever", "give a number of days: --older-than 400d")
        ctx = open_archive(app)
        if not yes and not dry_run:
            _confirm(prune_originals(ctx, older_than_days=days, by="pandora cold prune", dry_run=True))
        report = prune_originals(ctx, older_than_days=days, by="pandora cold prune", dry_run=dry_run)
    if as_json:
        sums = fields_of(report, ("older_than_days", "dry_run", "young", "gone", "bytes_freed"))
        print_json({**sums, "deleted": _rows(report.pruned), "kept": _rows(report.kept), "unread": list(report.unread)})
    else:
        _print_report(report)
    if report.faults:
        raise typer.Exit(EXIT_HALTED)


def _confirm(report: "PruneReport") -> None:
    """End the command unless the user confirms, or nothing is to be deleted."""
    amount = f"{len(report.pruned)} originals, {report.bytes_freed:,} bytes"
    if report.pruned and not typer.confirm(f"Delete {amount} for good?", err=True):
        exit_with(EXIT_WRONG, "nothing was deleted")


def _print_report(report: "PruneReport") -> None:
    done = "to delete" if report.dry_run else "deleted"
    rest = f"{report.young} archived later, {report.gone} deleted before"
    print_line(f"originals of {len(report.pruned)} turns {done}, {report.bytes_freed:,} bytes; {len(report.kept)} kept; {rest}")
    if report.pruned:
        print_rows(report.pruned, {"Turn": "key", "Day": "day", "Cold object": "cold", "Bytes": "size"}, limit=MAX_ROWS)
    print_notes([f"{turn.key} is kept: {turn.reason}" for turn in report.kept])
    for fault in report.unread:
        print_note(fault)


def _rows(turns: "Sequence[PrunedTurn]") -> list[dict[str, str | int]]:
    return [
        {"turn": str(t.key), "day": t.day, "cold": t.cold, "size": t.size, "kept": t.kept.value if t.kept else "", "reason": t.reason}
        for t in turns
    ]
