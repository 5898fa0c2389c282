"""The ports that phases work with, in one frozen object. `app` fills it with adapters; tests fill it with fakes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.ports.context_source import ContextSource
from pandora_dagster.contracts.ports.lineage_storage import LineageWriter
from pandora_dagster.contracts.ports.measurement import Clock, Metrics, TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.recipe_execution import BudgetCompressor, RecipeCatalog, RecipeExecutor
from pandora_dagster.contracts.ports.record_storage import CallLog, Interventions
from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, Tool, ToolPermission
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore, VectorIndex
from pandora_dagster.contracts.ports.user_storage import ConversationSummaries, FactStore, MemoryStore, SourceStore
from pandora_dagster.language.timestamps import format_timestamp


@dataclass(frozen=True, slots=True)
class PhaseDependencies:
    """The ports a phase works with."""

    recipes: RecipeCatalog
    execution: RecipeExecutor
    turns: TurnStore
    index: TurnIndex
    calls: CallLog
    memory: MemoryStore
    conversations: ConversationSummaries
    interventions: Interventions
    counter: TokenMeasure
    clock: Clock
    tools: Mapping[str, Tool]
    """Tools that exist, by name."""
    scores: TextScorer
    """Relevance of each text for a query."""
    runtime: str
    """Name of the runtime in use: `extractive` or `sglang`."""
    sources: SourceStore = field(kw_only=True)
    """Cached research and visited pages."""
    context_sources: tuple[ContextSource[Any], ...] = field(kw_only=True)
    """What the Context Gatherer offers beside earlier turns, in this order. A new source is registered here."""
    facts: FactStore = field(kw_only=True)
    """Notable facts of sessions, and with consent the user's profile."""
    vectors: VectorIndex | None = None
    """Stores the vectors of turns for the search; None where embeddings are off."""
    priority: Priority = Priority.INTERACTIVE
    """Priority of the calls of a turn until its answer is stored; BATCH for a batch, for which no user waits."""
    is_maintenance: bool = False
    """True for maintenance runs: commits leave the turn's `last_activity` as it is."""
    summarizer: BudgetCompressor | None = None
    """Compresses what phases write to its budgets; None where compression is switched off: a call over its budget halts then."""
    lineage: LineageWriter | None = None
    """Stores what documents were made from when turns are completed."""
    tool_permissions: frozenset[ToolPermission] = STORE_PERMISSIONS
    """What tools may do; a tool that needs more is refused."""
    named_tools: tuple[str, ...] = ()
    """Tools of other packages, which settings name and recipes cannot: each recipe that offers tools offers these too."""
    metrics: Metrics | None = None
    """Counts the runs of tools."""
    listener: AnswerListener | None = None
    """Receives the turn's answer while it is written; None for no listener."""

    @property
    def now(self) -> str:
        """The time in whole seconds, ISO 8601 UTC."""
        return format_timestamp(self.clock().replace(microsecond=0))
