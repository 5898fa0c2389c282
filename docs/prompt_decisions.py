"""The decisions that belong to prompts, never to code, in the order of 000 section 7, each with its recipe and model layer."""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.phases.steps import answer_synthesis, coordination, query_analysis, task_plan
from pandora_dagster.research import recipe_calls


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """A decision that a prompt takes."""

    decision: str
    layer: ModelLayer
    decides: str
    recipe: str
    """The recipe that takes it: `{category}/{name}` or a stem; a category where the content selects the recipe."""
    also: tuple[ModelLayer, ...] = ()


COMPRESSION = DecisionPoint("Compression", ModelLayer.NERVES, "What a text says in fewer tokens.", "compression")
"""The one decision that belongs to no phase: any text over its budget is compressed; its content type selects the recipe."""
DECISIONS = (
    DecisionPoint("Reflection Gate", ModelLayer.REFLEX, "PROCEED, or CLARIFY with a question.", query_analysis.REFLECTION),
    DecisionPoint("Planner", ModelLayer.MIND, "The next step and the order of the tasks.", task_plan.PLANNER),
    DecisionPoint("Coordinator", ModelLayer.MIND, "One command becomes one tool with its arguments.", coordination.COORDINATOR),
    DecisionPoint("Research Strategy", ModelLayer.MIND, "What would answer a question on the web.", recipe_calls.STRATEGY),
    DecisionPoint(
        "Web Navigation",
        ModelLayer.REFLEX,
        "Which links of a page are followed; EYES reads a page whose text is in a picture.",
        recipe_calls.LINK_RANKER,
        also=(ModelLayer.EYES,),
    ),
    DecisionPoint(
        "Extraction Validation",
        ModelLayer.MIND,
        "Whether a doubtful reading of a page is accepted, rejected or repeated.",
        recipe_calls.EXTRACTION_VALIDATOR,
    ),
    DecisionPoint("Synthesis", ModelLayer.VOICE, "The answer as the user sees it.", answer_synthesis.SYNTHESIZER),
    DecisionPoint("Validation", ModelLayer.MIND, "APPROVE, REVISE or FAIL: the final gate.", answer_synthesis.VALIDATOR),
    COMPRESSION,
)
