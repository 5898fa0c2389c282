"""Models of the parsed answers that phases read: one for each recipe output (specifications 004 and 000, section 16)."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.user.sources import Topic

Confidence = Annotated[float, Field(ge=0, le=1)]
QueryType = Literal["informational", "transactional", "navigation", "commerce_search", "comparison", "general_question"]
Intent = Literal["commerce", "query", "recall", "preference", "navigation", "greeting"]
Relevance = Literal["high", "medium", "low"]


class ReferenceResolution(StrictModel):
    """Whether the query's references, such as "it", were resolved, and to what (specification 004, section 3.1)."""

    status: Literal["not_needed", "resolved", "unresolved"]
    original_references: tuple[str, ...] = ()
    resolved_to: str | None = None


class ContentReference(StrictModel):
    """A thing from an earlier turn to which the query refers (specification 004, section 6.2)."""

    title: str
    source_turn: int | None = None


class QueryAnalysis(StrictModel):
    """Phase 0's answer (specifications 004, section 3.1, and 000, section 16.1). Code fills in `original_query`, verbatim."""

    original_query: str = ""
    resolved_query: str
    query_type: QueryType
    intent: Intent
    entities: tuple[str, ...] = ()
    reference_resolution: ReferenceResolution
    content_reference: ContentReference | None = None
    reasoning: str = ""


class Reflection(StrictModel):
    """Phase 1's answer (specification 004, section 3.2). `question` is what a CLARIFY asks the user."""

    decision: Literal["PROCEED", "CLARIFY"]
    confidence: Confidence
    reasoning: str = ""
    question: str | None = None


class TurnRelevance(StrictModel):
    """How relevant an earlier turn is to the query, with the reason."""

    relevance: Relevance
    reason: str = ""


class ResearchMatch(StrictModel):
    """Whether cached research fits the query, and whether to use it (specification 004, section 4.1)."""

    matched: bool
    topic: str | None = None
    freshness: str | None = None
    quality: float | None = None
    reuse_recommendation: Literal["full", "partial", "refresh", "none"] = "none"


class RetrievalPlan(StrictModel):
    """RETRIEVAL's answer: the records to load for the query (specification 004, section 4.1). `relevant_notes`: notes of the user."""

    relevant_turns: tuple[int, ...] = ()
    turn_relevance: Mapping[str, TurnRelevance] = {}
    relevant_memory_keys: tuple[str, ...] = ()
    relevant_notes: tuple[str, ...] = ()
    research_cache_match: ResearchMatch = ResearchMatch(matched=False)
    webpage_cache_needed: tuple[str, ...] = ()
    confidence: Confidence = 1.0
    """How sure the choice is (specification 000, section 14 sets a threshold for phase 2)."""
    reasoning: str = ""


class PriorTurn(StrictModel):
    """What an earlier turn contributes."""

    turn: int
    relevance: Relevance
    summary: str
    key_facts: tuple[str, ...] = ()


class CachedResearch(StrictModel):
    """What cached research contributes."""

    topic: str
    quality: float | None = None
    age_hours: float | None = None
    summary: str = ""
    top_results: tuple[Mapping[str, Any], ...] = ()


class VisitData(StrictModel):
    """What a visited page contributes. `visit_id` names the visit, as a page is visited more than once."""

    visit_id: str = ""
    url: str
    extracted: Mapping[str, Any] = {}


class Knowledge(StrictModel):
    """What a note of the user contributes (specification 004, section 13.1)."""

    note: str
    content: str


class GatheredContext(StrictModel):
    """SYNTHESIS' answer: what the loaded records contribute to the query, by kind of source (specification 004, section 4.3)."""

    session_preferences: Mapping[str, Any] = {}
    prior_turns: tuple[PriorTurn, ...] = ()
    cached_research: CachedResearch | None = None
    visit_data: tuple[VisitData, ...] = ()
    forever_knowledge: tuple[Knowledge, ...] = ()
    source_references: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    """What the query asks for and nothing of the loaded records says."""


