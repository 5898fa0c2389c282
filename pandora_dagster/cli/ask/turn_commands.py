"""Commands for turns: ask, resume, turns, show."""

from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, OnlyUser, Turn, User, app_of, app_of_existing_store
from pandora_dagster.cli.ask.answer_printing import (
    AnswerPrinter,
    ProgressLine,
    print_halt,
    print_halt_and_retry,
    print_notices,
    print_when_saved,
)
from pandora_dagster.cli.ask.chat_command import NoStream, Session
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    exit_with,
    fields_of,
    print_json,
    print_markdown,
    print_note,
    print_notes,
    print_rows,
)
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.contracts.interventions import Intervention
    from pandora_dagster.contracts.ports.record_storage import CallTotals
    from pandora_dagster.phases.core.phase_report import PhaseReport

STATES = ("open", "halted", "clarify", "saved", "archived", "abandoned")


def ask(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The question or request.")],
    user: User = "",
    session: Session = "",
    mode: Annotated[str, typer.Option(help="chat or code.")] = "chat",
    as_json: AsJson = False,
    no_stream: NoStream = False,
) -> None:
    """Ask a question: run one turn and record it in Dagster.

    The answer is printed while it is written, then its sources. A draft that a check rejects is marked as withdrawn.

    Example: pandora ask "Which desk did we order?" --user example
    """
    progress = ProgressLine()
    progress.show("opening the store")
    with app_of(context) as app:
        key = app.start(text, user=user, session=session, mode=mode)
        run_and_show(app, key, as_json=as_json, stream=not no_stream, progress=progress)


def resume(context: typer.Context, turn: Turn, as_json: AsJson = False, no_stream: NoStream = False) -> None:
    """Resume a halted or interrupted turn.

    Finished phases are kept; the remaining phases run.

    Example: pandora resume example:turn_000012
    """
    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        require_pending(app, key)
        run_and_show(app, key, as_json=as_json, stream=not no_stream, resumed=True)


def turns(
    context: typer.Context,
    user: OnlyUser = "",
    state: Annotated[str, typer.Option(help=f"Only turns in this state: {', '.join(STATES[:-1])} or {STATES[-1]}.")] = "",
    limit: Annotated[int, typer.Option(help="Number of newest turns in the table; --json has no limit.", min=1)] = 30,
    as_json: AsJson = False,
) -> None:
    """List turns, oldest first.

    A turn that a crash interrupted is `open`; `pandora resume` completes it.

    Example: pandora turns --user example --state saved
    """
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.phases.core.turn_indexing import turn_rows

    if state and state not in STATES:
        exit_with(EXIT_USAGE, f"--state {state}: expected one of {', '.join(STATES)}")
    with app_of_existing_store(context) as app:
        faults: list[str] = []
        shown_user = user_id(user) if user else None
        listed = turn_rows(app.dependencies, shown_user, on_fault=lambda fault: faults.append(f"pandora: left out: {fault}"))
        rows = [row for row in listed if not state or row.state == state]
    print_notes(faults)
    if as_json:
        fields = ("turn_id", "user_id", "session_id", "state", "created_at", "summary")
        print_json([{name: str(getattr(row, name)) for name in fields} for row in rows])
        return
    print_rows(
        rows[-limit:],
        {
            "Turn": lambda r: f"{r.user_id}:{r.turn_id}",
            "State": lambda r: r.state.value,
            "Created": lambda row: row.created_at[:16].replace("T", " "),
            "Session": "session_id",
            "Summary": "summary",
        },
        empty=f"no turn{f' of {user}' if user else ''} is {f'in the state {state}' if state else 'stored'}",
    )
    if limit < len(rows):
        print_note(f"{counted(len(rows) - limit, 'older turn is', 'older turns are')} not shown; --limit shows more")


