"""Commands that archive turns and bring them back: archive, restore, pin, unpin."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, display_path, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.archive.archive_selection import ArchiveSelection
    from pandora_dagster.archive.turn_archival import ArchiveContext
    from pandora_dagster.contracts.archive_records import ArchivedTurn, ArchiveReport, DocumentRow, NotDueTurn
    from pandora_dagster.contracts.user.summary_levels import LevelReport

Turn = Annotated[str, typer.Argument(help="<user>:turn_000811, or the short form where it is unique.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
_AGE = re.compile(r"([0-9]{1,6})d?")
_MOST_DAYS = 36_500
_SHOWN = 20
"""Rows of the tables for people; --json has all."""


def register(app: typer.Typer) -> None:
    app.command("archive")(archive)
    app.command("restore")(restore)
    app.command("pin")(pin)
    app.command("unpin")(unpin)


def archive(
    context: typer.Context,
    older_than: Annotated[str, typer.Option("--older-than", help="Days since a turn's last activity, e.g. 30d.")] = "",
    day: Annotated[str, typer.Option("--date", help="Only turns whose last activity was on this day, e.g. 2026-01-04.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is due and what stays, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Archive old turns: their documents are compressed, their originals go to cold storage.

    An archived turn is found, shown, asked about and exported as before; `pandora restore` brings its originals back. Open, halted and
    pinned turns stay, and those that an open intervention names. What archived conversations came to is summarised afterwards
    (`pandora digest`). Exit code 1 where a turn could not be archived: it stays as it was,
    and an intervention says why.

    Example: pandora archive --older-than 30d --dry-run
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.archive.archive_selection import select_turns
    from pandora_dagster.archive.eligibility import last_due_day
    from pandora_dagster.defs.turn.turn_run import remove_archived_partitions

    with app_of_existing_store(context) as app:
        days = days_of(older_than) if older_than else app.settings.archive_after_days
        ctx = open_archive(app, after_days=days)
        wanted = _date(day) if day else None
        last = last_due_day(app.dependencies.clock(), ctx.rules.zone, days)
        if wanted and wanted > last + timedelta(days=days):
            exit_with(EXIT_WRONG, f"--date {day}: a day to come: expected one up to {last}")
        if wanted and wanted > last:
            exit_with(
                EXIT_WRONG, f"--date {day}: due are days up to {last}, {days} days ago: expected one of them, or a lower --older-than"
            )
        selected = select_turns(ctx, days=None if wanted is None else {wanted})
        if dry_run:
            _print_selection(selected, as_json=as_json)
            return
        rows: list[ArchivedTurn] = []
        report = _archive_with_progress(app, ctx, selected, rows)
        remove_archived_partitions(app)
        levels = () if report.stopped else _levels(app, ctx.rules.after_days)
        _print_report(app, report, rows, levels, as_json=as_json)
    for done in (report, *levels):
        if done.stopped:
            exit_with(EXIT_WRONG, done.stopped, done.hint)
    if report.failed or any(done.failed for done in levels):
        raise typer.Exit(EXIT_HALTED)


def restore(context: typer.Context, turn: Turn, as_json: AsJson = False) -> None:
    """Bring an archived turn's originals back, byte for byte.

    It stays for as long as a new turn would, then the archival takes it again; `pandora pin` keeps it for good.

    Example: pandora restore example:turn_000012
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.archive.turn_restoration import restore as bring_back
    from pandora_dagster.defs.turn.turn_run import add_partitions

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        done = bring_back(key, open_archive(app))
        add_partitions(app, (key,))  # also where a restoring was cut off before it
        folder = app.turns.path(key)
    until = done.hold.until if done.hold else None
    if as_json:
        print_json(
            {"turn": str(key), "restored": done.was_archived, "state": done.turn.manifest.state, "folder": folder, "held_until": until}
        )
    elif not done.was_archived:
        print_line(f"{key}: it is {done.turn.manifest.state}, not archived; nothing was changed")
    else:
        print_line(f"{key}: restored, {len(done.turn.files) + 1} documents, {done.turn.manifest.tokens} tokens in context.md")
        print_note(f"{display_path(folder)}; kept from archival {f'until {until}' if until else 'until it is unpinned'}")


def pin(context: typer.Context, turn: Turn) -> None:
    """Keep a turn from archival until it is unpinned.

    Example: pandora pin example:turn_000012
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.archive.turn_restoration import pin as put_pin

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        put_pin(key, open_archive(app))
        archived = app.turns.manifest(key).archive is not None
    print_line(f"{key}: pinned")
    if archived:
        print_note(f"it is archived; its originals come back, and stay, with: pandora restore {key}")


def unpin(context: typer.Context, turn: Turn) -> None:
    """Let a turn be archived again: takes a pin away, and what keeps a restored turn.

    Example: pandora unpin example:turn_000012
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.archive.turn_restoration import unpin as take_pin

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        had_one = take_pin(key, open_archive(app))
    print_line(f"{key}: unpinned" if had_one else f"{key}: was not pinned")


def days_of(text: str) -> int:
    """Days of an option such as `30d`; ends the command where it is none."""
    found = _AGE.fullmatch(text.strip())
    if not found or not 1 <= int(found.group(1)) <= _MOST_DAYS:
        exit_with(EXIT_WRONG, f"--older-than {text[:40]}: expected days from 1d to {_MOST_DAYS}d, e.g. 30d")
    return int(found.group(1))


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        exit_with(EXIT_WRONG, f"--date {text[:40]}: no day: expected one such as 2026-01-04")


