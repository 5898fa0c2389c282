"""Which shape each recipe's parsed answer is read as. Knows recipes and answer models; reads nothing itself."""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel

from pandora_dagster.contracts.answers import (
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
from pandora_dagster.contracts.conversations import ConversationDigest
from pandora_dagster.contracts.facts import FactsDiff
from pandora_dagster.phases import answering, conversation, coordination, gathering, planning, remembering, saving, understanding

ANSWER_MODELS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        understanding.ANALYZER: QueryAnalysis,
        understanding.REFLECTION: Reflection,
        gathering.RETRIEVAL: RetrievalPlan,
        gathering.SYNTHESIS: GatheredContext,
        planning.PLANNER: TaskPlan,
        coordination.EXECUTOR: ExecutorStep,
        coordination.COORDINATOR: ToolCall,
        answering.VALIDATOR: ValidationVerdict,
        saving.SUMMARIZER: TurnSummary,
        conversation.SUMMARIZER: ConversationDigest,
        remembering.FACTS: FactsDiff,
        remembering.PROFILE: FactsDiff,
    }
)
"""Recipe, or its stem where it has one for each mode -> what a phase reads its answer as."""


def answer_model(recipe: str) -> type[BaseModel] | None:
    """What `{category}/{name}` is read as; None where its answer is a text, or nobody's of a turn."""
    return ANSWER_MODELS.get(recipe) or ANSWER_MODELS.get(recipe.removesuffix("_chat").removesuffix("_code"))
