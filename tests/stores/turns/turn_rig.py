"""Turns of a store as its tests make them: begun, with a phase, saved."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import PhaseEffects, PhaseRecord
from pandora_dagster.documents.sections import ContextDocument

NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)
ORDER = ("turn_request", "reflection", "clarification", "response", "validation", "saved_turn", "turn_summary")
SECTIONS = {"reflection": 1, "gathered_context": 2, "task_plan": 3, "tool_results": 4, "response": 5, "validation": 6}
EFFECTS = PhaseEffects(SECTIONS, {"clarification": TurnState.CLARIFY, "saved_turn": TurnState.SAVED}, "turn_summary")
QUERY = "what?\r\n## 1. not a heading\n\n"


class Words:
    def count(self, text):
        return len(text.split())


class Ticking:
    """A clock that moves a minute each time."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        self.now += timedelta(minutes=1)
        return self.now


def record(phase):
    return PhaseRecord(phase=phase, finished_at="2026-01-04T14:30:00Z", report={"rows": ({"a": 1},)})


def begun(turns, query=QUERY):
    return turns.start("anna", query, session="s", mode="chat", now=NOW)


def with_phase(turns, turn, phase, *, section=None, text="", files=None, **more):
    context = ContextDocument.parse(turn.context).with_section(section, text or phase).render() if section else None
    return turns.commit(turn, phase=record(phase), context=context, files=files, **more)


def saved(turns):
    """A finished turn: reflection, response, validation, saved, summarised."""
    turn = with_phase(turns, begun(turns), "turn_request")
    turn = with_phase(turns, turn, "reflection", section=1, files={"reflection.json": "{}"})
    turn = with_phase(turns, turn, "response", section=5, files={"response.md": "first"})
    turn = with_phase(turns, turn, "validation", section=6, files={"validation.json": "{}", "response.md": "revised"})
    turn = with_phase(turns, turn, "saved_turn", state=TurnState.SAVED)
    return with_phase(turns, turn, "turn_summary", files={"turn_summary.json": "{}"}, summary={"summary": "x"})


def tree(folder):
    """Every file of a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file() and p.name != ".lock"}
