"""Phases 0 and 1: what is asked, and whether to go on (000 section 16.1, 004 section 3)."""

from pandora_dagster.contracts.answers import QueryAnalysis, Reflection
from pandora_dagster.contracts.calls import CallResult, InputDocument
from pandora_dagster.phases import history
from pandora_dagster.phases.desk import Desk, Written, answer_of, as_json
from pandora_dagster.text.tables import table

ANALYZER = "pipeline/phase0_query_analyzer"
REFLECTION = "pipeline/phase1_reflection"
NOT_SURE = "I am not sure what you mean. Could you say it in other words?"
"""Asked where reflection stays under its confidence threshold and has no question of its own."""


async def query_analysis(desk: Desk) -> Written:
    """Phase 0: classify the query and resolve what it refers to."""
    offered = history.with_question(history.summaries(history.recent(desk), session=desk.turn.manifest.session_id), desk)
    result = await desk.ask(ANALYZER, [InputDocument("raw_query", desk.query), offered])
    analysis = answer_of(result, QueryAnalysis, original_query=desk.query)
    if not analysis.resolved_query.strip():  # nothing to resolve: a long query need not be said again
        analysis = analysis.model_copy(update={"resolved_query": desk.query})
    facts = history.summary_facts(history.of_session(desk), offered, result.record.left_out)
    return Written(files={"query_analysis.json": as_json(analysis)}, facts=facts, shown=_analysis_table(analysis))


async def reflection(desk: Desk) -> Written:
    """Phase 1: PROCEED or CLARIFY. An answer that stays unsure becomes a CLARIFY (DECISIONS 13)."""
    offered = history.with_question(history.summaries(history.recent(desk), session=desk.turn.manifest.session_id), desk)
    documents = [desk.analysis_document(), offered]
    result = await desk.ask(REFLECTION, documents, halt_on_low_confidence=False)
    decided = _asking_where_unsure(answer_of(result, Reflection), result)
    body = f"**Decision:** {decided.decision}\n**Confidence:** {decided.confidence:.2f}\n**Reasoning:** {decided.reasoning}"
    facts = history.summary_facts(history.of_session(desk), offered, result.record.left_out)
    return Written(sections={1: body}, files={"reflection.json": as_json(decided)}, facts=facts, verdicts=result.verdicts)


def _asking_where_unsure(decided: Reflection, result: CallResult) -> Reflection:
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
