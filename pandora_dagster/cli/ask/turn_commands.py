"""Commands for turns: ask, chat, resume, turns, show."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import app_of, app_of_existing_store
from pandora_dagster.cli.ask.answer_printer import AnswerPrinter
from pandora_dagster.cli.output import (
    EXIT_HALTED,
    EXIT_WRONG,
    display_path,
    exit_with,
    print_json,
    print_line,
    print_markdown,
    print_note,
    print_table,
)
from pandora_dagster.errors import DocumentError, StoreError

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.contracts.interventions import Intervention
    from pandora_dagster.contracts.ports.record_storage import CallTotals
    from pandora_dagster.phases.core.phase_report import PhaseReport
    from pandora_dagster.phases.flow.turn_answer import TurnAnswer

User = Annotated[str, typer.Option("--user", "-u", help="Whose turn it is; default PANDORA_USER.")]
Session = Annotated[str, typer.Option("--session", "-s", help="The conversation it belongs to; default: one a day.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
NoStream = Annotated[bool, typer.Option("--no-stream", help="The answer once it is whole, not while it is written.")]

STATES = ("open", "halted", "clarify", "saved", "archived", "abandoned")


def register(app: typer.Typer) -> None:
    app.command("ask")(ask)
    app.command("chat")(chat)
    app.command("resume")(resume)
    app.command("turns")(turns)
    app.command("show")(show)


def ask(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The question or request.")],
    user: User = "",
    session: Session = "",
    mode: Annotated[str, typer.Option(help="chat or code.")] = "chat",
    as_json: AsJson = False,
    no_stream: NoStream = False,
) -> None:
    """Ask something: one turn through the Dagster graph.

    The answer is shown while it is written. A draft that a check turns down is marked as withdrawn; sources come at the end.

    Example: pandora ask "Which desk did we order, and what did it cost?" --user example
    """
    with app_of(context) as app:
        key = app.start(text, user=user, session=session, mode=mode)
        run_and_show(app, key, as_json=as_json, stream=not no_stream)


def resume(
    context: typer.Context,
    turn: Annotated[str, typer.Argument(help="<user>:turn_000811, or the short form where it is unique.")],
    as_json: AsJson = False,
    no_stream: NoStream = False,
) -> None:
    """Go on with a halted or cut-off turn.

    What is finished stays; the phases that follow run.

    Example: pandora resume example:turn_000012
    """
    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        if not app.pending_phases(key):
            exit_with(EXIT_WRONG, f"{key}: nothing is left to do; the turn is {app.turns.manifest(key).state}")
        run_and_show(app, key, as_json=as_json, stream=not no_stream, resumed=True)


def chat(context: typer.Context, user: User = "", session: Session = "", no_stream: NoStream = False) -> None:
    """Talk, turn after turn, in one warm process.

    An empty line or the end of input ends it. Exit code 1 where a turn halted.

    Example: pandora chat --user example
    """
    from pandora_dagster.defs.turn.turn_run import report_turn

    halted = False
    with app_of(context) as app:
        session = session or app.new_session()
        print_note(f"session {session}, runtime {app.dependencies.runtime}; an empty line ends it")
        while text := _read_line():
            key = app.start(text, user=user, session=session, mode="chat")
            reports: list[PhaseReport] = []
            speaking = AnswerPrinter()
            heard = app if no_stream else app.with_listener(speaking)
            last = heard.run_turn(
                key, on_report=lambda report, got=reports, speaking=speaking: _print_when_saved(app, report, got, speaking)
            )
            report_turn(app, key, reports)
            if last.halt:
                halted = True
                _print_halt(last.halt)
    if halted:
        raise typer.Exit(EXIT_HALTED)


def turns(
    context: typer.Context,
    user: Annotated[str, typer.Option("--user", "-u", help="Only this person's.")] = "",
    state: Annotated[str, typer.Option(help="Only turns in this state: open, halted, clarify, saved, archived or abandoned.")] = "",
    limit: Annotated[int, typer.Option(help="The newest N in the table; --json has no limit.", min=1)] = 30,
    as_json: AsJson = False,
) -> None:
    """List turns, oldest first.

    A turn that a crash cut off is `open`; `pandora resume` goes on with it.

    Example: pandora turns --user example --state saved
    """
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.phases.core.turn_indexing import turn_rows

    if state and state not in STATES:
        exit_with(EXIT_WRONG, f"--state {state}: expected one of {', '.join(STATES)}")
    with app_of_existing_store(context) as app:
        rows = [r for r in turn_rows(app.dependencies, user_id(user) if user else None) if not state or r.state == state]
    if as_json:
        fields = ("turn_id", "user_id", "session_id", "state", "created_at", "summary")
        print_json([{name: str(getattr(row, name)) for name in fields} for row in rows])
        return
    shown = rows[-limit:]
    print_table(
        ("Turn", "State", "Created", "Session", "Summary"),
        [(f"{r.user_id}:{r.turn_id}", r.state.value, r.created_at, r.session_id, r.summary) for r in shown],
    )
    if len(shown) < len(rows):
        print_note(f"{len(rows) - len(shown)} older turns are not shown; --limit shows more")


def show(
    context: typer.Context,
    turn: Annotated[str, typer.Argument(help="<user>:turn_000811, or the short form where it is unique.")],
    section: Annotated[int | None, typer.Option("--section", "-n", min=0, max=6, help="Only this section.")] = None,
    revision: Annotated[int | None, typer.Option(min=0, help="A revision; default the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a turn's context.md, or one section of it, and what its model calls took.

    With --json, its manifest, its sections and the sums over its calls (null where their index cannot be read).

    Example: pandora show example:turn_000012 --section 5
    """
    from pandora_dagster.app import open_archive
    from pandora_dagster.documents.sections import ContextDocument

    with app_of_existing_store(context) as app:
        key = app.turns.resolve(turn)
        found = app.turns.load(key, revision=revision)
        document = ContextDocument.parse(found.context)
        folder = app.turns.path(key, revision=found.manifest.revision)
        spent = _call_totals(app, key, found.manifest.revision)
        gone = open_archive(app).cold.tombstone(found.manifest.archive) if found.manifest.archive else None
    if section is not None and document.section(section) is None:
        exit_with(EXIT_WRONG, f"{key}: section {section}: not there; expected one of {', '.join(str(s.number) for s in document.sections)}")
    chosen = [s.number for s in document.sections if section in (None, s.number)]
    if as_json:
        sections = {str(n): document.query() if n == 0 else document.body(n) for n in chosen}
        manifest = json.loads(found.manifest.model_dump_json())
        print_json({"turn": str(key), "folder": folder, "manifest": manifest, "sections": sections, "calls": spent and asdict(spent)})
    elif section is None:
        print_markdown(found.context)
        print_note(folder)
        if archive := found.manifest.archive:
            originals = f"its originals were {gone.description}" if gone else f"originals in {archive.cold}: pandora restore {key}"
            print_note(f"archived {archive.archived_at}, documents compressed; {originals}")
        if spent:
            failed = f", {spent.failed} failed" if spent.failed else ""
            cost = f", cost {spent.cost:.4f}" if spent.cost else ""
            print_note(f"{spent.calls} calls{failed}, {spent.used_tokens} tokens, {spent.latency_ms / 1000:.1f} s{cost}")
            if spent.alarm:
                print_note(f"pandora: {key}: {spent.alarm}")
    else:
        print_markdown(document.query() if section == 0 else document.body(section))


