"""What a phase may use: the ports, in one frozen bundle. `wiring` fills it; tests fill it with fakes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pandora_dagster.contracts.lineage import KeepsLineage
from pandora_dagster.contracts.listening import Listens
from pandora_dagster.contracts.ports import (
    CallLog,
    Clock,
    Cookbook,
    CountsTokens,
    Executes,
    Interventions,
    KeepsVectors,
    Summarizes,
    TurnIndex,
    TurnStore,
)
from pandora_dagster.contracts.remembered import ConversationSummaries, FactBook, MemoryStore, NoteStore, SourceStore
from pandora_dagster.contracts.tools import Tool
from pandora_dagster.contracts.words import Priority
from pandora_dagster.selection.excerpts import Scores


@dataclass(frozen=True, slots=True)
class Kit:
    """The ports a phase works with."""

    cookbook: Cookbook
    execution: Executes
    turns: TurnStore
    index: TurnIndex
    calls: CallLog
    memory: MemoryStore
    conversations: ConversationSummaries
    interventions: Interventions
    counter: CountsTokens
    clock: Clock
    tools: Mapping[str, Tool]
    """Tools that exist, by name."""
    scores: Scores
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
    facts: FactBook = field(kw_only=True)
    """Notable facts of sessions, and with consent the person's profile."""
    vectors: KeepsVectors | None = None
    """Keeps the vectors of turns for the search; None where embeddings are off."""
    priority: Priority = Priority.LIVE
    """Of the calls of a turn until its answer is out; NIGHT for a batch, for which nobody waits."""
    at_rest: bool = False
    """True where what phases commit is nobody's activity: the turn's `last_activity` stays as it is."""
    summarizer: Summarizes | None = None
    """Keeps what phases write within its budgets; None where compression is switched off: a call over its budget halts then."""
    lineage: KeepsLineage | None = None
    """Writes what documents were made from, as turns come to rest."""
    listener: Listens | None = None
    """Told the turn's answer while it is written; None where nobody listens."""
