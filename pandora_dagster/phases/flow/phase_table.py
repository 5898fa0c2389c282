"""The flow of a turn: the only table that is keyed by phase. Dagster's assets, the docs, governance and the store read it from here."""

from collections.abc import Mapping

from pydantic import BaseModel

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.phase_outputs import (
    ChosenEntries,
    EntryExpiry,
    ExecutorStep,
    FilledArguments,
    GatheredContext,
    MeaningVerdicts,
    QueryAnalysis,
    Reflection,
    RepeatedCall,
    ReplacedEntry,
    RetrievalPlan,
    SearchWords,
    TaskPlan,
    ToolCall,
    TurnSummary,
    ValidationVerdict,
)
from pandora_dagster.contracts.turns import PhaseEffects
from pandora_dagster.contracts.user.conversations import ConversationDigest
from pandora_dagster.contracts.user.user_memory import FactsDiff
from pandora_dagster.phases.flow.phase_spec import PhaseRecipe, PhaseRole, PhaseSpec, answer_condition
from pandora_dagster.phases.gather import context_gatherer
from pandora_dagster.phases.steps import (
    answer_synthesis,
    conversation_summary,
    coordination,
    query_analysis,
    session_facts,
    statement_support,
    task_plan,
    tool_recipes,
    turn_completion,
)

_SUMMARIZER = PhaseRecipe(turn_completion.SUMMARIZER, TurnSummary)
_SYNTHESIZER = PhaseRecipe(answer_synthesis.SYNTHESIZER, documents=("revision_notes",))
_FACTS = (
    PhaseRecipe(session_facts.FACTS, FactsDiff, ("known_facts",)),
    PhaseRecipe(session_facts.PROFILE, FactsDiff, ("profile_facts",)),
)
TOOL_RECIPES = (
    PhaseRecipe(tool_recipes.FACT_CONFLICT, ReplacedEntry, ("new_entry", "stored_entries")),
    PhaseRecipe(tool_recipes.FACT_EXPIRY, EntryExpiry, ("today", "new_entry")),
    PhaseRecipe(tool_recipes.MEMORY_QUERY, ChosenEntries, ("stored_entries",)),
    PhaseRecipe(tool_recipes.FORGET_REQUEST, ChosenEntries, ("stored_entries",)),
    PhaseRecipe(tool_recipes.DOC_SEARCH_QUERY, SearchWords, ("searched",)),
    PhaseRecipe(tool_recipes.ARGUMENT_FILLER, FilledArguments, ("tools", "call", "fault")),
    PhaseRecipe(tool_recipes.LOOP_DETECTOR, RepeatedCall, ("calls", "next_call")),
)
"""Called while a tool runs, where code is unsure."""
_HEADERS = ("turn_summaries", "memory_headers", "research_headers", "visit_headers", "note_headers")
MEANING_RECIPE = statement_support.MEANING
"""Judges whether a statement means what its source says (decision 36, docs/decisions/36-form-by-code-meaning-by-a-model.md)."""
_SOURCES = ("prior_turns", "stored_preferences", "cached_intelligence", "visit_records", "forever_memory")

