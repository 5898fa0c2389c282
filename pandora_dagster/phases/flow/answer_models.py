"""Which shape each recipe's parsed answer is read as. Knows recipes and answer models; reads nothing itself."""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel

from pandora_dagster.contracts.phase_outputs import (
    ExecutorStep,
    GatheredContext,
    QueryAnalysis,
    Reflection,
    RetrievalPlan,
    TaskPlan,
    ToolCall,
    TurnSummary,
    ValidationVerdict,
)
from pandora_dagster.contracts.user.conversations import ConversationDigest
from pandora_dagster.contracts.user.user_memory import FactsDiff
from pandora_dagster.phases.gather import context_gatherer
from pandora_dagster.phases.steps import (
    answer_synthesis,
    conversation_summary,
    coordination,
    query_analysis,
    session_facts,
    task_plan,
    turn_completion,
)

ANSWER_MODELS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        query_analysis.ANALYZER: QueryAnalysis,
        query_analysis.REFLECTION: Reflection,
        context_gatherer.RETRIEVAL: RetrievalPlan,
        context_gatherer.SYNTHESIS: GatheredContext,
        task_plan.PLANNER: TaskPlan,
        coordination.EXECUTOR: ExecutorStep,
        coordination.COORDINATOR: ToolCall,
        answer_synthesis.VALIDATOR: ValidationVerdict,
        turn_completion.SUMMARIZER: TurnSummary,
        conversation_summary.SUMMARIZER: ConversationDigest,
        session_facts.FACTS: FactsDiff,
        session_facts.PROFILE: FactsDiff,
    }
)
"""Recipe, or its stem where it has one for each mode -> what a phase reads its answer as."""


def answer_model(recipe: str) -> type[BaseModel] | None:
    """What `{category}/{name}` is read as; None where its answer is a text, or nobody's of a turn."""
    return ANSWER_MODELS.get(recipe) or ANSWER_MODELS.get(recipe.removesuffix("_chat").removesuffix("_code"))
