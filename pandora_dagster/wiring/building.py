"""How a house is built from settings. The only place where adapters are constructed."""

import asyncio
import os
import secrets
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pandora_dagster.contracts.governance import KeepsVersions
from pandora_dagster.contracts.ports import CountsTokens, Embeds, Meters, ModelRuntime
from pandora_dagster.contracts.tools import Tool
from pandora_dagster.contracts.words import Priority
from pandora_dagster.cookbook import Shelf, Standing
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.execution.allowance import Allowance
from pandora_dagster.execution.budgets import CallLimit
from pandora_dagster.execution.compression_log import EMBEDDED
from pandora_dagster.execution.executor import Executor
from pandora_dagster.execution.routing import Routing
from pandora_dagster.phases.flow import SECTION_OF
from pandora_dagster.phases.kit import Kit
from pandora_dagster.phases.looking_back import may_cross
from pandora_dagster.phases.recording import RecordingDesk
from pandora_dagster.runtime.extractive.runtime import ExtractiveRuntime
from pandora_dagster.runtime.offline.runtime import OfflineRuntime
from pandora_dagster.runtime.otel.spans import exported, wanted
from pandora_dagster.runtime.serving.folder import ServingFolder
from pandora_dagster.runtime.serving.waking import Waking
from pandora_dagster.runtime.sglang.endpoints import Endpoints
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.selection.overlap import Overlap
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.call_index import DuckCallIndex
from pandora_dagster.stores.call_log import CallFiles
from pandora_dagster.stores.call_meters import metering
from pandora_dagster.stores.calls import Calls
from pandora_dagster.stores.conversation_summaries import ConversationSummaryFiles
from pandora_dagster.stores.facts import FactFiles
from pandora_dagster.stores.interventions import InterventionFiles
from pandora_dagster.stores.levels import LevelFiles
from pandora_dagster.stores.limiter import LimiterFiles
from pandora_dagster.stores.lineage_index import DuckLineageIndex
from pandora_dagster.stores.lineage_keeping import LineageKeeper
from pandora_dagster.stores.memory import MemoryFiles
from pandora_dagster.stores.metrics import MetricsFile
from pandora_dagster.stores.note_index import DuckNoteIndex
from pandora_dagster.stores.notes import NoteFiles
from pandora_dagster.stores.recipe_versions import RecipeVersionFiles
from pandora_dagster.stores.research_index import DuckResearchIndex
from pandora_dagster.stores.revisions import PhaseTable
from pandora_dagster.stores.sessions import SessionFiles
from pandora_dagster.stores.sources import SourceFiles
from pandora_dagster.stores.token_ratios import TokenRatioFile
from pandora_dagster.stores.turn_index import DuckTurnIndex
from pandora_dagster.stores.turns import Turns
from pandora_dagster.stores.vault import VaultFiles
from pandora_dagster.text.tokens import TokenCounter
from pandora_dagster.tools.documents import DocSearch
from pandora_dagster.tools.memory import MemoryCreate, MemoryQuery
from pandora_dagster.wiring.compression import open_compression
from pandora_dagster.wiring.embedding import open_embedder, open_vectors
from pandora_dagster.wiring.house import House
from pandora_dagster.wiring.level_lineage import level_readers, level_rows
from pandora_dagster.wiring.lineage import Lineage


def now() -> datetime:
    """The clock of every adapter: aware, UTC."""
    return datetime.now(UTC)


def open_cookbook(settings: Settings, versions: KeepsVersions | None = None) -> Shelf:
    """The cookbook alone: its files, or with `versions` what is in production."""
    production = partial(standing, versions) if versions else None
    return Shelf(settings.cookbook_root / "recipes", settings.cookbook_root / "prompts", production)


def open_versions(settings: Settings) -> RecipeVersionFiles:
    """The store of recipe versions."""
    return RecipeVersionFiles(settings.root, clock=now)


def standing(versions: KeepsVersions, recipe: str) -> Standing:
    """What was put over the file of a recipe; raises ConfigurationError where that is damaged or gone."""
    known = versions.production(recipe)
    try:
        return Standing(versions.version(recipe, known.pinned) if known.pinned else None, known.layer)
    except (DocumentError, InputError) as error:
        raise ConfigurationError(str(error), hint=f"let the file count again: pandora recipes rollback {recipe} --to file") from error


def open_counter(settings: Settings) -> TokenCounter:
    """The token counter over the shipped vocabulary; raises ConfigurationError."""
    return TokenCounter(shipped_folder() / "data" / "tokenizer" / "cl100k_base.tiktoken")


def open_runtime(settings: Settings, counter: CountsTokens, meters: Meters | None = None) -> ModelRuntime:
    """The runtime that the settings name; raises ConfigurationError for a faulty `runtime.yaml`."""
    if settings.runtime == "sglang":
        wakes = Waking(ServingFolder(settings.root))
        return SglangRuntime(load_endpoints(settings.runtime_file), keys=os.environ, wakes=wakes, meters=meters)
    if settings.runtime == "sglang-offline":
        return OfflineRuntime(load_endpoints(settings.runtime_file), python=settings.sglang_python, environ=os.environ)
    return ExtractiveRuntime(counter, now)


