"""What a phase may use: the ports, in one frozen bundle. `wiring` fills it; tests fill it with fakes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.ports.lineage_storage import LineageWriter
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.recipe_execution import BudgetCompressor, RecipeCatalog, RecipeExecutor
from pandora_dagster.contracts.ports.record_storage import CallLog, Interventions
from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, Tool, ToolPermission
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore, VectorIndex
from pandora_dagster.contracts.ports.user_storage import ConversationSummaries, FactStore, MemoryStore, NoteStore, SourceStore
from pandora_dagster.retrieval.turn_excerpts import TextScorer


@dataclass(frozen=True, slots=True)
class PhaseDependencies:
    """The ports a phase works with."""

    cookbook: RecipeCatalog
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
    """How much each text says about a query."""
    runtime: str
    """Name of the runtime in use: `extractive` or `sglang`."""
    policy: str = "assistant"
    """Which prompt blocks and windows apply (DECISIONS 27, 28)."""
    sources: SourceStore = field(kw_only=True)
    """Cached research and visited pages."""
    notes: NoteStore = field(kw_only=True)
    stage: str = ""
    """The policy's stage that a conversation is in; "" for the intent of each query."""
    facts: FactStore = field(kw_only=True)
    """Notable facts of sessions, and with consent the person's profile."""
    vectors: VectorIndex | None = None
    """Keeps the vectors of turns for the search; None where embeddings are off."""
    priority: Priority = Priority.INTERACTIVE
    """Of the calls of a turn until its answer is out; NIGHT for a batch, for which nobody waits."""
    at_rest: bool = False
    """True where what phases commit is nobody's activity: the turn's `last_activity` stays as it is."""
    summarizer: BudgetCompressor | None = None
    """Keeps what phases write within its budgets; None where compression is switched off: a call over its budget halts then."""
    lineage: LineageWriter | None = None
    """Writes what documents were made from, as turns come to rest."""
    tool_permissions: frozenset[ToolPermission] = STORE_PERMISSIONS
    """What tools may do; a tool that needs more is refused."""
    listener: AnswerListener | None = None
    """Told the turn's answer while it is written; None where nobody listens."""
