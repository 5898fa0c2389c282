"""The question back, saved instead of an answer (DECISIONS 11). It is summarised, and what the user stated is stored as after an answer."""

from typing import Any

from pandora_dagster.contracts.phase_outputs import Reflection, TaskPlan, TurnSummary
from pandora_dagster.errors import HaltError
from pandora_dagster.phases.core.halt_interventions import HALTING_ERRORS, intervention_type, open_intervention
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.steps.session_facts import session_facts
from pandora_dagster.phases.steps.turn_completion import SUMMARIZER


async def clarification(ctx: PhaseContext) -> PhaseOutput:
    """Ask the user back after reflection: the turn ends with its question."""
    return await _save_question(ctx, ctx.read("reflection.json", Reflection).question)


async def plan_clarification(ctx: PhaseContext) -> PhaseOutput:
    """Ask the user back after the Planner."""
    return await _save_question(ctx, ctx.read("task_plan.json", TaskPlan).question)


async def _save_question(ctx: PhaseContext, question: str | None) -> PhaseOutput:
    """The question is saved whatever fails beside it; an intervention says why there is no summary, or no facts."""
    text = question or "Could you tell me more about what you need?"
    context = ctx.context_document.with_section(5, text)
    files = {"response.md": text + "\n"}
    manifest: dict[str, object] = {}
    facts: dict[str, Any] = {}
    try:
        facts |= (await session_facts(ctx)).facts
    except HaltError as halt:
        manifest["intervention"] = halt.intervention_id
    except HALTING_ERRORS as error:
        manifest["intervention"] = open_intervention(
            ctx.deps, ctx.phase, ctx.turn.manifest, intervention_type(error), str(error), hint=error.hint
        ).id
    try:
        summary = parsed_answer(await ctx.ask(SUMMARIZER, context=context), TurnSummary)
        files["turn_summary.json"] = as_json(summary)
        manifest["summary"] = summary.model_dump(mode="json")
    except HaltError as halt:
        manifest["intervention"] = halt.intervention_id
    return PhaseOutput(sections={5: text}, files=files, manifest=manifest, facts=facts)
