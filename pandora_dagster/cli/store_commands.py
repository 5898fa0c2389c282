"""Commands for the whole store: demo, doctor, calls, index, forget."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from shutil import which
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from pandora_dagster.cli.app_context import AsJson, OnlyUser, StoreOptions, Yes, app_of, app_of_existing_store, settings_of
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    display_path,
    exit_with,
    fields_of,
    print_json,
    print_line,
    print_note,
    print_rows,
    print_table,
)
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.contracts.retention import ErasureReport, UserDataCounts
    from pandora_dagster.phases.core.phase_report import PhaseReport

_PROGRESS_STEP = 1_000
"""Turns between two lines of progress."""
EXAMPLE_USER = "example"
EXAMPLE_QUERY = "Which chair did we order, and what did it cost?"


def demo(context: typer.Context) -> None:
    """Import the shipped example and run one turn over it.

    The turn runs on the embedded runtime, with no server, no network and no model, and is recorded as a Dagster run.

    Example: pandora demo
    """
    from pandora_dagster.cli.ask.turn_record import run_and_record
    from pandora_dagster.defs.turn.turn_run import report_import

    with app_of(context, embedded=True) as app:
        report = app.transfer.import_example()
        report_import(app, report, source="the shipped example")
        known = counted(report.unchanged, "conversation was", "conversations were")
        print_line(f"Example history: {counted(report.turns, 'turn')} of user '{EXAMPLE_USER}' indexed, {known} there already.")
        key = app.start(EXAMPLE_QUERY, user=EXAMPLE_USER, session="demo", mode="chat")
        print_line(f"Live turn {key} on the {app.dependencies.runtime} runtime: {EXAMPLE_QUERY}\n")
        reports: list[PhaseReport] = []
        last_report = run_and_record(app, key, on_report=reports.append)
        _print_phases(reports)
        answer = app.answer_of(key, last_report.turn)
        if answer.state == "halted":
            exit_with(EXIT_FAILED, f"the turn halted; see: pandora interventions show {answer.intervention}")
        print_line(f"\nAnswer\n{indent(answer.response, '  ')}\n\nCitations")
        for cited in answer.citations:
            print_line(f"  [{cited['label']}] {display_path(cited['path'])}")
        print_line(f"\nDocuments\n  {display_path(app.turns.path(key))}\n\nNext")
        for command in _next_commands(str(key)):
            print_line(f"  {_command_prefix(context)} {command}")


def _print_phases(reports: "list[PhaseReport]") -> None:
    """Print the phases as a table of at most 80 columns, and the names of the gates that failed."""
    rows: list[tuple[object, ...]] = []
    for report in reports:
        failed = [v.gate for v in report.verdicts if not v.passed]
        gates = f"{len(failed)} FAILED" if failed else f"{len(report.verdicts)} passed" if report.verdicts else ""
        if not report.calls:
            rows.append((report.phase, "", "", "", gates))
        for position, call in enumerate(report.calls):
            is_last = position == len(report.calls) - 1
            tokens = f"{call.tokens.total}/{call.tokens.budget}"
            rows.append((report.phase if position == 0 else "", call.recipe, call.model_layer.value, tokens, gates if is_last else ""))
    print_table(("Phase", "Recipe", "Layer", "Tokens/budget", "Gates"), rows)
    for report in reports:
        for verdict in report.verdicts:
            if not verdict.passed:
                print_note(f"{report.phase}: {verdict.gate} FAILED: {verdict.reason}")


def _next_commands(turn: str) -> tuple[str, ...]:
    return (
        f"show {turn}",
        f'ask "What happened with the scratched desk?" --user {EXAMPLE_USER}',
        f"turns --user {EXAMPLE_USER}",
        "ui",
    )


def _command_prefix(context: typer.Context) -> str:
    """The start of a command for the same store: the name of the program where the shell finds it, else its path, and --root."""
    options: StoreOptions = context.obj or StoreOptions()
    program = Path(sys.argv[0])
    name = "pandora" if which("pandora") or program.name != "pandora" else os.path.relpath(program)
    return f"{name} --root {quote(options.root)}" if options.root else name


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check every part of the installation and the store.

    A part that does not work is shown with the remedy, and the exit code is 1.

    Example: pandora doctor
    """
    from pandora_dagster.app.web.browser_health import browser_findings
    from pandora_dagster.defs.missing_records import missing_record_findings

    with app_of(context) as app:
        findings = (*app.run(app.health.check()), *browser_findings(app.settings), *missing_record_findings(app))
    if as_json:
        print_json([{"part": f.part, "ok": f.ok, "says": f.says, "remedy": f.remedy} for f in findings])
    else:
        print_rows(findings, {"Part": "part", "": lambda f: "ok" if f.ok else "NOT OK", "Finding": "says", "Remedy": "remedy"})
        print_line(f"Python {sys.version.split()[0]}")
    if not all(f.ok for f in findings):
        raise typer.Exit(EXIT_FAILED)


