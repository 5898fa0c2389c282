"""Turns of a store as its tests make them: begun, with a phase, saved."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.turns import PhaseEffects, PhaseRecord, Turn
from pandora_dagster.documents.sections import ContextDocument

NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)
ORDER = ("turn_request", "reflection", "clarification", "response", "validation", "saved_turn", "turn_summary")
SECTIONS = {"reflection": 1, "gathered_context": 2, "task_plan": 3, "tool_results": 4, "response": 5, "validation": 6}
EFFECTS = PhaseEffects(SECTIONS, {"clarification": TurnState.CLARIFY, "saved_turn": TurnState.SAVED}, "turn_summary")
QUERY = "what?\r\n## 1. not a heading\n\n"


class Words:
    def count(self, text: str) -> int:
        return len(text.split())


class Ticking:
    """A clock that moves a minute each time."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def record(phase: str) -> PhaseRecord:
    return PhaseRecord(phase=phase, finished_at="2026-01-04T14:30:00Z", report={"rows": ({"a": 1},)})


def begun(turns: TurnStore, query: str = QUERY) -> Turn:
    return turns.start(UserId("anna"), query, session=SessionId("s"), mode="chat", now=NOW)


def with_phase(
    turns: TurnStore,
    turn: Turn,
    phase: str,
    *,
    section: int | None = None,
    text: str = "",
    files: Mapping[str, str] | None = None,
    **more: Any,
) -> Turn:
    context = ContextDocument.parse(turn.context).with_section(section, text or phase).render() if section else None
    return turns.commit(turn, phase=record(phase), context=context, files=files, **more)


def saved(turns: TurnStore) -> Turn:
    """A finished turn: reflection, response, validation, saved, summarised."""
    turn = with_phase(turns, begun(turns), "turn_request")
    turn = with_phase(turns, turn, "reflection", section=1, files={"reflection.json": "{}"})
    turn = with_phase(turns, turn, "response", section=5, files={"response.md": "first"})
    turn = with_phase(turns, turn, "validation", section=6, files={"validation.json": "{}", "response.md": "revised"})
    turn = with_phase(turns, turn, "saved_turn", state=TurnState.SAVED)
    return with_phase(turns, turn, "turn_summary", files={"turn_summary.json": "{}"}, summary={"summary": "x"})


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file() and p.name != ".lock"}