def _delete_expired(app: "App") -> None:
    """After the answer: what fails here takes nothing from it."""
    try:
        app.delete_expired()
    except (StoreError, DocumentError) as error:
        print_note(f"pandora: {error.with_hint}")


def _call_totals(app: "App", key: "TurnKey", revision: int) -> "CallTotals | None":
    try:
        return app.calls.totals(key, revision)
    except StoreError as error:
        print_note(f"pandora: {error.with_hint}")
        return None


def run_and_show(app: "App", key: "TurnKey", *, as_json: bool, stream: bool = True, resumed: bool = False) -> None:
    """Run what is left and tell what came of it. Exit code 1 where the turn halted; a resumed one also where anything is left."""
    from pandora_dagster.defs.turn.turn_run import run_turn

    seen: list[PhaseReport] = []
    speaking = AnswerPrinter()

    def tell(report: "PhaseReport") -> None:
        _print_notices(report)
        if not as_json:
            _print_when_saved(app, report, seen, speaking)

    run_turn(app.with_listener(speaking) if stream and not as_json else app, key, on_report=tell)
    result = app.answer_of(key)
    if as_json:
        print_json(_as_object(result))
    _delete_expired(app)
    if result.intervention and result.state == "halted":
        _print_halt(app.interventions.show(result.intervention))
        raise typer.Exit(EXIT_HALTED)
    if result.intervention:
        _print_missing_summary(app, key, app.interventions.show(result.intervention))
        if resumed:
            raise typer.Exit(EXIT_HALTED)
    elif resumed and seen and not any(report.has_answer for report in seen):
        print_note(f"{key}  {result.state}: {', '.join(report.phase for report in seen)} finished")


def _print_missing_summary(app: "App", key: "TurnKey", halt: "Intervention") -> None:
    """The answer stands (DECISIONS 16); what is missing, why, and how to go on."""
    _print_halt(halt)
    left = app.pending_phases(key)
    told = "its summary is missing" if "turn_summary" in left or not left else f"left to do: {', '.join(left)}"
    print_note(f"  the turn is {app.turns.manifest(key).state}, {told}")
    if left:
        print_note(f"  go on with: pandora resume {key}")


def _print_notices(report: "PhaseReport") -> None:
    """How many of the person's notes RETRIEVAL could not be offered; the phase's facts and the doctor name each."""
    if notices := report.facts.get("notices"):
        print_note(f"pandora: {len(notices)} of the notes of {report.key.user} could not be read: pandora doctor names them")


def _print_halt(halt: "Intervention") -> None:
    print_note(f"pandora: HALT at {halt.phase}: {halt.message}")
    print_note(f"  intervention {halt.id}. {halt.hint}".rstrip())


def _print_when_saved(app: "App", report: "PhaseReport", seen: "list[PhaseReport]", speaking: AnswerPrinter) -> None:
    """The answer comes first: whole as soon as the turn is saved, before summary and index (DECISIONS 16)."""
    seen.append(report)
    if report.halt:
        speaking.on_withdrawal("the turn halted")
    if not report.has_answer:
        return
    result = app.answer_of(report.key)
    speaking.finish(result.response)
    for cited in result.citations:
        print_line(f"  [{cited['label']}] {cited['turn_id'] or 'memory'}  {display_path(cited['path'])}")
    print_note(f"{report.key}  {report.manifest.state}  runtime {report.manifest.runtime}")


def _as_object(result: "TurnAnswer") -> dict[str, Any]:
    return {
        "turn_id": result.key.turn_id,
        "user_id": result.key.user,
        "state": result.state.value,
        "response": result.response,
        "citations": list(result.citations),
        "intervention": result.intervention,
    }


def _read_line() -> str:
    """A line from the person; the prompt is shown to people only, so that piped answers stay plain."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