class PlannedTask(StrictModel):
    """One task of the plan, with the tool that the Planner proposes for it."""

    description: str
    tool: str | None = None
    arguments: Mapping[str, Any] = {}


class TaskPlan(StrictModel):
    """Phase 3's answer (specification 000, section 16.2, decision 18, docs/decisions/18-shapes-of-analysis-and-plan.md)."""

    next_step: Literal["coordinator", "synthesis", "clarify"]
    confidence: Confidence
    tasks: tuple[PlannedTask, ...] = ()
    question: str | None = None
    reasoning: str = ""


class ExecutorStep(StrictModel):
    """The next step inside phase 4's loop: one more command, complete, or blocked."""

    action: Literal["COMMAND", "COMPLETE", "BLOCKED"]
    command: str = ""
    reasoning: str = ""


class ToolCall(StrictModel):
    """The Coordinator's choice: one tool with its arguments (specification 000, section 7)."""

    tool: str
    arguments: Mapping[str, Any] = {}
    reasoning: str = ""


class UncitedStatement(StrictModel):
    """What statement `number` of the document `uncited` does; only a fact needs a source."""

    number: Annotated[int, Field(ge=1)]
    kind: Literal["fact", "greeting", "question", "absence", "turn"]


class ValidationVerdict(StrictModel):
    """Phase 6's answer: the final gate (specification 000, section 7)."""

    decision: Literal["APPROVE", "REVISE", "FAIL"]
    confidence: Confidence
    issues: tuple[str, ...] = ()
    checked_citations: tuple[str, ...] = ()
    reasoning: str = ""
    uncited: tuple[UncitedStatement, ...] = ()


class MeaningVerdict(StrictModel):
    """Whether the statement of pair `number` means what its source says."""

    number: Annotated[int, Field(ge=1)]
    reason: str
    verdict: Literal["same", "changed", "unclear"]


class MeaningVerdicts(StrictModel):
    """The answer of `compression/verify_meaning`."""

    verdicts: tuple[MeaningVerdict, ...]


class TurnSummary(StrictModel):
    """The summary by which a turn is found (specification 004, section 11.2). The recipe's schema has the same constraints: a faulty
    answer is requested again."""

    summary: Annotated[str, Field(pattern=r"\S")]
    topics: Annotated[tuple[Annotated[str, Field(pattern=r"\S")], ...], Field(min_length=2, max_length=5)]
    intent: Intent
    has_research: bool
    research_topic: Topic | None = None

    @model_validator(mode="after")
    def _require_consistency(self) -> "TurnSummary":
        if len(set(self.topics)) < len(self.topics):
            raise ValueError(f"topics {', '.join(self.topics)}: expected each once")
        if self.has_research != (self.research_topic is not None):
            raise ValueError("research_topic: expected one where has_research is true, and none where it is false")
        return self


# Answers of the recipes that judge what code cannot tell while a tool runs (specification 000, section 4.1).

LineNumber = Annotated[int, Field(ge=1)]
"""The number of a line that the call was given, from 1."""


class ReplacedEntry(StrictModel):
    """The answer of `memory/fact_conflict`."""

    reason: str = ""
    replaces: LineNumber | None
    """The stored entry that no longer holds beside the new one; None where all of them hold."""


class EntryExpiry(StrictModel):
    """The answer of `memory/fact_expiry`."""

    until: date | None
    """The last day on which what was stated holds; None where it has no end."""


class ChosenEntries(StrictModel):
    """The answer of `memory/memory_query` and of `memory/forget_request`: entries of the memory."""

    entries: tuple[LineNumber, ...]


class SearchWords(StrictModel):
    """The answer of `tools/doc_search_query`: other words for a search that found nothing, best first."""

    queries: tuple[Annotated[str, Field(min_length=1)], ...]


class FilledArguments(StrictModel):
    """The answer of `tools/argument_filler`."""

    reasoning: str = ""
    arguments: Mapping[str, Any]


class RepeatedCall(StrictModel):
    """The answer of `reflection/loop_detector`."""

    reason: str = ""
    repeats: bool
    """Whether the next call asks the same again."""
