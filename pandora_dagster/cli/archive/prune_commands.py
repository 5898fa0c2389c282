"""The command `cold prune`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, Yes, app_of_existing_store
from pandora_dagster.cli.archive.archive_commands import parse_days
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    MAX_ROWS,
    exit_with,
    fields_of,
    print_json,
    print_line,
    print_note,
    print_notes,
    print_rows,
)
from pandora_dagster.language.word_forms import counted

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
    from pandora_dagster.app.archive_service import open_archive
    from pandora_dagster.archive.original_retention import prune as prune_originals

    with app_of_existing_store(context) as app:
        days = parse_days(older_than) if older_than else app.settings.cold_keep_days
        if not days:
            exit_with(EXIT_USAGE, "PANDORA_COLD_KEEP_DAYS: 0: originals are kept for ever", "give a number of days: --older-than 400d")
        ctx = open_archive(app)
        if not yes and not dry_run:
            _confirm_prune(prune_originals(ctx, older_than_days=days, by="pandora cold prune", dry_run=True))
        report = prune_originals(ctx, older_than_days=days, by="pandora cold prune", dry_run=dry_run)
    if as_json:
        print_json(
            {
                **fields_of(report, ("older_than_days", "dry_run", "bytes_freed")),
                "young": report.within_retention,
                "gone": report.deleted_earlier,
                "deleted": _prune_objects(report.pruned),
                "kept": _prune_objects(report.kept),
                "unread": list(report.unreadable_objects),
            }
        )
    else:
        _print_prune_report(report)
    if report.faults:
        raise typer.Exit(EXIT_FAILED)


def _confirm_prune(report: "PruneReport") -> None:
    """End the command unless the user confirms, or nothing is to be deleted."""
    amount = f"{counted(len(report.pruned), 'original')}, {counted(report.bytes_freed, 'byte')}"
    if report.pruned and not typer.confirm(f"Delete {amount} for good?", err=True):
        exit_with(EXIT_USAGE, "nothing was deleted")


def _print_prune_report(report: "PruneReport") -> None:
    action = "to delete" if report.dry_run else "deleted"
    others = f"{report.within_retention} not old enough, {report.deleted_earlier} deleted earlier"
    freed = counted(report.bytes_freed, "byte")
    print_line(f"originals of {counted(len(report.pruned), 'turn')} {action}, {freed}; {len(report.kept)} kept; {others}")
    if report.pruned:
        print_rows(report.pruned, {"Turn": "key", "Day": "day", "Cold object": "cold", "Bytes": "size"}, limit=MAX_ROWS)
    print_notes([f"{turn.key} is kept: {turn.reason}" for turn in report.kept])
    for fault in report.unreadable_objects:
        print_note(fault)


def _prune_objects(turns: "Sequence[PrunedTurn]") -> list[dict[str, str | int]]:
    return [
        {
            "turn": str(t.key),
            "day": t.day,
            "cold": t.cold,
            "size": t.size,
            "kept": t.kept_because.value if t.kept_because else "",
            "reason": t.reason,
        }
        for t in turns
    ]
