"""Commands for the archive: archive, restore, pin, unpin."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, Turn, app_of_existing_store
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    MAX_ROWS,
    display_path,
    exit_with,
    fields_of,
    print_json,
    print_line,
    print_note,
    print_notes,
    print_rows,
    progress_bar,
)
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.archive.archive_selection import ArchiveSelection
    from pandora_dagster.archive.turn_archival import ArchiveContext
    from pandora_dagster.contracts.archive_records import ArchivedDocument, ArchivedTurn, ArchiveReport, NotDueTurn
    from pandora_dagster.contracts.user.summary_levels import LevelReport
    from pandora_dagster.defs.archival.recorded_archival import ArchivalRecord

_DAYS_FORM = re.compile(r"([0-9]{1,6})d?")
_MAX_DAYS = 36_500


def archive(
    context: typer.Context,
    older_than: Annotated[str, typer.Option("--older-than", help="Minimum age in days since the last activity, e.g. 30d.")] = "",
    day: Annotated[str, typer.Option("--date", help="Only turns whose last activity was on this day, e.g. 2026-01-04.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is due and what is not, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Archive old turns; originals go to cold storage.

    The documents of an archived turn are compressed; it can be found, shown, cited and exported as before, and `pandora restore` brings
    its originals back. Open, halted and pinned turns and turns with an open intervention are not archived. Session narratives and user
    digests are then updated (`pandora digest`). The exit code is 1 if a turn could not be archived: it is unchanged, and an
    intervention has the reason.

    Example: pandora archive --older-than 30d --dry-run
    """
    from pandora_dagster.app.archive_service import open_archive
    from pandora_dagster.archive.archive_selection import last_due_day, select_turns
    from pandora_dagster.defs.archival.recorded_archival import ArchivalRecord

    with app_of_existing_store(context) as app:
        days = parse_days(older_than) if older_than else app.settings.archive_after_days
        record = ArchivalRecord()
        ctx = open_archive(app, after_days=days, run_id=record.run_id)
        chosen_day = _parse_date(day) if day else None
        last_day = last_due_day(app.dependencies.clock(), ctx.rules.zone, days)
        if chosen_day and chosen_day > last_day + timedelta(days=days):
            exit_with(EXIT_USAGE, f"--date {day}: in the future: expected a day up to {last_day}")
        if chosen_day and chosen_day > last_day:
            exit_with(
                EXIT_USAGE, f"--date {day}: due are days up to {last_day}, {days} days ago: expected one of them, or a lower --older-than"
            )
        selected = select_turns(ctx, days=None if chosen_day is None else {chosen_day})
        if dry_run:
            _print_selection(selected, as_json=as_json)
            return
        rows: list[ArchivedTurn] = []
        report = _archive_with_progress(app, ctx, selected, rows, record)
        levels = () if report.stopped else _update_levels(app, ctx.rules.after_days, record)
        _report_to_dagster(app, record)
        if as_json:
            _print_report_json(report, rows, levels)
        else:
            _print_report(app, report, rows, levels)
    for result in (report, *levels):
        if result.stopped:
            exit_with(EXIT_USAGE, result.stopped, result.hint)
    if report.failed or any(result.failed for result in levels):
        raise typer.Exit(EXIT_FAILED)


def restore(context: typer.Context, turn: Turn, as_json: AsJson = False) -> None:
    """Restore the originals of an archived turn, byte for byte.

    The turn is archived again after the time of a new turn; `pandora pin` prevents that.

    Example: pandora restore example:turn_000012
    """
    from pandora_dagster.app.archive_service import open_archive
    from pandora_dagster.archive.turn_restoration import restore as restore_turn
    from pandora_dagster.defs.turn.turn_run import add_partitions

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        restoration = restore_turn(key, open_archive(app))
        add_partitions(app, (key,))  # also where an earlier restoration was interrupted before it
        folder = app.turns.path(key)
    until = restoration.hold.until if restoration.hold else None
    if as_json:
        print_json(
            {
                "turn": str(key),
                "restored": restoration.was_archived,
                "state": restoration.turn.manifest.state,
                "folder": folder,
                "held_until": until,
            }
        )
    elif not restoration.was_archived:
        print_line(f"{key}: it is {restoration.turn.manifest.state}, not archived; nothing was changed")
    else:
        documents = counted(len(restoration.turn.files) + 1, "document")
        print_line(f"{key}: restored, {documents}, {restoration.turn.manifest.tokens} tokens in context.md")
        print_note(f"{display_path(folder)}; not archived {f'before {until}' if until else 'until it is unpinned'}")