PHASES: tuple[PhaseSpec, ...] = (
    PhaseSpec("turn_request", "", query_analysis.turn_request, "What the user asked: section 0, verbatim.", section=0),
    PhaseSpec(
        "query_analysis",
        "0",
        query_analysis.query_analysis,
        "What is asked and what it refers to.",
        needs=("turn_request",),
        recipes=(PhaseRecipe(query_analysis.ANALYZER, QueryAnalysis, ("raw_query", "turn_summaries")),),
        files=("query_analysis.json",),
    ),
    PhaseSpec(
        "reflection",
        "1",
        query_analysis.reflection,
        "PROCEED, or CLARIFY with a question.",
        needs=("query_analysis",),
        recipes=(PhaseRecipe(query_analysis.REFLECTION, Reflection, ("turn_summaries",)),),
        section=1,
        files=("reflection.json",),
    ),
    PhaseSpec(
        "clarification",
        "1",
        query_analysis.clarification,
        "The clarifying question, saved and summarised.",
        needs=("reflection",),
        recipes=(_SUMMARIZER, *_FACTS),
        section=5,
        files=("response.md",),
        condition=answer_condition("reflection.json", Reflection, lambda answer: answer.decision == "CLARIFY"),
        final_state=TurnState.CLARIFY,
        revision="2",
    ),
    PhaseSpec(
        "retrieval_plan",
        "2",
        context_gatherer.retrieval_plan,
        "Which earlier turns, memory, research and pages matter.",
        needs=("reflection",),
        recipes=(PhaseRecipe(context_gatherer.RETRIEVAL, RetrievalPlan, _HEADERS),),
        files=("retrieval_plan.json",),
        condition=answer_condition("reflection.json", Reflection, lambda answer: answer.decision != "CLARIFY"),
        revision="3",
    ),
    PhaseSpec(
        "gathered_context",
        "2",
        context_gatherer.gathered_context,
        "Section 2: what was found, with its sources.",
        needs=("retrieval_plan",),
        recipes=(PhaseRecipe(context_gatherer.SYNTHESIS, GatheredContext, (*_SOURCES, "conversation_context", "session_memory")),),
        section=2,
        files=("gathered_context.json",),
        gates=("sources_linked", "caches_fresh", "relevant_source"),
        revision="3",
    ),
    PhaseSpec(
        "task_plan",
        "3",
        task_plan.task_plan,
        "Section 3: the next step and the tasks.",
        needs=("gathered_context",),
        recipes=(PhaseRecipe(task_plan.PLANNER, TaskPlan, ("tools",)),),
        section=3,
        files=("task_plan.json", "ticket.md"),
        revision="2",
    ),
    PhaseSpec(
        "plan_clarification",
        "3",
        query_analysis.plan_clarification,
        "The Planner's clarifying question.",
        needs=("task_plan",),
        recipes=(_SUMMARIZER, *_FACTS),
        section=5,
        files=("response.md",),
        condition=answer_condition("task_plan.json", TaskPlan, lambda answer: answer.next_step == "clarify"),
        final_state=TurnState.CLARIFY,
        revision="2",
    ),
    PhaseSpec(
        "tool_results",
        "4",
        coordination.tool_results,
        "Section 4: what the tools returned.",
        needs=("task_plan",),
        recipes=(
            PhaseRecipe(coordination.COORDINATOR, ToolCall, ("command", "tools")),
            PhaseRecipe(coordination.EXECUTOR, ExecutorStep, ("tools",)),
            *TOOL_RECIPES,
        ),
        section=4,
        files=("toolresults.md",),
        condition=answer_condition("task_plan.json", TaskPlan, lambda answer: answer.next_step != "clarify"),
        gates=("quotes_verbatim", "robots_respected", "sources_allowed"),
        revision="4",
    ),
    PhaseSpec(
        "response",
        "5",
        answer_synthesis.response,
        "Section 5: the answer, with citations.",
        needs=("tool_results",),
        recipes=(_SYNTHESIZER,),
        section=5,
        files=("response.md",),
        role=PhaseRole.ANSWER,
        revision="2",
    ),
    PhaseSpec(
        "validation",
        "6",
        answer_synthesis.validation,
        "Section 6: the final gate, with bounded revisions.",
        needs=("response",),
        recipes=(
            PhaseRecipe(answer_synthesis.VALIDATOR, ValidationVerdict, ("uncited",)),
            _SYNTHESIZER,
            PhaseRecipe(MEANING_RECIPE, MeaningVerdicts, ("pairs",)),
        ),
        section=6,
        files=("validation.json",),
        role=PhaseRole.VALIDATION,
        revision="4",
    ),
    PhaseSpec(
        "saved_turn",
        "7",
        turn_completion.saved_turn,
        "The turn is whole and saved.",
        needs=("validation",),
        final_state=TurnState.SAVED,
        revision="2",
    ),
    PhaseSpec(
        "turn_summary",
        "8",
        turn_completion.turn_summary,
        "The summary in the turn index.",
        needs=("saved_turn",),
        recipes=(_SUMMARIZER,),
        files=("turn_summary.json",),
        role=PhaseRole.SUMMARY,
        revision="2",
    ),
    PhaseSpec(
        "conversation_summary",
        "8",
        conversation_summary.conversation_summary,
        "The session's rolling summary, continued where it is due.",
        needs=("turn_summary",),
        recipes=(PhaseRecipe(conversation_summary.SUMMARIZER, ConversationDigest, ("previous_summary", "turns")),),
        gates=("no_fact_changed",),
        is_follow_up=True,
    ),
    PhaseSpec(
        "session_facts",
        "8",
        session_facts.session_facts,
        "What users stated about themselves, stored for the session; with consent for later ones.",
        needs=("turn_summary",),
        recipes=_FACTS,
        is_follow_up=True,
    ),
)
"""In the order in which they run (decision 10, docs/decisions/10-order-of-the-phases.md)."""


def phase_order() -> tuple[str, ...]:
    """The names of the phases in the order in which they run."""
    return tuple(spec.name for spec in PHASES)


def phase_spec(name: str) -> PhaseSpec:
    """Raises KeyError for a name that is no phase."""
    for spec in PHASES:
        if spec.name == name:
            return spec
    raise KeyError(name)


def follow_ups() -> frozenset[str]:
    """The phases that follow a saved turn by themselves."""
    return frozenset(spec.name for spec in PHASES if spec.is_follow_up)


def phase_in_role(role: PhaseRole) -> str:
    """The phase that has this role."""
    return next(spec.name for spec in PHASES if spec.role is role)


def phase_effects() -> PhaseEffects:
    """What the phases do to a stored turn."""
    final_states = {spec.name: spec.final_state for spec in PHASES if spec.final_state}
    return PhaseEffects(section_writers(), final_states, phase_in_role(PhaseRole.SUMMARY))


def section_writers() -> Mapping[str, int]:
    """Phase -> the section of context.md that it writes; section 0 is written at the start of the turn."""
    return {spec.name: spec.section for spec in PHASES if spec.section}


def phases_before(name: str) -> tuple[PhaseSpec, ...]:
    """All that a phase needs, directly or not, in the order of the flow."""
    needed: set[str] = set()
    for spec in reversed(PHASES):
        if spec.name == name or spec.name in needed:
            needed.update(spec.needs)
    return tuple(spec for spec in PHASES if spec.name in needed)


def recipe_documents() -> Mapping[str, frozenset[str]]:
    """Recipe as the phases name it -> the documents that its calls can load: what the phases offer, and the files of earlier phases."""
    documents: dict[str, frozenset[str]] = {}
    for spec in PHASES:
        files = {"context.md", *(file for before in phases_before(spec.name) for file in before.files)}
        for recipe in spec.recipes:
            documents[recipe.name] = documents.get(recipe.name, frozenset()) | files | set(recipe.documents)
    return documents


def recipe_stem(recipe: str) -> str:
    """`{category}/{name}` without its mode, as a phase may name it."""
    return recipe.removesuffix("_chat").removesuffix("_code")


def answer_model(recipe: str) -> type[BaseModel] | None:
    """The model that a phase reads the answer of `{category}/{name}` as; None where the answer is a text, or no phase runs the recipe."""
    names = (recipe, recipe_stem(recipe))
    return next((phase_recipe.answer for spec in PHASES for phase_recipe in spec.recipes if phase_recipe.name in names), None)
