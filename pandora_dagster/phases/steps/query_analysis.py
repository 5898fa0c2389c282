"""Phases 0 and 1: what is asked, and whether to go on (000 section 16.1, 004 section 3); the turn's request before them."""

from pandora_dagster.contracts.model_calls import CallResult, InputDocument
from pandora_dagster.contracts.phase_outputs import QueryAnalysis, Reflection
from pandora_dagster.documents.markdown import table
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.gather import session_history

ANALYZER = "pipeline/phase0_query_analyzer"
REFLECTION = "pipeline/phase1_reflection"
NOT_SURE = "I am not sure what you mean. Could you say it in other words?"
"""Asked where reflection stays under its confidence threshold and has no question of its own."""


async def turn_request(ctx: PhaseContext) -> PhaseOutput:
    """Section 0: the user's words, which the start of the turn stored."""
    return PhaseOutput(shown=ctx.query)


async def query_analysis(ctx: PhaseContext) -> PhaseOutput:
    """Phase 0: classify the query and resolve what it refers to."""
    offered = session_history.with_open_question(
        session_history.summaries_document(session_history.recent_turns(ctx), session=ctx.turn.manifest.session_id), ctx
    )
    result = await ctx.ask(ANALYZER, [InputDocument("raw_query", ctx.query), offered])
    analysis = parsed_answer(result, QueryAnalysis, original_query=ctx.query)
    if not analysis.resolved_query.strip():  # nothing to resolve: a long query need not be repeated
        analysis = analysis.model_copy(update={"resolved_query": ctx.query})
    facts = session_history.summary_facts(session_history.session_turns(ctx), offered, result.record.left_out)
    return PhaseOutput(files={"query_analysis.json": as_json(analysis)}, facts=facts, shown=_analysis_table(analysis))


async def reflection(ctx: PhaseContext) -> PhaseOutput:
    """Phase 1: PROCEED or CLARIFY. An answer that stays unsure becomes a CLARIFY (DECISIONS 13)."""
    offered = session_history.with_open_question(
        session_history.summaries_document(session_history.recent_turns(ctx), session=ctx.turn.manifest.session_id), ctx
    )
    documents = [ctx.analysis_document(), offered]
    result = await ctx.ask(REFLECTION, documents, halt_on_low_confidence=False)
    decided = _clarify_if_unsure(parsed_answer(result, Reflection), result)
    body = f"**Decision:** {decided.decision}\n**Confidence:** {decided.confidence:.2f}\n**Reasoning:** {decided.reasoning}"
    facts = session_history.summary_facts(session_history.session_turns(ctx), offered, result.record.left_out)
    return PhaseOutput(sections={1: body}, files={"reflection.json": as_json(decided)}, facts=facts, verdicts=result.verdicts)


def _clarify_if_unsure(decided: Reflection, result: CallResult) -> Reflection:
    unsure = not result.passed
    if decided.decision == "PROCEED" and not unsure:
        return decided
    return decided.model_copy(update={"decision": "CLARIFY", "question": decided.question or NOT_SURE})


def _analysis_table(analysis: QueryAnalysis) -> str:
    rows = {
        "Resolved query": analysis.resolved_query,
        "Type": analysis.query_type,
        "Intent": analysis.intent,
        "Entities": ", ".join(analysis.entities),
        "References": analysis.reference_resolution.status,
    }
    return table(("Field", "Value"), rows.items())
