"""Commands for turns: ask, chat, resume, turns, show."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.opened import opened, stored
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, note, place, say, say_json, say_markdown, say_table, stop
from pandora_dagster.cli.speaking import Speaking
from pandora_dagster.errors import DocumentError, StoreError

if TYPE_CHECKING:
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.contracts.interventions import Intervention
    from pandora_dagster.phases.answers import Answered
    from pandora_dagster.phases.report import PhaseReport
    from pandora_dagster.stores.call_index import CallTotals
    from pandora_dagster.wiring import House

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
    with opened(context) as house:
        key = house.start(text, user=user, session=session, mode=mode)
        run_and_show(house, key, as_json=as_json, stream=not no_stream)


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
    with stored(context) as house:
        key = house.turns.resolve(turn)
        if not house.left_to_do(key):
            stop(EXIT_WRONG, f"{key}: nothing is left to do; the turn is {house.turns.manifest(key).state}")
        run_and_show(house, key, as_json=as_json, stream=not no_stream, resumed=True)


def chat(context: typer.Context, user: User = "", session: Session = "", no_stream: NoStream = False) -> None:
    """Talk, turn after turn, in one warm process.

    An empty line or the end of input ends it. Exit code 1 where a turn halted.

    Example: pandora chat --user example
    """
    from pandora_dagster.defs.run import report_turn

    halted = False
    with opened(context) as house:
        session = session or house.new_session()
        note(f"session {session}, runtime {house.kit.runtime}; an empty line ends it")
        while text := _typed():
            key = house.start(text, user=user, session=session, mode="chat")
            reports: list[PhaseReport] = []
            speaking = Speaking()
            heard = house if no_stream else house.listened_by(speaking)
            last = heard.run_turn(
                key, on_report=lambda report, got=reports, speaking=speaking: _shown_when_saved(house, report, got, speaking)
            )
            report_turn(house, key, reports)
            if last.halt:
                halted = True
                _tell_halt(last.halt)
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
    from pandora_dagster.phases.listing import turn_rows

    if state and state not in STATES:
        stop(EXIT_WRONG, f"--state {state}: expected one of {', '.join(STATES)}")
    with stored(context) as house:
        rows = [r for r in turn_rows(house.kit, user_id(user) if user else None) if not state or r.state == state]
    if as_json:
        fields = ("turn_id", "user_id", "session_id", "state", "created_at", "summary")
        say_json([{name: str(getattr(row, name)) for name in fields} for row in rows])
        return
    shown = rows[-limit:]
    say_table(
        ("Turn", "State", "Created", "Session", "Summary"),
        [(f"{r.user_id}:{r.turn_id}", r.state.value, r.created_at, r.session_id, r.summary) for r in shown],
    )
    if len(shown) < len(rows):
        note(f"{len(rows) - len(shown)} older turns are not shown; --limit shows more")


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
    from pandora_dagster.text.sections import ContextDocument
    from pandora_dagster.wiring import open_archive

    with stored(context) as house:
        key = house.turns.resolve(turn)
        found = house.turns.load(key, revision=revision)
        document = ContextDocument.parse(found.context)
        folder = house.turns.path(key, revision=found.manifest.revision)
        spent = _spent(house, key, found.manifest.revision)
        gone = open_archive(house).cold.tombstone(found.manifest.archive) if found.manifest.archive else None
    if section is not None and document.section(section) is None:
        stop(EXIT_WRONG, f"{key}: section {section}: not there; expected one of {', '.join(str(s.number) for s in document.sections)}")
    chosen = [s.number for s in document.sections if section in (None, s.number)]
    if as_json:
        sections = {str(n): document.query() if n == 0 else document.body(n) for n in chosen}
        manifest = json.loads(found.manifest.model_dump_json())
        say_json({"turn": str(key), "folder": folder, "manifest": manifest, "sections": sections, "calls": spent and asdict(spent)})
    elif section is None:
        say_markdown(found.context)
        note(folder)
        if archive := found.manifest.archive:
            originals = f"its originals were {gone.said}" if gone else f"originals in {archive.cold}: pandora restore {key}"
            note(f"archived {archive.archived_at}, documents compressed; {originals}")
        if spent:
            failed = f", {spent.failed} failed" if spent.failed else ""
            cost = f", cost {spent.cost:.4f}" if spent.cost else ""
            note(f"{spent.calls} calls{failed}, {spent.used_tokens} tokens, {spent.latency_ms / 1000:.1f} s{cost}")
            if spent.alarm:
                note(f"pandora: {key}: {spent.alarm}")
    else:
        say_markdown(document.query() if section == 0 else document.body(section))


def _tidy(house: "House") -> None:
    """After the answer: what fails here takes nothing from it."""
    try:
        house.tidy()
    except (StoreError, DocumentError) as error:
        note(f"pandora: {error.with_hint}")


def _spent(house: "House", key: "TurnKey", revision: int) -> "CallTotals | None":
    try:
        return house.calls.totals(key, revision)
    except StoreError as error:
        note(f"pandora: {error.with_hint}")
        return None


def run_and_show(house: "House", key: "TurnKey", *, as_json: bool, stream: bool = True, resumed: bool = False) -> None:
    """Run what is left and tell what came of it. Exit code 1 where the turn halted; a resumed one also where anything is left."""
    from pandora_dagster.defs.run import run_turn

    seen: list[PhaseReport] = []
    speaking = Speaking()

    def tell(report: "PhaseReport") -> None:
        _tell_notices(report)
        if not as_json:
            _shown_when_saved(house, report, seen, speaking)

    run_turn(house.listened_by(speaking) if stream and not as_json else house, key, on_report=tell)
    result = house.answered(key)
    if as_json:
        say_json(_as_object(result))
    _tidy(house)
    if result.intervention and result.state == "halted":
        _tell_halt(house.interventions.show(result.intervention))
        raise typer.Exit(EXIT_HALTED)
    if result.intervention:
        _tell_without_summary(house, key, house.interventions.show(result.intervention))
        if resumed:
            raise typer.Exit(EXIT_HALTED)
    elif resumed and seen and not any(report.answers for report in seen):
        note(f"{key}  {result.state}: {', '.join(report.phase for report in seen)} finished")


def _tell_without_summary(house: "House", key: "TurnKey", halt: "Intervention") -> None:
    """The answer stands (DECISIONS 16); what is missing, why, and how to go on."""
    _tell_halt(halt)
    left = house.left_to_do(key)
    told = "its summary is missing" if "turn_summary" in left or not left else f"left to do: {', '.join(left)}"
    note(f"  the turn is {house.turns.manifest(key).state}, {told}")
    if left:
        note(f"  go on with: pandora resume {key}")


def _tell_notices(report: "PhaseReport") -> None:
    """How many of the person's notes RETRIEVAL could not be offered; the phase's facts and the doctor name each."""
    if notices := report.facts.get("notices"):
        note(f"pandora: {len(notices)} of the notes of {report.key.user} could not be read: pandora doctor names them")


def _tell_halt(halt: "Intervention") -> None:
    note(f"pandora: HALT at {halt.phase}: {halt.message}")
    note(f"  intervention {halt.id}. {halt.hint}".rstrip())


def _shown_when_saved(house: "House", report: "PhaseReport", seen: "list[PhaseReport]", speaking: Speaking) -> None:
    """The answer comes first: whole as soon as the turn is saved, before summary and index (DECISIONS 16)."""
    seen.append(report)
    if report.halt:
        speaking.withdrawn("the turn halted")
    if not report.answers:
        return
    result = house.answered(report.key)
    speaking.finish(result.response)
    for cited in result.citations:
        say(f"  [{cited['label']}] {cited['turn_id'] or 'memory'}  {place(cited['path'])}")
    note(f"{report.key}  {report.manifest.state}  runtime {report.manifest.runtime}")


def _as_object(result: "Answered") -> dict[str, Any]:
    return {
        "turn_id": result.key.turn_id,
        "user_id": result.key.user,
        "state": result.state.value,
        "response": result.response,
        "citations": list(result.citations),
        "intervention": result.intervention,
    }


def _typed() -> str:
    """A line from the person; the prompt is shown to people only, so that piped answers stay plain."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