def show(
    context: typer.Context,
    turn: Turn,
    section: Annotated[int | None, typer.Option("--section", "-n", min=0, max=6, help="Only this section.")] = None,
    revision: Annotated[int | None, typer.Option(min=0, help="Revision number; default: the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a turn's context.md and the totals of its calls.

    Calls that began and have no end are named. With --json: its manifest, its sections, the totals of its model calls (null if the call
    index cannot be read), and its calls without end.

    Example: pandora show example:turn_000012 --section 5
    """
    from pandora_dagster.app.archive_service import open_archive
    from pandora_dagster.documents.sections import ContextDocument

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        loaded = app.turns.load(key, revision=revision)
        document = ContextDocument.parse(loaded.context)
        folder = app.turns.path(key, revision=loaded.manifest.revision)
        totals = _call_totals(app, key, loaded.manifest.revision)
        unfinished = [call for call in app.calls.unfinished(key.user) if call.turn_id == key.turn_id]
        tombstone = open_archive(app).cold.tombstone(loaded.manifest.archive) if loaded.manifest.archive else None
    numbers = [s.number for s in document.sections]
    if section is not None and section not in numbers:
        exit_with(EXIT_USAGE, f"{key}: section {section}: not there: expected one of {', '.join(map(str, numbers))}")
    sections = {str(n): document.query() if n == 0 else document.body(n) for n in numbers if section in (None, n)}
    if as_json:
        print_json(
            {
                "turn": str(key),
                "folder": folder,
                "manifest": loaded.manifest,
                "sections": sections,
                "calls": totals,
                "unfinished_calls": unfinished,
            }
        )
    elif section is not None:
        print_markdown(sections[str(section)])
    else:
        print_markdown(loaded.context)
        print_note(folder)
        if archive := loaded.manifest.archive:
            originals = (
                f"its originals were {tombstone.description}" if tombstone else f"originals in {archive.cold}: pandora restore {key}"
            )
            print_note(f"archived {archive.archived_at}, documents compressed; {originals}")
        if totals:
            _print_call_totals(key, totals)
        if run := loaded.manifest.tool_run:
            print_note(
                f"the tool {run.tool} was begun by {run.holder} and has no result: it runs until {run.until}, or its process was killed"
            )
        for call in unfinished:
            print_note(
                f"the call {call.recipe} of {call.phase} began at {call.timestamp} and has no end: it runs, or its process was killed"
            )


def _call_totals(app: "App", key: "TurnKey", revision: int) -> "CallTotals | None":
    try:
        return app.calls.totals(key, revision)
    except StoreError as error:
        print_note(f"pandora: {error.with_hint}")
        return None


def _print_call_totals(key: "TurnKey", totals: "CallTotals") -> None:
    failed = f", {totals.failed} failed" if totals.failed else ""
    cost = f", cost {totals.cost:.4f}" if totals.cost else ""
    print_note(f"{counted(totals.calls, 'call')}{failed}, {totals.used_tokens} tokens, {totals.latency_ms / 1000:.1f} s{cost}")
    if totals.alarm:
        print_note(f"pandora: {key}: {totals.alarm}")


def require_pending(app: "App", key: "TurnKey") -> None:
    """End the command where no phase of the turn is left to run."""
    if not app.pending_phases(key):
        exit_with(EXIT_USAGE, f"{key}: nothing is left to do; the turn is {app.turns.manifest(key).state}")


def run_and_show(
    app: "App", key: "TurnKey", *, as_json: bool, stream: bool = True, resumed: bool = False, progress: ProgressLine | None = None
) -> None:
    """Run the remaining phases and print the result. Exit code 1 if the turn halted, and for a resumed turn also if a phase is left."""
    from pandora_dagster.cli.ask.write_question import run_with_questions

    reports: list[PhaseReport] = []
    printer = AnswerPrinter(progress)

    def on_report(report: "PhaseReport") -> None:
        printer.progress.clear()
        print_notices(report)
        if as_json:
            printer.progress.show(f"{report.phase} finished")
        else:
            print_when_saved(app, report, reports, printer)

    printer.progress.show("the turn begins")
    try:
        runner = app.with_listener(printer) if stream and not as_json else app
        last_report = run_with_questions(runner, key, on_report=on_report, asks=not as_json)
    finally:
        printer.progress.clear()
    result = app.answer_of(key, last_report.turn)
    if as_json:
        fields = fields_of(result, ("state", "response", "citations", "intervention"))
        print_json({"turn_id": result.key.turn_id, "user_id": result.key.user, **fields})
    _delete_expired(app)
    if result.intervention and result.state == "halted":
        print_halt_and_retry(app.interventions.show(result.intervention))
        raise typer.Exit(EXIT_FAILED)
    if result.intervention:
        _print_incomplete(app, key, app.interventions.show(result.intervention))
        if resumed:
            raise typer.Exit(EXIT_FAILED)
    elif resumed and reports and not any(report.has_answer for report in reports):
        print_note(f"{key}  {result.state}: {', '.join(report.phase for report in reports)} finished")


def _delete_expired(app: "App") -> None:
    """Delete expired records after the answer; a failure is reported and does not fail the turn."""
    try:
        app.delete_expired()
    except (StoreError, DocumentError) as error:
        print_note(f"pandora: {error.with_hint}")


def _print_incomplete(app: "App", key: "TurnKey", halt: "Intervention") -> None:
    """Report what a turn with a saved answer lacks, why, and how to complete it."""
    from pandora_dagster.phases.flow.phase_spec import PhaseRole
    from pandora_dagster.phases.flow.phase_table import phase_in_role

    print_halt(halt)
    pending = app.pending_phases(key)
    lacks_summary = not pending or phase_in_role(PhaseRole.SUMMARY) in pending
    missing = "its summary is missing" if lacks_summary else f"left to do: {', '.join(pending)}"
    print_note(f"  the turn is {app.turns.manifest(key).state}, {missing}")
    if pending:
        print_note(f"  go on with: pandora resume {key}")
