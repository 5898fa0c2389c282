"""The decisions that belong to prompts, not to code (000 section 7): which recipe takes each, and which layer. Read by docs and tests."""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.phases.gather import context_gatherer
from pandora_dagster.phases.steps import answer_synthesis, coordination, query_analysis, task_plan


@dataclass(frozen=True, slots=True)
class DecisionPoint:
    """One row of the table. `recipe`: `{category}/{name}`, or its stem where each mode has its own; "" where nothing decides it yet."""

    decision: str
    layer: ModelLayer
    decides: str
    recipe: str = ""
    without: str = ""
    """Why there is no recipe."""
    also: tuple[ModelLayer, ...] = ()


COMPRESSION = "compression"
"""The category of the recipes that compress; the content type says which one is taken."""

DECISION_POINTS: tuple[DecisionPoint, ...] = (
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
        "What of the loaded sources is told in section 2; the rest is left out.",
        context_gatherer.SYNTHESIS,
    ),
    DecisionPoint("Synthesis", ModelLayer.VOICE, "The answer as the person sees it.", answer_synthesis.SYNTHESIZER),
    DecisionPoint("Validation", ModelLayer.MIND, "APPROVE, REVISE or FAIL: the final gate.", answer_synthesis.VALIDATOR),
    DecisionPoint("Compression", ModelLayer.NERVES, "What a text says in fewer tokens.", COMPRESSION),
)
"""In the order of 000 section 7."""
