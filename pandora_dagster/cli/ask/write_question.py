"""The question at the terminal about a tool call that writes: a recipe of high risk asks before it (`risk_level: high`)."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from pandora_dagster.cli.ask.turn_record import run_and_record
from pandora_dagster.cli.output import print_note
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.phases.core.phase_report import PhaseReport

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.contracts.interventions import Intervention


def run_with_questions(app: "App", key: "TurnKey", *, on_report: Callable[[PhaseReport], None], asks: bool = True) -> PhaseReport:
    """Run and record what is left of a turn; the report of the last phase.

    Where it halts for an approval and a user is at the terminal, it asks and goes on. The turn's lock is free meanwhile.
    """
    last = run_and_record(app, key, on_report=on_report)
    while asks and last.halt and (approved := _ask(last.halt)) is not None:
        app.decide_call(last.halt, approved=approved)
        last = run_and_record(app, key, on_report=on_report)
    return last


def _ask(halt: "Intervention") -> bool | None:
    """The user's decision; None where there is nothing to decide, or no terminal to ask at."""
    if halt.type is not InterventionType.NEEDS_APPROVAL or not sys.stdin.isatty():
        return None
    print_note(f"pandora: {halt.message}")
    print_note("approve this call? y or n (n: go on without it; end of input: decide later)")
    while True:
        try:
            answer = input("> ").strip().lower()
        except EOFError:
            return None
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")
