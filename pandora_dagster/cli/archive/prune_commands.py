"""Commands for cold storage: prune."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.archive.archive_commands import days_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.contracts.retention import PrunedTurn, PruneReport

cold = typer.Typer(name="cold", help="The originals of archived turns.", no_args_is_help=True, rich_markup_mode=None)
_SHOWN = 20


def register(app: typer.Typer) -> None:
    app.add_typer(cold)


@cold.command("prune")
def prune(
    context: typer.Context,
    older_than: Annotated[str, typer.Option("--older-than", help="Days since a turn was archived; default PANDORA_COLD_KEEP_DAYS.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go and what stays, and delete nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Delete the originals of turns archived long ago, for good; their compressed documents stay.

    Each leaves a tombstone that says what it was, when it went and why. What a pin, an open intervention or a turn that is not archived
    refers to stays, and is listed with the reason. What a turn that was restored, changed and archived anew left of its earlier archival
    goes after the same days. Exit code 1 where an object is damaged or missing without a tombstone.

    Example: pandora cold prune --older-than 400d --dry-run
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.archive.original_retention import prune as pruned

    with app_of_existing_store(context) as app:
        days = days_of(older_than) if older_than else app.settings.cold_keep_days
        if not days:
            exit_with(EXIT_WRONG, "PANDORA_COLD_KEEP_DAYS: 0: originals are kept for ever", "name the days: --older-than 400d")
        ctx = open_archive(app)
        if not yes and not dry_run:
            _confirm(pruned(ctx, older_than_days=days, by="pandora cold prune", dry_run=True))
        report = pruned(ctx, older_than_days=days, by="pandora cold prune", dry_run=dry_run)
    _print_report(report, as_json=as_json)
    if report.faults:
        raise typer.Exit(EXIT_HALTED)


def _confirm(report: "PruneReport") -> None:
    """Goes on only where a person says yes, or nothing would go."""
    going = f"{len(report.pruned)} originals, {report.bytes_freed:,} bytes"
    if report.pruned and not typer.confirm(f"Delete {going} for good?", err=True):
        exit_with(EXIT_WRONG, "nothing was deleted")


def _print_report(report: "PruneReport", *, as_json: bool) -> None:
    if as_json:
        names = ("older_than_days", "dry_run", "young", "gone", "bytes_freed")
        sums = {name: getattr(report, name) for name in names}
        print_json({**sums, "deleted": _rows(report.pruned), "kept": _rows(report.kept), "unread": list(report.unread)})
        return
    done = "to delete" if report.dry_run else "deleted"
    rest = f"{report.young} archived later, {report.gone} deleted before"
    print_line(f"originals of {len(report.pruned)} turns {done}, {report.bytes_freed:,} bytes; {len(report.kept)} stay; {rest}")
    if report.pruned:
        print_table(("Turn", "Day", "Cold object", "Bytes"), [(t.key, t.day, t.cold, t.size) for t in report.pruned[:_SHOWN]])
    for turn in report.kept[:_SHOWN]:
        print_note(f"{turn.key} stays: {turn.reason}")
    for fault in report.unread:
        print_note(fault)
    hidden = max(0, len(report.pruned) - _SHOWN) + max(0, len(report.kept) - _SHOWN)
    if hidden:
        print_note(f"{hidden} more; --json lists all")


def _rows(turns: "Sequence[PrunedTurn]") -> list[dict[str, str | int]]:
    return [
        {"turn": str(t.key), "day": t.day, "cold": t.cold, "size": t.size, "kept": t.kept.value if t.kept else "", "reason": t.reason}
        for t in turns
    ]