def _archive_with_progress(app: "App", ctx: "ArchiveContext", selected: "ArchiveSelection", rows: "list[ArchivedTurn]") -> "ArchiveReport":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from pandora_dagster.app.archive_service import ArchiveService

    shown = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} turns"), TimeElapsedColumn())
    with Progress(*shown, console=Console(stderr=True)) as bar:
        task = bar.add_task("archive", total=len(selected.due))

        def told(row: "ArchivedTurn") -> None:
            rows.append(row)
            bar.advance(task)

        return ArchiveService(app).archive(selected, ctx, on_row=told)


def _levels(app: "App", after_days: int) -> "tuple[LevelReport, LevelReport]":
    """Narratives and digests, brought up to date with what is archived."""
    from pandora_dagster.app import open_levels
    from pandora_dagster.archive.session_narratives import summarise_sessions
    from pandora_dagster.archive.user_digests import digest_users

    ctx = open_levels(app, quiet_days=after_days)
    return app.run(summarise_sessions(ctx)), app.run(digest_users(ctx))


def _print_selection(selected: "ArchiveSelection", *, as_json: bool) -> None:
    if as_json:
        due = [{"turn": str(d.key), "day": d.day.isoformat()} for d in selected.due]
        print_json({"due": due, "not_due": _not_due(selected.not_due)})
        return
    days = sorted({d.day for d in selected.due})
    span = f", last active {days[0]} to {days[-1]}" if days else ""
    print_line(f"{len(selected.due)} turns are due{span}; {len(selected.not_due)} stay")
    if selected.due:
        print_table(("Due", "Day"), [(str(d.key), d.day) for d in selected.due[:_SHOWN]])
    if len(selected.due) > _SHOWN:
        print_note(f"{len(selected.due) - _SHOWN} more are due; --json lists all")
    _print_not_due(selected.not_due)


def _print_report(
    app: "App", report: "ArchiveReport", rows: "list[ArchivedTurn]", levels: "Sequence[LevelReport]", *, as_json: bool
) -> None:
    counts = {outcome.value: number for outcome, number in report.counts.items()}
    if as_json:
        names = ("due", "documents", "compressed", "tokens_before", "tokens_after", "ratio", "facts", "facts_kept", "cold_bytes", "stopped")
        sums = {name: getattr(report, name) for name in names}
        made = {name: dict(done.counts) for name, done in zip(("narratives", "digests"), levels, strict=False)}
        print_json({**sums, "counts": counts, "turns": [_row(row) for row in rows], "not_due": _not_due(report.not_due), **made})
        return
    done = [row for row in rows if row.documents]
    if done:
        header = ("Turn", "Document", "Tokens before", "After", "Ratio", "Facts kept", "Cold object")
        lines = [(row, d) for row in done for d in row.documents]
        print_table(header, [_line(row, d) for row, d in lines[:_SHOWN]])
        if len(lines) > _SHOWN:
            print_note(f"{len(lines) - _SHOWN} documents more; --json lists all")
        ratio = f"{report.tokens_before} to {report.tokens_after} tokens ({report.ratio:.2f})"
        facts = f"{report.facts_kept} of {report.facts} facts of {report.compressed} compressed documents kept"
        print_line(f"{len(done)} turns archived, {report.documents} documents: {ratio}; {facts}")
        print_line(f"originals: {report.cold_bytes:,} bytes in {display_path(str(Path(app.settings.root, 'cold')))}")
    for outcome in ("finished", "kept", "failed"):
        if outcome in counts:
            print_line(f"{counts[outcome]} turns {outcome}")
    if not report.due:
        print_line("nothing is due")
    for row in report.failed:
        print_note(f"pandora: {row.key}: {row.reason} (intervention {row.intervention})")
    for name, done in zip(("narratives", "digests"), levels, strict=False):
        if told := ", ".join(f"{number} {outcome}" for outcome, number in done.counts.items() if outcome != "unchanged"):
            print_line(f"{name}: {told} (pandora digest)")
        for failed in done.failed:
            print_note(f"pandora: {failed.subject}: {failed.reason} (intervention {failed.intervention})")
    _print_not_due(report.not_due)


def _line(row: "ArchivedTurn", document: "DocumentRow") -> tuple[object, ...]:
    ratio = f"{document.tokens_after / document.tokens_before:.2f}" if document.tokens_before else ""
    facts = "whole" if document.whole else f"{document.facts_kept} of {document.facts}"
    return (
        row.key,
        document.name,
        document.tokens_before,
        document.tokens_after,
        ratio,
        facts,
        f"{Path(row.cold).name[:12]}, {row.size} B",
    )


def _print_not_due(not_due: "Sequence[NotDueTurn]") -> None:
    for stays in not_due[:_SHOWN]:
        print_note(f"{stays.key} stays: {stays.reason}")
    if len(not_due) > _SHOWN:
        print_note(f"{len(not_due) - _SHOWN} more stay; --json lists all")


def _not_due(not_due: "Sequence[NotDueTurn]") -> list[dict[str, str]]:
    return [{"turn": str(n.key), "day": n.day.isoformat() if n.day else "", "kept": n.kept.value, "reason": n.reason} for n in not_due]


def _row(row: "ArchivedTurn") -> dict[str, Any]:
    return {**asdict(row), "key": str(row.key), "outcome": row.outcome.value}
