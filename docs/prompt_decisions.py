"""The decisions that belong to prompts, never to code, in the order of 000 section 7, each with its recipe and model layer."""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.phases.gather import context_gatherer
from pandora_dagster.phases.steps import answer_synthesis, coordination, query_analysis, task_plan


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """A decision that a prompt takes."""

    decision: str
    layer: ModelLayer
    decides: str
    recipe: str = ""
    """The recipe that takes it: `{category}/{name}` or a stem; a category where the content selects the recipe; "" where there is none."""
    without: str = ""
    """Why there is no recipe."""
    also: tuple[ModelLayer, ...] = ()


COMPRESSION = DecisionPoint("Compression", ModelLayer.NERVES, "What a text says in fewer tokens.", "compression")
"""The one decision that belongs to no phase: any text over its budget is compressed; its content type selects the recipe."""
DECISIONS = (
    DecisionPoint("Reflection Gate", ModelLayer.REFLEX, "PROCEED, or CLARIFY with a question.", query_analysis.REFLECTION),
    DecisionPoint("Planner", ModelLayer.MIND, "The next step and the order of the tasks.", task_plan.PLANNER),
    DecisionPoint("Coordinator", ModelLayer.MIND, "One command becomes one tool with its arguments.", coordination.COORDINATOR),
    DecisionPoint(
        "Research Strategy",
        ModelLayer.MIND,
        "Which turns, memory, cached research, pages and notes are read, and whether research is reused.",
        context_gatherer.RETRIEVAL,
    ),
    DecisionPoint(
        "Web Navigation",
        ModelLayer.MIND,
        "What a page is, and what to do on it.",
        without="no tool of this project opens a page; one that does brings its recipe",
        also=(ModelLayer.EYES,),
    ),
    DecisionPoint(
        "Extraction Validation",
        ModelLayer.MIND,
        "What of the loaded sources goes into section 2; the rest is left out.",
        context_gatherer.SYNTHESIS,
    ),
    DecisionPoint("Synthesis", ModelLayer.VOICE, "The answer as the user sees it.", answer_synthesis.SYNTHESIZER),
    DecisionPoint("Validation", ModelLayer.MIND, "APPROVE, REVISE or FAIL: the final gate.", answer_synthesis.VALIDATOR),
    COMPRESSION,
)