def pin(context: typer.Context, turn: Turn) -> None:
    """Exclude a turn from archival until it is unpinned.

    Example: pandora pin example:turn_000012
    """
    from pandora_dagster.app.archive_service import open_archive
    from pandora_dagster.archive.turn_restoration import pin as pin_turn

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        pin_turn(key, open_archive(app))
        archived = app.turns.manifest(key).archive is not None
    print_line(f"{key}: pinned")
    if archived:
        print_note(f"it is archived; restore its originals with: pandora restore {key}")


def unpin(context: typer.Context, turn: Turn) -> None:
    """Allow the archival of a pinned or restored turn.

    Example: pandora unpin example:turn_000012
    """
    from pandora_dagster.app.archive_service import open_archive
    from pandora_dagster.archive.turn_restoration import unpin as unpin_turn

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        was_pinned = unpin_turn(key, open_archive(app))
    print_line(f"{key}: unpinned" if was_pinned else f"{key}: was not pinned")


def parse_days(text: str) -> int:
    """The days of an option such as `30d`; ends the command where the text is invalid."""
    match = _DAYS_FORM.fullmatch(text.strip())
    if not match or not 1 <= int(match.group(1)) <= _MAX_DAYS:
        exit_with(EXIT_USAGE, f"--older-than {text[:40]}: expected days from 1d to {_MAX_DAYS}d, e.g. 30d")
    return int(match.group(1))


