"""Commands for interventions: list, show, resolve."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, OnlyUser, app_of_existing_store
from pandora_dagster.cli.ask.turn_commands import require_pending, run_and_show
from pandora_dagster.cli.output import EXIT_FAILED, EXIT_USAGE, exit_with, print_json, print_line, print_note, print_rows

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.contracts.interventions import Intervention
    from pandora_dagster.phases.flow.halt_resolution import ManualAnswerExecutor

InterventionId = Annotated[str, typer.Argument(help="An id that `pandora interventions list` shows.")]


def list_interventions(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Also resolved interventions.")] = False,
    user: OnlyUser = "",
    as_json: AsJson = False,
) -> None:
    """List open interventions.

    Example: pandora interventions list
    """
    with app_of_existing_store(context) as app:
        interventions = app.interventions.list(state=None if every else "open", user=user or None)
    print_rows(
        interventions,
        {
            "Intervention": "id",
            "Type": lambda i: i.type.value,
            "Turn": lambda i: f"{i.user_id}:{i.turn_id}" if i.turn_id else "",
            "Phase": "phase",
            "State": "state",
            "Message": "message",
        },
        as_json=as_json,
        empty="there is no intervention" if every else "no intervention is open",
    )


def show_intervention(context: typer.Context, intervention: InterventionId, as_json: AsJson = False) -> None:
    """Show why a turn halted.

    Includes the call record, the prompt pack and the raw answer, as far as they are stored.

    Example: pandora interventions show int_20260914_090512_4f1a
    """
    from pandora_dagster.governance.manual_answers import call_record_of

    with app_of_existing_store(context) as app:
        record = app.interventions.show(intervention)
        pack, answer = _vault_text(app, record.pack_ref), _vault_text(app, record.answer_ref)
        call = call_record_of(record, app.calls) if record.call_id else None
    fields = record.model_dump(mode="json")
    if as_json:
        print_json({**fields, "call": call, "pack": pack, "answer": answer})
        return
    for name, value in fields.items():
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
    """The stored text of a reference; a missing or damaged one is reported and gives an empty text."""
    from pandora_dagster.errors import DocumentError

    try:
        return app.vault.read(ref) if ref else ""
    except DocumentError as error:
        print_note(f"pandora: {error.with_hint}")
        return ""


def resolve_intervention(
    context: typer.Context,
    intervention: InterventionId,
    note_text: Annotated[str, typer.Option("--note", help="What was done about it.")] = "",
    retry: Annotated[bool, typer.Option("--retry", help="Run the halted phase and the following phases again.")] = False,
    answer: Annotated[
        Path | None, typer.Option("--answer", help="A file with the answer to use, or the text of the page that is asked for; - for stdin.")
    ] = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="End the turn without an answer.")] = False,
    approve: Annotated[bool, typer.Option("--approve", help="Run the tool call that it asks about, and go on.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Go on without the tool call, or the page, that it asks about.")] = False,
) -> None:
    """Decide what an intervention asks, or note a decision.

    Without an option, only the note is stored, and `pandora resume` continues the turn. --retry runs the recipe version that is in
    production now. An answer from --answer must pass the same checks as the model's. An executed decision is final; a noted one can still
    be executed. The exit code is 1 if the turn halts again.

    Example: pandora interventions resolve int_20260914_090512_4f1a --retry
    """
    if retry + (answer is not None) + abandon + approve + refuse > 1:
        exit_with(EXIT_USAGE, "--retry, --answer, --abandon, --approve and --refuse: expected at most one of them")
    with app_of_existing_store(context) as app:
        record = app.interventions.show(intervention)
        key = app.turns.resolve(f"{record.user_id}:{record.turn_id}") if record.turn_id else None
        if not (retry or answer or abandon or approve or refuse):
            app.interventions.resolve(intervention, note_text)
            _print_noted(app, record.id, key)
            return
        if key is None:
            exit_with(EXIT_USAGE, f"{intervention}: it belongs to no turn: expected an intervention of a turn; --note can be stored")
        from pandora_dagster.phases.core.halt_interventions import has_continued
        from pandora_dagster.phases.flow.halt_resolution import abandon_turn, require_open

        require_open(record)
        if has_continued(app.turns.manifest(key), record):
            app.interventions.resolve(intervention, note_text, how="went_on")
            print_line(f"{record.id} resolved: {key} has continued since, {record.phase} is finished")
            return
        if abandon:
            abandon_turn(key, app.dependencies)
            app.interventions.resolve(intervention, note_text, how="abandoned")
            print_line(f"{record.id} resolved: {key} is abandoned")
            return
        if record.type == "needs_person" and (answer or refuse):
            app.decide_page(record, _read_answer(answer) if answer else "", note=note_text)
            print_note(f"{record.id} resolved")
            run_and_show(app, key, as_json=False, resumed=True)
            return
        if approve or refuse:
            app.decide_call(record, approved=approve, note=note_text)
            print_note(f"{record.id} resolved")
            run_and_show(app, key, as_json=False, resumed=True)
            return
        _resume_turn(app, record, key, note_text, answer)


def _resume_turn(app: "App", record: "Intervention", key: "TurnKey", note_text: str, answer: Path | None) -> None:
    """Run the rest of the turn. The resolution is stored afterwards, so that a turn locked by another process loses nothing."""
    require_pending(app, key)
    runner, manual = (app, None) if answer is None else app.with_manual_answer(record, _read_answer(answer))
    try:
        run_and_show(runner, key, as_json=False, resumed=True)
    except typer.Exit:
        _record_resolution(app, record, note_text, manual)
        raise
    _record_resolution(app, record, note_text, manual)


def _record_resolution(app: "App", record: "Intervention", note_text: str, manual: "ManualAnswerExecutor | None") -> None:
    """Store the resolution. A manual answer that no phase asked for leaves the intervention open."""
    if manual is not None and not manual.is_used:
        exit_with(EXIT_FAILED, f"{record.id} stays open: the turn halted before {record.phase} asked for its answer")
    app.interventions.resolve(record.id, note_text, how="retry" if manual is None else "by_hand")
    print_note(f"{record.id} resolved")


def _read_answer(answer: Path) -> str:
    """The text of a file, or of stdin for `-`."""
    try:
        return (sys.stdin.buffer.read() if str(answer) == "-" else answer.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        exit_with(EXIT_USAGE, f"--answer {answer}: {error}: expected UTF-8 text")


def _print_noted(app: "App", intervention: str, key: "TurnKey | None") -> None:
    """Report a stored note. It closes the intervention, but a decision about a turn can still be made."""
    print_line(f"{intervention} noted")
    if key and (pending := app.pending_phases(key)):
        print_note(f"left to do: {', '.join(pending)}")
        print_note(f"go on with: pandora resume {key}, or resolve it with --retry, --answer or --abandon")
