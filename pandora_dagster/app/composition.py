"""How a house is built from settings. The only place where adapters are constructed."""

import asyncio
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pandora_dagster.app.application import App
from pandora_dagster.app.compression_stack import open_compression_stack
from pandora_dagster.app.lineage_service import LineageService, level_readers, level_rows
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ports.measurement import Metrics, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel, ModelRuntime
from pandora_dagster.contracts.ports.record_storage import RecipeVersionStore
from pandora_dagster.contracts.ports.tool import Tool
from pandora_dagster.documents.tokens import TokenCounter
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.execution.call.layer_routing import Routing
from pandora_dagster.execution.call.session_rate_limit import SessionRateLimit
from pandora_dagster.execution.fit.call_budget import CallLimit
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.flow.turn_flow import SECTION_OF
from pandora_dagster.phases.gather.retrieval_scope import may_cross_sessions
from pandora_dagster.recipes import RecipeLoader, RecipeOverride
from pandora_dagster.retrieval.term_overlap import TermOverlap
from pandora_dagster.runtime.embedding.local_embedder import LocalEmbedder
from pandora_dagster.runtime.embedding.server_embedder import ServerEmbedder
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.offline.offline_runtime import OfflineRuntime
from pandora_dagster.runtime.otel.call_spans import exporting_spans, is_exporter_configured
from pandora_dagster.runtime.serving.on_demand_start import OnDemandStart
from pandora_dagster.runtime.serving.serving_folder import ServingFolder
from pandora_dagster.runtime.sglang.endpoints import Endpoints
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import Settings, process_environment, set_process_variables
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.calls.call_index import DuckCallIndex
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.calls.metrics_file import MetricsFile, metrics_listener
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.lineage.lineage_index import DuckLineageIndex, LineageIndexWriter
from pandora_dagster.stores.records.intervention_files import InterventionFiles
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_vectors import TurnVectors
from pandora_dagster.stores.turns.revisions import PhaseTable
from pandora_dagster.stores.turns.turn_files import TurnFiles
from pandora_dagster.stores.user.fact_files import FactFiles
from pandora_dagster.stores.user.level_files import LevelFiles
from pandora_dagster.stores.user.memory_files import MemoryFiles
from pandora_dagster.stores.user.note_files import NoteFiles
from pandora_dagster.stores.user.note_index import DuckNoteIndex
from pandora_dagster.stores.user.research_index import DuckResearchIndex
from pandora_dagster.stores.user.session_files import ConversationSummaryFiles, LimiterFiles, SessionFiles
from pandora_dagster.stores.user.source_files import SourceFiles
from pandora_dagster.tools.document_search import DocSearch
from pandora_dagster.tools.memory_tools import MemoryCreate, MemoryQuery
from pandora_dagster.transfer.conversation_import import ImportContext

# Whose vectors the search uses, as the settings say.


def open_embedder(settings: Settings) -> EmbeddingModel | None:
    """What makes vectors; None where embeddings are off. Raises ConfigurationError for a runtime file that names no server for them."""
    if settings.embeddings == "local":
        return LocalEmbedder(set_process_variables)
    if settings.embeddings == "off":
        return None
    endpoints = load_endpoints(settings.runtime_file)
    if endpoints.embeddings is None:
        raise ConfigurationError(
            f"{settings.runtime_file}: preset {endpoints.preset}: embeddings is missing: expected a server's name",
            hint="Name the server that makes vectors, or set PANDORA_EMBEDDINGS to local or off.",
        )
    return ServerEmbedder(endpoints.embeddings, keys=process_environment())


def open_vectors(settings: Settings, embeds: EmbeddingModel | None, report: Callable[[str], None]) -> TurnVectors | None:
    """The vectors of a store; None where nothing makes any."""
    if embeds is None:
        return None
    path = settings.root / "indexes" / "turn_vectors.duckdb"
    return TurnVectors.at(path, embeds, report=report, wait_s=settings.index_lock_wait_s)


def utc_now() -> datetime:
    """The clock of every adapter: aware, UTC."""
    return datetime.now(UTC)


def open_recipe_loader(settings: Settings, versions: RecipeVersionStore | None = None) -> RecipeLoader:
    """The cookbook alone: its files, or with `versions` what is in production."""
    production = partial(production_override, versions) if versions else None
    return RecipeLoader(settings.cookbook_root / "recipes", settings.cookbook_root / "prompts", production)


def open_versions(settings: Settings) -> RecipeVersionFiles:
    """The store of recipe versions."""
    return RecipeVersionFiles(settings.root, clock=utc_now)


def production_override(versions: RecipeVersionStore, recipe: str) -> RecipeOverride:
    """What was put over the file of a recipe; raises ConfigurationError where that is damaged or gone."""
    known = versions.production(recipe)
    try:
        return RecipeOverride(versions.version(recipe, known.pinned) if known.pinned else None, known.layer)
    except (DocumentError, InputError) as error:
        raise ConfigurationError(str(error), hint=f"let the file count again: pandora recipes rollback {recipe} --to file") from error


def open_counter(settings: Settings) -> TokenCounter:
    """The token counter over the shipped vocabulary; raises ConfigurationError."""
    return TokenCounter(shipped_folder() / "data" / "tokenizer" / "cl100k_base.tiktoken")


