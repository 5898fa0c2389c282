"""Phases 0 and 1: what is asked, and whether to go on (specification 000, section 16.1, specification 004, section 3); the turn's request
before them.

A question back is saved instead of an answer (decision 11, docs/decisions/11-clarify.md). It is summarised, and what the user stated is
stored as after an answer.
"""

from typing import Any

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.phase_outputs import QueryAnalysis, Reflection, TaskPlan, TurnSummary
from pandora_dagster.documents.markdown import table
from pandora_dagster.errors import HaltError
from pandora_dagster.phases.core.halt_interventions import HALTING_ERRORS, intervention_type, open_intervention
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.gather import session_history
from pandora_dagster.phases.steps.session_facts import session_facts
from pandora_dagster.phases.steps.turn_completion import SUMMARIZER

ANALYZER = "pipeline/phase0_query_analyzer"
REFLECTION = "pipeline/phase1_reflection"
NOT_SURE = "I am not sure what you mean. Could you say it in other words?"
"""Asked where reflection asks back and has no question of its own."""


async def turn_request(ctx: PhaseContext) -> PhaseOutput:
    """Section 0: the user's words, which the start of the turn stored."""
    return PhaseOutput(shown=ctx.query)


async def query_analysis(ctx: PhaseContext) -> PhaseOutput:
    """Phase 0: classify the query and resolve what it refers to."""
    offered = _recent_summaries(ctx)
    result = await ctx.ask(ANALYZER, [InputDocument("raw_query", ctx.query), offered])
    analysis = parsed_answer(result, QueryAnalysis, original_query=ctx.query)
    if not analysis.resolved_query.strip():  # nothing to resolve: a long query need not be repeated
        analysis = analysis.model_copy(update={"resolved_query": ctx.query})
    facts = session_history.summary_facts(session_history.session_turns(ctx), offered, result.record.left_out)
    return PhaseOutput(files={"query_analysis.json": as_json(analysis)}, facts=facts, shown=_analysis_table(analysis))


async def reflection(ctx: PhaseContext) -> PhaseOutput:
    """Phase 1: PROCEED or CLARIFY, as the answer decides. Its stated confidence alone asks nothing (decision 38,
    docs/decisions/38-confidence.md)."""
    offered = _recent_summaries(ctx)
    documents = [ctx.analysis_document(), offered]
    result = await ctx.ask(REFLECTION, documents)
    answer = _with_question(parsed_answer(result, Reflection))
    body = f"**Decision:** {answer.decision}\n**Confidence:** {answer.confidence:.2f}\n**Reasoning:** {answer.reasoning}"
    facts = session_history.summary_facts(session_history.session_turns(ctx), offered, result.record.left_out)
    return PhaseOutput(sections={1: body}, files={"reflection.json": as_json(answer)}, facts=facts, verdicts=result.verdicts)


async def clarification(ctx: PhaseContext) -> PhaseOutput:
    """Ask the user back after reflection: the turn ends with its question."""
    return await _save_question(ctx, ctx.read("reflection.json", Reflection).question)


async def plan_clarification(ctx: PhaseContext) -> PhaseOutput:
    """Ask the user back after the Planner."""
    return await _save_question(ctx, ctx.read("task_plan.json", TaskPlan).question)


async def _save_question(ctx: PhaseContext, question: str | None) -> PhaseOutput:
    """The question is saved even where summary or facts fail; an intervention states the reason."""
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


def _recent_summaries(ctx: PhaseContext) -> InputDocument:
    """The summaries of recent turns, and the open question that the query may answer."""
    recent = session_history.summaries_document(session_history.recent_turns(ctx), session=ctx.turn.manifest.session_id)
    return session_history.with_open_question(recent, ctx)


def _with_question(reflection: Reflection) -> Reflection:
    """The decision; a CLARIFY without a question has the fixed one."""
    if reflection.decision == "PROCEED" or reflection.question:
        return reflection
    return reflection.model_copy(update={"question": NOT_SURE})


def _analysis_table(analysis: QueryAnalysis) -> str:
    rows = {
        "Resolved query": analysis.resolved_query,
        "Type": analysis.query_type,
        "Intent": analysis.intent,
        "Entities": ", ".join(analysis.entities),
        "References": analysis.reference_resolution.status,
    }
    return table(("Field", "Value"), rows.items())