def _parse_date(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        exit_with(EXIT_USAGE, f"--date {text[:40]}: not a day: expected one such as 2026-01-04")


def _archive_with_progress(
    app: "App", ctx: "ArchiveContext", selected: "ArchiveSelection", rows: "list[ArchivedTurn]", record: "ArchivalRecord"
) -> "ArchiveReport":
    from pandora_dagster.app.archive_service import ArchiveService
    from pandora_dagster.defs.archival.archive_assets import ASSET

    with progress_bar("archive", "turns") as advance:

        def on_row(row: "ArchivedTurn") -> None:
            rows.append(row)
            record.add_turn(row)
            advance(len(rows), len(selected.due))

        advance(0, len(selected.due))
        report = ArchiveService(app).archive(selected, ctx, on_row=on_row)
    record.finish(ASSET, report)
    return report


def _update_levels(app: "App", after_days: int, record: "ArchivalRecord") -> "tuple[LevelReport, LevelReport]":
    """Update session narratives and user digests."""
    from pandora_dagster.app.archive_service import open_levels
    from pandora_dagster.archive.session_narratives import summarize_sessions
    from pandora_dagster.archive.user_digests import digest_users
    from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES

    ctx = open_levels(app, quiet_days=after_days, run_id=record.run_id)
    narratives = app.run(summarize_sessions(ctx, on_row=record.add_level_row(NARRATIVES)))
    record.finish(NARRATIVES, narratives)
    digests = app.run(digest_users(ctx, on_row=record.add_level_row(DIGESTS)))
    record.finish(DIGESTS, digests)
    return narratives, digests


def _report_to_dagster(app: "App", record: "ArchivalRecord") -> None:
    """Record the archival as a run; a failure is reported and does not fail the archival, and the next one records its days."""
    from pandora_dagster.defs.archival.recorded_archival import report_archival

    try:
        report_archival(app, record)
    except Exception as fault:
        print_note(f"pandora: Dagster has no record of this archival: {fault}; the next `pandora archive` records its days")


def _print_selection(selected: "ArchiveSelection", *, as_json: bool) -> None:
    if as_json:
        due = [{"turn": str(d.key), "day": d.day.isoformat()} for d in selected.due]
        print_json({"due": due, "not_due": _not_due_objects(selected.not_due)})
        return
    days = sorted({d.day for d in selected.due})
    span = f", last active {days[0]} to {days[-1]}" if days else ""
    print_line(f"{counted(len(selected.due), 'turn is due', 'turns are due')}{span}; {counted(len(selected.not_due), 'is not', 'are not')}")
    if selected.due:
        print_rows(selected.due, {"Due": "key", "Day": "day"}, limit=MAX_ROWS)
    _print_not_due(selected.not_due)


def _print_report_json(report: "ArchiveReport", rows: "Sequence[ArchivedTurn]", levels: "Sequence[LevelReport]") -> None:
    document_fields = ("name", "tokens_before", "tokens_after", "facts", "facts_kept", "whole")
    fields = ("due", "documents", "compressed", "tokens_before", "tokens_after", "ratio", "facts", "facts_kept", "cold_bytes", "stopped")
    print_json(
        {
            **fields_of(report, fields),
            "counts": report.counts,
            "turns": [
                {**asdict(row), "key": str(row.key), "documents": [fields_of(d, document_fields) for d in row.documents]} for row in rows
            ],
            "not_due": _not_due_objects(report.not_due),
            **{name: level.counts for name, level in zip(("narratives", "digests"), levels, strict=False)},
        }
    )


def _print_report(app: "App", report: "ArchiveReport", rows: "Sequence[ArchivedTurn]", levels: "Sequence[LevelReport]") -> None:
    archived_rows = [row for row in rows if row.documents]
    if archived_rows:
        print_rows(
            [(row, document) for row in archived_rows for document in row.documents],
            {
                "Turn": lambda r: r[0].key,
                "Document": lambda r: r[1].name,
                "Tokens before": lambda r: r[1].tokens_before,
                "After": lambda r: r[1].tokens_after,
                "Ratio": lambda r: f"{r[1].tokens_after / r[1].tokens_before:.2f}" if r[1].tokens_before else "",
                "Facts kept": lambda r: _facts_kept(r[1]),
                "Cold object": lambda r: f"{Path(r[0].cold).name[:12]}, {r[0].size} B",
            },
            limit=MAX_ROWS,
        )
        ratio = f"{report.tokens_before} to {report.tokens_after} tokens ({report.ratio:.2f})"
        facts = f"{report.facts_kept} of {counted(report.facts, 'fact')} of {counted(report.compressed, 'compressed document')} kept"
        print_line(f"{counted(len(archived_rows), 'turn')} archived, {counted(report.documents, 'document')}: {ratio}; {facts}")
        print_line(f"originals: {counted(report.cold_bytes, 'byte')} in {display_path(str(Path(app.settings.root, 'cold')))}")
    counts = {outcome.value: number for outcome, number in report.counts.items()}
    for outcome in ("finished", "kept", "failed"):
        if outcome in counts:
            print_line(f"{counted(counts[outcome], 'turn')} {outcome}")
    if not report.due:
        print_line("nothing is due")
    for row in report.failed:
        print_note(f"pandora: {row.key}: {row.reason} (intervention {row.intervention})")
    for name, level in zip(("narratives", "digests"), levels, strict=False):
        if changed := ", ".join(f"{number} {outcome}" for outcome, number in level.counts.items() if outcome != "unchanged"):
            print_line(f"{name}: {changed} (pandora digest)")
        for failed in level.failed:
            print_note(f"pandora: {failed.subject}: {failed.reason} (intervention {failed.intervention})")
    _print_not_due(report.not_due)


def _facts_kept(document: "ArchivedDocument") -> str:
    return "whole" if document.whole else f"{document.facts_kept} of {document.facts}"


def _print_not_due(not_due: "Sequence[NotDueTurn]") -> None:
    print_notes([f"{turn.key} is not archived: {turn.reason}" for turn in not_due])


def _not_due_objects(not_due: "Sequence[NotDueTurn]") -> list[dict[str, str]]:
    return [{"turn": str(n.key), "day": n.day.isoformat() if n.day else "", "kept": n.cause.value, "reason": n.reason} for n in not_due]