def open_runtime(settings: Settings, counter: TokenMeasure, meters: Metrics | None = None) -> ModelRuntime:
    """The runtime that the settings name; raises ConfigurationError for a faulty `runtime.yaml`."""
    if settings.runtime == "sglang":
        wakes = OnDemandStart(ServingFolder(settings.root))
        return SglangRuntime(load_endpoints(settings.runtime_file), keys=process_environment(), wakes=wakes, meters=meters)
    if settings.runtime == "sglang-offline":
        return OfflineRuntime(load_endpoints(settings.runtime_file), python=settings.sglang_python, environ=process_environment())
    return ExtractiveRuntime(counter, utc_now)


def open_app(
    settings: Settings,
    *,
    runtime: ModelRuntime | None = None,
    counter: TokenCounter | None = None,
    embeds: EmbeddingModel | None = None,
    priority: Priority = Priority.INTERACTIVE,
) -> App:
    """Build every adapter, around a runtime, a counter or a maker of vectors of the caller's own where given. Nothing is written yet.

    `priority`: of the calls of turns until their answers are out; NIGHT for a batch, for which nobody waits.
    """
    root, counter, versions = settings.root, counter or open_counter(settings), open_versions(settings)
    cookbook = open_recipe_loader(settings, versions)
    metrics = MetricsFile(root, report=print_notice)
    runtime = runtime or open_runtime(settings, counter, metrics)
    served = runtime.endpoints if isinstance(runtime, SglangRuntime | OfflineRuntime) else None
    turns = TurnFiles(root, counter=counter, clock=utc_now, phases=PhaseTable(sections=SECTION_OF))
    vectors = open_vectors(settings, embeds or open_embedder(settings), print_notice)
    index = DuckTurnIndex.at(root / "indexes" / "turn_index.duckdb", wait_s=settings.index_lock_wait_s, vectors=vectors, clock=utc_now)
    call_index = DuckCallIndex.at(root / "indexes" / "call_index.duckdb", wait_s=settings.index_lock_wait_s)
    spans = exporting_spans() if is_exporter_configured(process_environment()) else None
    hearing, settled = ((metrics_listener(metrics), spans.call), (spans.turn,)) if spans else ((metrics_listener(metrics),), ())
    calls = IndexedCallLog(CallFiles(root), call_index, report=print_notice, listeners=hearing, settled=settled)
    memory, vault = MemoryFiles(root), VaultFiles(root, enabled=settings.keep_packs)
    interventions = InterventionFiles(root, clock=utc_now, random_hex=secrets.token_hex)
    scores = TermOverlap(index.reader).scores
    facts = FactFiles(root)
    search = DocSearch(turns, index, counter, scores, partial(may_cross_sessions, settings.policy, facts))
    tools: dict[str, Tool] = {t.name: t for t in (search, MemoryQuery(memory, counter, scores), MemoryCreate(memory, utc_now))}
    execution = Executor(
        cookbook=cookbook,
        runtime=runtime,
        counter=counter,
        log=calls,
        vault=vault,
        interventions=interventions,
        clock=utc_now,
        sleep=asyncio.sleep,
        new_call_id=_new_call_id,
        tools=frozenset(tools),
        limit=CallLimit(settings.default_context_budget, settings.response_token_reserve),
        ratios=TokenRatioFile(root),
        prices=served.prices if served else {},
        routing=_checked_routing(served, cookbook),
        versions=versions,
        allowance=None
        if runtime.name == EMBEDDED or priority is Priority.BATCH
        else SessionRateLimit(LimiterFiles(root), clock=utc_now, sleep=asyncio.sleep),
    )
    compression = open_compression_stack(
        settings,
        execution,
        cookbook=cookbook,
        counter=counter,
        runtime=runtime,
        calls=calls,
        interventions=interventions,
        clock=utc_now,
        new_call_id=_new_call_id,
    )
    sessions = SessionFiles(root)
    research_index = DuckResearchIndex.at(root / "indexes" / "research_index.duckdb", wait_s=settings.index_lock_wait_s)
    sources = SourceFiles(root, research_index)
    note_index = DuckNoteIndex.at(root / "indexes" / "note_index.duckdb", index.reader, wait_s=settings.index_lock_wait_s)
    notes = NoteFiles(root, {settings.user: settings.notes} if settings.notes else {}, note_index)
    levels = LevelFiles(root)
    lineage = LineageService(
        root,
        turns,
        counter,
        DuckLineageIndex.at(root / "indexes" / "lineage.duckdb", wait_s=settings.index_lock_wait_s),
        sources,
        notes,
        utc_now,
        levels=level_readers(levels),
        records=(lambda: level_rows(levels, turns, counter),),
    )
    deps = PhaseDependencies(
        cookbook,
        execution,
        turns,
        index,
        calls,
        memory,
        ConversationSummaryFiles(root),
        interventions,
        counter,
        utc_now,
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
        lineage=LineageIndexWriter(lineage.index, lineage.texts, counter, report=print_notice),
    )
    if settings.compression_enabled:
        deps = replace(deps, summarizer=compression.sections)
    recording = ImportContext(turns, sessions, index, index.reader, vectors)
    return App(
        settings,
        deps,
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


def _checked_routing(served: Endpoints | None, cookbook: RecipeLoader) -> Routing | None:
    """The routing policy; raises ConfigurationError where it names a recipe that is not there."""
    routing = served.routing if served else None
    if served and routing and (unknown := [name for name in routing.recipes if name not in cookbook.names()]):
        raise ConfigurationError(
            f"{served.source}: {served.preset}.routing.recipes: {', '.join(unknown)}: expected recipes as pandora recipes list names them"
        )
    return routing


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def print_notice(sentence: str) -> None:
    """A note beside the result; nothing depends on it."""
    sys.stderr.write(f"pandora: {sentence}\n")
