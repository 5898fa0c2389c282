"""Commands for what halted: list, show, resolve."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.contracts.interventions import Intervention
    from pandora_dagster.phases.flow.halt_resolution import ManualAnswerExecutor

interventions = typer.Typer(name="interventions", help="Why turns halted.", no_args_is_help=True, rich_markup_mode=None)
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


def register(app: typer.Typer) -> None:
    interventions.command("list")(list_interventions)
    interventions.command("show")(show_intervention)
    interventions.command("resolve")(resolve_intervention)
    app.add_typer(interventions)


def list_interventions(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Resolved ones too.")] = False,
    user: Annotated[str, typer.Option("--user", "-u", help="Only this person's.")] = "",
    as_json: AsJson = False,
) -> None:
    """List open interventions.

    Example: pandora interventions list
    """
    with app_of_existing_store(context) as app:
        found = app.interventions.list(state=None if every else "open", user=user or None)
    if as_json:
        print_json([json.loads(i.model_dump_json()) for i in found])
        return
    if not found:
        print_note("no intervention is open" if not every else "there is no intervention")
        return
    rows = [(i.id, i.type.value, f"{i.user_id}:{i.turn_id}" if i.turn_id else "", i.phase, i.state, i.message) for i in found]
    print_table(("Intervention", "Type", "Turn", "Phase", "State", "Message"), rows)


def show_intervention(
    context: typer.Context,
    intervention: Annotated[str, typer.Argument(help="An id as `pandora interventions list` gives it.")],
    as_json: AsJson = False,
) -> None:
    """Show why a turn halted.

    With the call's record, the prompt pack that was sent and the raw answer, where they were kept.

    Example: pandora interventions show int_20260914_090512_4f1a
    """
    from pandora_dagster.governance.manual_answers import call_record_of

    with app_of_existing_store(context) as app:
        found = app.interventions.show(intervention)
        pack, answer = _vault_text(app, found.pack_ref), _vault_text(app, found.answer_ref)
        call = call_record_of(found, app.calls) if found.call_id else None
    if as_json:
        record = json.loads(call.model_dump_json()) if call else None
        print_json({**json.loads(found.model_dump_json()), "call": record, "pack": pack, "answer": answer})
        return
    for name, value in json.loads(found.model_dump_json()).items():
        if value:
            print_line(f"{name}: {value}")
    if call:
        failed = ", ".join(gate for gate, passed in call.gates.items() if not passed) or "none"
        print_line(f"call: {call.model_layer}, {call.model or call.runtime}, {call.retries} retries, {call.tokens.total} tokens")
        print_line(f"failed gates: {failed}")
    for title, text in (("pack", pack), ("answer", answer)):
        if text:
            print_line(f"\n--- {title}\n{text}")


def _vault_text(app: "App", ref: str) -> str:
    """What the vault keeps under a reference; where that is gone or damaged this is said, and the rest is shown."""
    from pandora_dagster.errors import DocumentError

    try:
        return app.vault.read(ref) if ref else ""
    except DocumentError as error:
        print_note(f"pandora: {error.with_hint}")
        return ""


def resolve_intervention(
    context: typer.Context,
    intervention: Annotated[str, typer.Argument(help="An id as `pandora interventions list` gives it.")],
    note_text: Annotated[str, typer.Option("--note", help="What was done about it.")] = "",
    retry: Annotated[bool, typer.Option("--retry", help="Run the halted phase again, and what follows it.")] = False,
    answer: Annotated[Path | None, typer.Option("--answer", help="A file with the answer, in the model's place; - for stdin.")] = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="End the turn without an answer.")] = False,
) -> None:
    """Say what was decided about an intervention; with an option, do it.

    Without one it is only noted, and `pandora resume` goes on with the turn. A retry runs the recipe that is in production now. An answer
    given by hand is judged as the model's would be, and refused where it does not pass. What was done stays so; what was only noted can be
    acted on. Exit code 1 where the turn halts again.

    Example: pandora interventions resolve int_20260914_090512_4f1a --retry --note "server restarted"
    """
    if retry + (answer is not None) + abandon > 1:
        exit_with(EXIT_WRONG, "--retry, --answer and --abandon are three decisions: expected one of them")
    with app_of_existing_store(context) as app:
        found = app.interventions.show(intervention)
        key = app.turns.resolve(f"{found.user_id}:{found.turn_id}") if found.turn_id else None
        if not (retry or answer or abandon):
            app.interventions.resolve(intervention, note_text)
            _print_pending(app, found.id, key)
            return
        if key is None:
            exit_with(EXIT_WRONG, f"{intervention}: it belongs to no turn: expected one that can go on; --note says what was done")
        from pandora_dagster.phases.core.halt_interventions import has_passed
        from pandora_dagster.phases.flow.halt_resolution import abandon_turn as ended
        from pandora_dagster.phases.flow.halt_resolution import require_open

        require_open(found)
        if has_passed(app.turns.manifest(key), found):
            app.interventions.resolve(intervention, note_text, how="went_on")
            print_line(f"{found.id} resolved: {key} went on since, {found.phase} has finished")
            return
        if abandon:
            ended(key, app.dependencies)
            app.interventions.resolve(intervention, note_text, how="abandoned")
            print_line(f"{found.id} resolved: {key} is abandoned")
            return
        _resume_turn(app, found, key, note_text, answer)


def _resume_turn(app: "App", found: "Intervention", key: "TurnKey", note_text: str, answer: Path | None) -> None:
    """The rest of the turn, by hand or again; what was done is written down after it: a turn that another process holds loses nothing."""
    from pandora_dagster.cli.ask.turn_commands import run_and_show

    if not app.pending_phases(key):
        exit_with(EXIT_WRONG, f"{key}: nothing is left to do; the turn is {app.turns.manifest(key).state}")
    by_hand, given = (app, None) if answer is None else app.with_manual_answer(found, _text_of(answer))
    try:
        run_and_show(by_hand, key, as_json=False, resumed=True)
    except typer.Exit:
        _record_resolution(app, found, note_text, given)
        raise
    _record_resolution(app, found, note_text, given)


def _record_resolution(app: "App", found: "Intervention", note_text: str, given: "ManualAnswerExecutor | None") -> None:
    """A turn that halted again has an intervention of its own for that; an answer that was not asked for is still to be given."""
    if given is not None and not given.given:
        exit_with(EXIT_HALTED, f"{found.id} stays open: the turn halted before {found.phase} asked for its answer")
    app.interventions.resolve(found.id, note_text, how="retry" if given is None else "by_hand")
    print_note(f"{found.id} resolved")


def _text_of(answer: Path) -> str:
    """A file's text, or what stands on stdin."""
    try:
        return (sys.stdin.buffer.read() if str(answer) == "-" else answer.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        exit_with(EXIT_WRONG, f"--answer {answer}: {error}: expected UTF-8 text")


def _print_pending(app: "App", intervention: str, key: "TurnKey | None") -> None:
    print_line(f"{intervention} resolved")
    if key and (left := app.pending_phases(key)):
        print_note(f"left to do: {', '.join(left)}")
        print_note(f"go on with: pandora resume {key}")
