"""Phases and whole turns over stores in memory: no DuckDB, no disk, and the recipes are read once in a test process."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from pandora_dagster.app.application import CompressionStack
from pandora_dagster.app.composition import open_executor
from pandora_dagster.contracts.ids import TurnKey, session_id, user_id
from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.execution.call.session_rate_limit import SessionRateLimit
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.language.terms import TermReader
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.phases.flow.phase_table import phase_effects
from pandora_dagster.phases.flow.turn_answer import TurnAnswer, read_answer
from pandora_dagster.phases.gather.memory_source import MemorySource
from pandora_dagster.phases.gather.note_source import NoteSource
from pandora_dagster.phases.gather.research_source import ResearchSource
from pandora_dagster.phases.gather.visit_source import VisitSource
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.retrieval.term_overlap import TermOverlap
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, verify_turns
from pandora_dagster.tools.tool_registry import build_tools
from pandora_dagster.transfer.conversation_import import ImportContext, ImportReport, import_conversations
from tests.fakes.record_stores import MemoryCallLog, MemoryInterventions, MemoryLineageWriter, MemoryRateLimitStates, MemoryVault
from tests.fakes.search_index import MemorySearchIndex
from tests.fakes.turn_store import MemoryTurnStore, utc_now
from tests.fakes.user_stores import (
    MemoryConversationSummaries,
    MemoryEntryStore,
    MemoryFactStore,
    MemoryNoteStore,
    MemorySessions,
    MemorySourceStore,
)
from tests.phases.vocabulary import vocabulary

_READER = TermReader()
T = TypeVar("T")


@cache
def shipped_recipes() -> RecipeLoader:
    """The shipped recipes as files; each is read once."""
    root = load_settings({}).recipes_root
    return RecipeLoader(root / "recipes", root / "prompts", None)


@dataclass(frozen=True)
class LightApp:
    """What a test uses of an application, without its storage."""

    dependencies: PhaseDependencies
    runtime: ModelRuntime
    turns: MemoryTurnStore
    turn_index: MemorySearchIndex
    calls: MemoryCallLog
    vault: MemoryVault
    interventions: MemoryInterventions
    lineage: MemoryLineageWriter
    notes: MemoryNoteStore
    sessions: MemorySessions
    compression: CompressionStack
    loop: asyncio.Runner

    @property
    def recipes(self) -> RecipeLoader:
        return shipped_recipes()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def start(self, query: str, *, user: str = "", session: str = "", mode: str = "chat") -> TurnKey:
        owner, where = user_id(user or "anna"), session_id(session or "s1")
        return turn_flow.start_turn(self.dependencies, query, user=owner, session=where, mode=mode)

    def run_turn(self, key: TurnKey, *, on_report: Callable[[PhaseReport], None]) -> PhaseReport:
        return self.run(turn_flow.run_turn(key, self.dependencies, on_report=on_report))

    def pending_phases(self, key: TurnKey) -> tuple[str, ...]:
        return turn_flow.unfinished_phases(key, self.dependencies)

    def answer_of(self, key: TurnKey, turn: Turn | None = None) -> TurnAnswer:
        return read_answer(self.dependencies, key, turn)

    def with_listener(self, listener: AnswerListener) -> "LightApp":
        return replace(self, dependencies=replace(self.dependencies, listener=listener))

    @property
    def indexes(self) -> "LightIndexes":
        return LightIndexes(self)

    @property
    def transfer(self) -> "LightTransfer":
        return LightTransfer(self)

    def close(self) -> None:
        self.loop.run(self.runtime.aclose())
        self.loop.close()


@dataclass(frozen=True)
class LightIndexes:
    """The index service over stores in memory."""

    app: LightApp

    def verify(self) -> tuple[str, ...]:
        """Differences between the documents and the rows of the turn index, as sentences."""
        return verify_turns(self.app.turns, self.app.turn_index, Preambles(self.app.sessions))


@dataclass(frozen=True)
class LightTransfer:
    """The import of conversations into stores in memory."""

    app: LightApp

    def import_conversations(self, lines: Iterable[bytes], *, where: str) -> ImportReport:
        context = ImportContext(self.app.turns, self.app.sessions, self.app.turn_index, _READER)
        return import_conversations(lines, context, where=where, progress=lambda report: None)


def open_light_app(runtime: ModelRuntime, **environment: str) -> LightApp:
    """An application in memory around `runtime`; `environment`: settings by their environment variables."""
    settings, counter, recipes = load_settings({"PANDORA_ROOT": "/nonexistent", **environment}), vocabulary(), shipped_recipes()
    turns, index = MemoryTurnStore(counter, phase_effects()), MemorySearchIndex()
    calls, vault, interventions, memory = MemoryCallLog(), MemoryVault(), MemoryInterventions(), MemoryEntryStore()
    facts, notes, lineage = MemoryFactStore(), MemoryNoteStore(), MemoryLineageWriter()
    scores = TermOverlap(_READER).scores
    sources = MemorySourceStore()
    tools = build_tools(turns, index, memory, counter, scores, utc_now)
    execution, compression = open_executor(
        settings,
        recipes=recipes,
        counter=counter,
        runtime=runtime,
        calls=calls,
        vault=vault,
        interventions=interventions,
        new_call_id=_new_call_id,
        rate_limit=None if runtime.name == EMBEDDED else SessionRateLimit(MemoryRateLimitStates(), clock=utc_now, sleep=asyncio.sleep),
    )
    dependencies = PhaseDependencies(
        recipes,
        execution,
        turns,
        index,
        calls,
        memory,
        MemoryConversationSummaries(),
        interventions,
        counter,
        utc_now,
        tools,
        scores,
        runtime.name,
        facts=facts,
        sources=sources,
        context_sources=(MemorySource(memory), ResearchSource(sources), VisitSource(sources, index), NoteSource(notes)),
        lineage=lineage,
        summarizer=compression.sections if settings.compression_enabled else None,
    )
    runner = asyncio.Runner()
    return LightApp(dependencies, runtime, turns, index, calls, vault, interventions, lineage, notes, MemorySessions(), compression, runner)


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"