def open_house(
    settings: Settings,
    *,
    runtime: ModelRuntime | None = None,
    counter: TokenCounter | None = None,
    embeds: Embeds | None = None,
    priority: Priority = Priority.LIVE,
) -> House:
    """Build every adapter, around a runtime, a counter or a maker of vectors of the caller's own where given. Nothing is written yet.

    `priority`: of the calls of turns until their answers are out; NIGHT for a batch, for which nobody waits.
    """
    root, counter, versions = settings.root, counter or open_counter(settings), open_versions(settings)
    cookbook = open_cookbook(settings, versions)
    metrics = MetricsFile(root, report=told)
    runtime = runtime or open_runtime(settings, counter, metrics)
    served = runtime.endpoints if isinstance(runtime, SglangRuntime | OfflineRuntime) else None
    turns = Turns(root, counter=counter, clock=now, phases=PhaseTable(sections=SECTION_OF))
    vectors = open_vectors(settings, embeds or open_embedder(settings), told)
    index = DuckTurnIndex.at(root / "indexes" / "turn_index.duckdb", wait_s=settings.index_lock_wait_s, vectors=vectors, clock=now)
    call_index = DuckCallIndex.at(root / "indexes" / "call_index.duckdb", wait_s=settings.index_lock_wait_s)
    spans = exported() if wanted(os.environ) else None
    hearing, settled = ((metering(metrics), spans.call), (spans.turn,)) if spans else ((metering(metrics),), ())
    calls = Calls(CallFiles(root), call_index, report=told, listeners=hearing, settled=settled)
    memory, vault = MemoryFiles(root), VaultFiles(root, enabled=settings.keep_packs)
    interventions = InterventionFiles(root, clock=now, random_hex=secrets.token_hex)
    scores = Overlap(index.reader).scores
    facts = FactFiles(root)
    search = DocSearch(turns, index, counter, scores, partial(may_cross, settings.policy, facts))
    tools: dict[str, Tool] = {t.name: t for t in (search, MemoryQuery(memory, counter, scores), MemoryCreate(memory, now))}
    execution = Executor(
        cookbook=cookbook,
        runtime=runtime,
        counter=counter,
        log=calls,
        vault=vault,
        interventions=interventions,
        clock=now,
        sleep=asyncio.sleep,
        new_call_id=_call_id,
        tools=frozenset(tools),
        limit=CallLimit(settings.default_context_budget, settings.response_token_reserve),
        ratios=TokenRatioFile(root),
        prices=served.prices if served else {},
        routing=_known_recipes(served, cookbook),
        versions=versions,
        allowance=None
        if runtime.name == EMBEDDED or priority is Priority.NIGHT
        else Allowance(LimiterFiles(root), clock=now, sleep=asyncio.sleep),
    )
    compression = open_compression(
        settings,
        execution,
        cookbook=cookbook,
        counter=counter,
        runtime=runtime,
        calls=calls,
        interventions=interventions,
        clock=now,
        new_call_id=_call_id,
    )
    sessions = SessionFiles(root)
    research_index = DuckResearchIndex.at(root / "indexes" / "research_index.duckdb", wait_s=settings.index_lock_wait_s)
    sources = SourceFiles(root, research_index)
    note_index = DuckNoteIndex.at(root / "indexes" / "note_index.duckdb", index.reader, wait_s=settings.index_lock_wait_s)
    notes = NoteFiles(root, {settings.user: settings.notes} if settings.notes else {}, note_index)
    levels = LevelFiles(root)
    lineage = Lineage(
        root,
        turns,
        counter,
        DuckLineageIndex.at(root / "indexes" / "lineage.duckdb", wait_s=settings.index_lock_wait_s),
        sources,
        notes,
        now,
        levels=level_readers(levels),
        records=(lambda: level_rows(levels, turns, counter),),
    )
    kit = Kit(
        cookbook,
        execution,
        turns,
        index,
        calls,
        memory,
        ConversationSummaryFiles(root),
        interventions,
        counter,
        now,
        tools,
        scores,
        runtime.name,
        settings.policy,
        settings.stage,
        facts=facts,
        sources=sources,
        notes=notes,
        vectors=vectors,
        priority=priority,
        lineage=LineageKeeper(lineage.index, lineage.texts, counter, report=told),
    )
    if settings.compression_enabled:
        kit = replace(kit, summarizer=compression.sections)
    recording = RecordingDesk(turns, sessions, index, index.reader, vectors)
    return House(
        settings,
        kit,
        runtime,
        vault,
        sessions,
        index,
        recording,
        asyncio.Runner(),
        compression,
        calls,
        sources,
        research_index,
        vectors,
        metrics,
        versions,
        lineage,
    )


def _known_recipes(served: Endpoints | None, cookbook: Shelf) -> Routing | None:
    """The routing policy; raises ConfigurationError where it names a recipe that is not there."""
    routing = served.routing if served else None
    if served and routing and (unknown := [name for name in routing.recipes if name not in cookbook.names()]):
        raise ConfigurationError(
            f"{served.source}: {served.preset}.routing.recipes: {', '.join(unknown)}: expected recipes as pandora recipes list names them"
        )
    return routing


def _call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def told(sentence: str) -> None:
    """A note beside the result; nothing depends on it."""
    sys.stderr.write(f"pandora: {sentence}\n")
