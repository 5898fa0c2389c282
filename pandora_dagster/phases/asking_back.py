"""The question back, saved instead of an answer (DECISIONS 11): summarised, and what the person stated is kept as after an answer."""

from typing import Any

from pandora_dagster.contracts.answers import Reflection, TaskPlan, TurnSummary
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.errors import HaltError
from pandora_dagster.phases.desk import Desk, Written, answer_of, as_json
from pandora_dagster.phases.halting import HALTING, intervene, kind_of
from pandora_dagster.phases.remembering import session_facts
from pandora_dagster.phases.saving import SUMMARIZER


async def clarification(desk: Desk) -> Written:
    """Ask the person back after reflection: the turn ends with its question."""
    return await _asked_back(desk, desk.read("reflection.json", Reflection).question)


async def plan_clarification(desk: Desk) -> Written:
    """Ask the person back after the Planner."""
    return await _asked_back(desk, desk.read("task_plan.json", TaskPlan).question)


async def _asked_back(desk: Desk, question: str | None) -> Written:
    """The question stands whatever fails beside it; the intervention says why there is no summary, or no facts."""
    asked = question or "Could you tell me more about what you need?"
    context = desk.context.with_section(5, asked)
    files = {"response.md": asked + "\n"}
    manifest: dict[str, object] = {}
    facts: dict[str, Any] = {}
    try:
        facts |= (await session_facts(desk)).facts
    except HaltError as halt:
        manifest["intervention"] = halt.intervention_id
    except HALTING as error:
        manifest["intervention"] = intervene(desk.kit, desk.phase, desk.turn.manifest, kind_of(error), str(error), hint=error.hint).id
    try:
        summary = answer_of(await desk.ask(SUMMARIZER, context=context), TurnSummary)
        files["turn_summary.json"] = as_json(summary)
        manifest["summary"] = summary.model_dump(mode="json")
    except HaltError as halt:
        manifest["intervention"] = halt.intervention_id
    return Written(sections={5: asked}, files=files, state=TurnState.CLARIFY, manifest=manifest, facts=facts)
