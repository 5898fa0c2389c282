"""The question back, saved instead of an answer (DECISIONS 11): summarised, and what the person stated is kept as after an answer."""

from typing import Any

from pandora_dagster.contracts.answers import Reflection, TaskPlan, TurnSummary
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.errors import HaltError
from pandora_dagster.phases.ctx import PhaseContext, PhaseOutput, parsed_answer, as_json
from pandora_dagster.phases.halting import HALTING_ERRORS, open_intervention, intervention_type
from pandora_dagster.phases.remembering import session_facts
from pandora_dagster.phases.saving import SUMMARIZER


async def clarification(ctx: PhaseContext) -> PhaseOutput:
    """Ask the person back after reflection: the turn ends with its question."""
    return await _save_question(ctx, ctx.read("reflection.json", Reflection).question)


async def plan_clarification(ctx: PhaseContext) -> PhaseOutput:
    """Ask the person back after the Planner."""
    return await _save_question(ctx, ctx.read("task_plan.json", TaskPlan).question)


async def _save_question(ctx: PhaseContext, question: str | None) -> PhaseOutput:
    """The question stands whatever fails beside it; the intervention says why there is no summary, or no facts."""
    asked = question or "Could you tell me more about what you need?"
    context = ctx.context_document.with_section(5, asked)
    files = {"response.md": asked + "\n"}
    manifest: dict[str, object] = {}
    facts: dict[str, Any] = {}
    try:
        facts |= (await session_facts(ctx)).facts
    except HaltError as halt:
        manifest["intervention"] = halt.intervention_id
    except HALTING_ERRORS as error:
        manifest["intervention"] = open_intervention(ctx.deps, ctx.phase, ctx.turn.manifest, intervention_type(error), str(error), hint=error.hint).id
    try:
        summary = parsed_answer(await ctx.ask(SUMMARIZER, context=context), TurnSummary)
        files["turn_summary.json"] = as_json(summary)
        manifest["summary"] = summary.model_dump(mode="json")
    except HaltError as halt:
        manifest["intervention"] = halt.intervention_id
    return PhaseOutput(sections={5: asked}, files=files, state=TurnState.CLARIFY, manifest=manifest, facts=facts)