def calls(
    context: typer.Context,
    by: Annotated[str, typer.Option(help="Group by layer, recipe, day, phase, model, user or turn.")] = "layer",
    user: OnlyUser = "",
    since: Annotated[str, typer.Option(help="Only from this day on, e.g. 2026-01-04.")] = "",
    unfinished: Annotated[bool, typer.Option("--unfinished", help="List the calls that began and have no end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show totals of model calls: tokens, time, retries, cost.

    Failed calls and every attempt of a call are included. Costs come from the prices in the runtime file. A call without end runs now, or
    its process was killed.

    Example: pandora calls --by recipe --since 2026-01-04
    """
    from datetime import date

    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.contracts.ports.record_storage import SumBy

    groupings = {name: name for name in get_args(SumBy)}  # gives a checked name the type SumBy
    if by not in groupings:
        exit_with(EXIT_USAGE, f"--by {by}: expected one of {', '.join(groupings)}")
    try:
        day = date.fromisoformat(since).isoformat() if since else ""
    except ValueError:
        exit_with(EXIT_USAGE, f"--since {since}: expected a day such as 2026-01-04")
    with app_of(context) as app:
        if unfinished:
            left = [call for call in app.calls.unfinished(user_id(user) if user else None) if call.timestamp >= day]
            columns = {"Began": "timestamp", "User": "user_id", "Turn": "turn_id", "Phase": "phase", "Recipe": "recipe", "Call": "call_id"}
            print_rows(left, columns, as_json=as_json, empty="every call that began has an end")
            return
        rows = app.calls.sums(groupings[by], user=user_id(user) if user else None, since=day)
    if as_json:
        print_json([{by: group, **asdict(totals)} for group, totals in rows])
        return
    print_rows(
        rows,
        {
            by.capitalize(): lambda r: r[0],
            "Calls": lambda r: r[1].calls,
            "Failed": lambda r: r[1].failed,
            "Retries": lambda r: r[1].retries,
            "Tokens": lambda r: r[1].used_tokens,
            "Cached": lambda r: r[1].cached_tokens,
            "Output": lambda r: r[1].output_tokens,
            "Seconds": lambda r: f"{r[1].latency_ms / 1_000:.1f}",
            "Queued": lambda r: f"{r[1].queue_ms / 1_000:.1f}",
            "Cost": lambda r: f"{r[1].cost:.4f}",
        },
        empty="no call is recorded",
    )


def rebuild(context: typer.Context) -> None:
    """Rebuild the indexes from documents and records.

    Turns and their lineage are read from the documents, calls, research and visits from their records. A damaged index file is kept under
    another name. Dagster gets partitions and runs for turns and archived days of which it has none. A turn whose documents cannot be read
    is reported, the others are indexed, and the exit code is 1.

    Example: pandora index rebuild
    """
    from pandora_dagster.app.index_service import CALLS, LINEAGE, SOURCES, VECTORS
    from pandora_dagster.defs.missing_records import record_missing
    from pandora_dagster.defs.turn.turn_run import add_partitions

    with app_of_existing_store(context) as app:
        report = app.indexes.rebuild(progress=lambda done: print_note(counted(done, "turn")) if done % _PROGRESS_STEP == 0 else None)
        add_partitions(app, app.turns.keys())
        recorded = record_missing(app)
    rows = report.rows
    documents = f"{counted(report.turns, 'turn')}, {counted(rows[CALLS], 'call')} and {counted(rows[SOURCES], 'source')}"
    print_line(f"{documents} indexed; {counted(rows[LINEAGE], 'link')} of lineage")
    if rows.get(VECTORS):
        print_line(f"{counted(rows[VECTORS], 'vector')} of messages")
    if recorded:
        print_line(f"{recorded} recorded in Dagster")
    for damaged_file in report.damaged_files:
        print_note(f"the damaged index is kept as {damaged_file}")
    for fault in (*report.faults, *report.broken_lines):
        print_note(f"pandora: {fault}")
    if report.faults:
        raise typer.Exit(EXIT_FAILED)


def verify(context: typer.Context, as_json: AsJson = False) -> None:
    """Compare the indexes with the documents.

    It checks turns, calls, sources and lineage, and prints one line for each difference. The exit code is 1 if there is one.

    Example: pandora index verify
    """
    with app_of_existing_store(context) as app:
        differences = app.indexes.verify()
    if as_json:
        print_json({"differences": list(differences)})
    else:
        for difference in differences:
            print_line(difference)
        print_line(f"{len(differences)} differences" if differences else "indexes and documents agree")
    if differences:
        raise typer.Exit(EXIT_FAILED)


def forget(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="Id of the user to erase.")],
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be erased, and erase nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a user from the store and Dagster; search for traces.

    It erases turns, sessions, memory, research, stored prompt packs, originals in cold storage, index rows, interventions, lines of batches
    and logs, and Dagster's partitions, runs and events. Every file of the store and of Dagster's storage is then searched for texts that
    only this user's documents had. The exit code is 1 if one was found; its place is printed, not its text. The same command completes an
    interrupted erasure; until then, no turn of the user can start.

    Example: pandora forget ann --dry-run
    """
    from pandora_dagster.app.adapters.erasure_adapters import open_erasure
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.defs.run_records import open_run_eraser

    settings = settings_of(context)
    owner = user_id(user)
    if not settings.root.is_dir():
        exit_with(EXIT_USAGE, f"{settings.root}: no store there: expected the folder of a store (--root or PANDORA_ROOT)")
    erasure = open_erasure(settings, open_run_eraser(settings), on_step=lambda step: print_note(f"erasing {owner}: {step}"))
    user_data = erasure.find(owner)
    if not user_data.has_data:
        exit_with(EXIT_USAGE, f"user {owner}: no data in this store: expected a user that `pandora turns` lists")
    if not (as_json and (yes or dry_run)):
        _print_counts(user_data)
    if dry_run:
        if as_json:
            print_json({"user": owner, "dry_run": True, "found": dict(user_data.counts), "notices": list(user_data.notices)})
        return
    if not yes and not typer.confirm(f"Erase {owner} for good?", err=True):
        exit_with(EXIT_USAGE, "nothing was erased")
    erased = erasure.erase(owner)
    _print_proof(erased, as_json=as_json)
    if not erased.proof.is_clean:
        raise typer.Exit(EXIT_FAILED)


def _print_counts(user_data: "UserDataCounts") -> None:
    print_table(("What", "How many"), [(name.replace("_", " "), count) for name, count in user_data.counts.items() if count])
    for notice in user_data.notices:
        print_note(notice)


def _print_proof(erased: "ErasureReport", *, as_json: bool) -> None:
    proof = erased.proof
    for notice in erased.notices:
        print_note(notice)
    if as_json:
        searched = fields_of(proof, ("files", "bytes_read", "facts", "facts_in_documents", "hits"))
        print_json({"user": erased.found.user, "found": dict(erased.found.counts), "proof": searched})
        return
    facts = f"{counted(proof.facts, 'fact')} that only {erased.found.user} had (of {proof.facts_in_documents})"
    searched = f"{counted(proof.files, 'file')} searched, {counted(proof.bytes_read, 'byte')}"
    print_line(f"{searched}, for the id and {facts}: {counted(len(proof.hits), 'hit')}")
    for hit in proof.hits:
        print_note(f"pandora: {hit}")
    if not proof.facts_in_documents:
        print_note("the documents were erased before: only the id could be searched for")
