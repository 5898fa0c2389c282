"""The composition root: settings in, an open application out. With `store_adapters`, the only place that constructs adapters."""

import asyncio
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pandora_dagster.app.adapters.store_adapters import (
    StoreAdapters,
    open_research_run_sweep,
    open_store_adapters,
)
from pandora_dagster.app.application import App, CompressionStack
from pandora_dagster.app.services import Services
from pandora_dagster.app.web.web_tools import open_named_tools, open_web_tools
from pandora_dagster.contracts.enums import ModelLayer, Priority
from pandora_dagster.contracts.ports.measurement import Metrics, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel, ModelRuntime, TokenRatios
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallLog, Interventions, RecipeVersionStore, Vault
from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, Tool
from pandora_dagster.documents.redaction.printable_text import printable
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.execution.call.layer_routing import Routing
from pandora_dagster.execution.call.session_rate_limit import SessionRateLimit
from pandora_dagster.execution.fit.call_budget import CallLimit
from pandora_dagster.execution.fit.compression_log import EMBEDDED, CompressionLog, EventLogger, json_lines
from pandora_dagster.execution.fit.section_budgets import SectionBudgets, SoftLimits
from pandora_dagster.execution.fit.smart_summarizer import SmartSummarizer
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.flow.phase_table import MEANING_RECIPE, phase_effects
from pandora_dagster.phases.gather.memory_source import MemorySource
from pandora_dagster.phases.gather.note_source import NoteSource
from pandora_dagster.phases.gather.research_source import ResearchSource
from pandora_dagster.phases.gather.visit_source import VisitSource
from pandora_dagster.recipes.recipe_loader import RecipeLoader, RecipeOverride
from pandora_dagster.retrieval.term_overlap import TermOverlap
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.token_counter import TokenCounter
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.calls.metrics_file import MetricsFile
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids
from pandora_dagster.stores.lineage.lineage_index import LineageIndexWriter
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles
from pandora_dagster.stores.user.session_files import LimiterFiles
from pandora_dagster.tools.tool_registry import TOOL_NAMES, build_tools

if TYPE_CHECKING:
    from pandora_dagster.app.health import HealthService, ServerChecks
    from pandora_dagster.app.index_service import IndexService
    from pandora_dagster.runtime.sglang.endpoints import Endpoints


def open_embedder(settings: Settings) -> EmbeddingModel | None:
    """The embedding model; None where embeddings are off. Raises ConfigurationError for a runtime file without an embeddings server."""
    if settings.embeddings == "off":
        return None
    from pandora_dagster.app.servers.served_models import open_embeddings

    return open_embeddings(settings)


def utc_now() -> datetime:
    """The clock of every adapter: aware, UTC."""
    return datetime.now(UTC)


def open_recipe_loader(settings: Settings, versions: RecipeVersionStore | None = None) -> RecipeLoader:
    """The recipe loader: over the files alone, or with `versions` over what is in production."""
    production = partial(production_override, versions) if versions else None
    return RecipeLoader(settings.recipes_root / "recipes", settings.recipes_root / "prompts", production)


def open_versions(settings: Settings) -> RecipeVersionFiles:
    """The store of recipe versions."""
    return RecipeVersionFiles(settings.root, clock=utc_now)


def production_override(versions: RecipeVersionStore, recipe: str) -> RecipeOverride:
    """The version and layer in production in place of a recipe's file; raises ConfigurationError where the version is damaged or gone."""
    production = versions.production(recipe)
    try:
        return RecipeOverride(versions.version(recipe, production.pinned) if production.pinned else None, production.layer)
    except (DocumentError, InputError) as error:
        raise ConfigurationError(str(error), hint=f"return to the file: pandora recipes rollback {recipe} --to file") from error


def open_counter() -> TokenCounter:
    """The token counter over the shipped vocabulary; raises ConfigurationError."""
    return TokenCounter(shipped_folder() / "data" / "tokenizer" / "cl100k_base.tiktoken")


def open_runtime(settings: Settings, counter: TokenMeasure, meters: Metrics | None = None) -> ModelRuntime:
    """The runtime that the settings name; raises ConfigurationError for a faulty `runtime.yaml`."""
    if settings.runtime == EMBEDDED:
        return ExtractiveRuntime(counter, utc_now)
    from pandora_dagster.app.servers.served_models import open_served_runtime

    return open_served_runtime(settings, meters)


def _served_endpoints(runtime: ModelRuntime) -> "Endpoints | None":
    """The endpoints of the runtime file that a runtime calls; None for a runtime without servers."""
    if runtime.name == EMBEDDED:
        return None
    from pandora_dagster.app.servers.served_models import served_endpoints

    return served_endpoints(runtime)


def open_executor(
    settings: Settings,
    *,
    recipes: RecipeCatalog,
    counter: TokenMeasure,
    runtime: ModelRuntime,
    calls: CallLog,
    vault: Vault,
    interventions: Interventions,
    new_call_id: Callable[[], str],
    log_event: EventLogger | None = None,
    ratios: TokenRatios | None = None,
    routing: Routing | None = None,
    versions: RecipeVersionStore | None = None,
    rate_limit: SessionRateLimit | None = None,
) -> tuple[Executor, CompressionStack]:
    """The executor of recipe calls and the compression over it, which compresses the documents of its calls unless it is switched off."""
    served = _served_endpoints(runtime)
    execution = Executor(
        recipes=recipes,
        runtime=runtime,
        counter=counter,
        log=calls,
        vault=vault,
        interventions=interventions,
        clock=utc_now,
        sleep=asyncio.sleep,
        new_call_id=new_call_id,
        tools=TOOL_NAMES,
        limit=CallLimit(settings.default_context_budget, settings.response_token_reserve),
        ratios=ratios,
        prices=served.prices if served else {},
        routing=routing,
        versions=versions,
        rate_limit=rate_limit,
        timeout_factor=settings.timeout_factor,
    )
    log = CompressionLog(calls, utc_now, new_call_id, log_event or json_lines())
    layer = ModelLayer(settings.compression_model_layer)
    engine = SummarizationEngine(
        recipes=recipes,
        counter=counter,
        clock=utc_now,
        log=log,
        model=None if runtime.name == EMBEDDED else execution,
        meaning=MEANING_RECIPE,
        runtime=runtime.name,
        layer=layer,
        served=runtime.model,
        cache_ttl_s=settings.compression_cache_ttl_s,
    )
    if settings.compression_enabled:
        execution.use_fitter(SmartSummarizer(engine, counter, log))
    limits = SoftLimits(settings.compression_threshold, settings.min_compression_savings)
    return execution, CompressionStack(engine, SectionBudgets(engine, counter, interventions, log, limits))


def open_app(
    settings: Settings,
    *,
    runtime: ModelRuntime | None = None,
    counter: TokenCounter | None = None,
    embeds: EmbeddingModel | None = None,
    priority: Priority = Priority.INTERACTIVE,
) -> App:
    """The application over `settings`, with a runtime, counter or embedding model of the caller's own where given. Writes nothing.

    `priority`: of the calls of turns until their answers are stored; BATCH where no user waits. Raises ConfigurationError.
    """
    counter, versions = counter or open_counter(), open_versions(settings)
    recipes, metrics = open_recipe_loader(settings, versions), MetricsFile(settings.root, report=print_notice)
    runtime = runtime or open_runtime(settings, counter, metrics)
    embedder = embeds or open_embedder(settings)
    stores = open_store_adapters(settings, counter, utc_now, embeddings=embedder, metrics=metrics, report=print_notice)
    execution, compression = open_executor(
        settings,
        recipes=recipes,
        counter=counter,
        runtime=runtime,
        calls=stores.calls,
        vault=stores.vault,
        interventions=stores.interventions,
        new_call_id=_new_call_id,
        ratios=TokenRatioFile(settings.root),
        routing=_checked_routing(runtime, recipes),
        versions=versions,
        rate_limit=_rate_limit(settings, runtime, priority),
    )
    web_tools = open_web_tools(settings, stores, utc_now, execution, recipes, runtime, report=print_notice)
    named_tools = open_named_tools(settings, report=print_notice)
    deps = _phase_dependencies(stores, execution, recipes, counter, runtime.name, priority, web_tools, named_tools, metrics)
    return App(
        settings=settings,
        dependencies=replace(deps, summarizer=compression.sections) if settings.compression_enabled else deps,
        runtime=runtime,
        vault=stores.vault,
        research_runs=open_research_run_sweep(settings),
        sessions=stores.sessions,
        continuations=stores.continuations,
        turn_index=stores.index,
        loop=asyncio.Runner(),
        compression=compression,
        calls=stores.calls,
        vectors=stores.vectors,
        embedder=embedder,
        archive=stores.archive,
        records=stores.records,
        versions=versions,
        services=Services(settings, stores, counter, utc_now, partial(_open_health, settings, stores, runtime, recipes, versions)),
        on_close=metrics.flush,
    )


def _rate_limit(settings: Settings, runtime: ModelRuntime, priority: Priority) -> SessionRateLimit | None:
    """The limit of the sessions of live turns that a model server answers; None for other turns."""
    if runtime.name == EMBEDDED or priority is Priority.BATCH:
        return None
    return SessionRateLimit(LimiterFiles(settings.root), clock=utc_now, sleep=asyncio.sleep)


def _phase_dependencies(
    stores: StoreAdapters,
    execution: Executor,
    recipes: RecipeLoader,
    counter: TokenMeasure,
    runtime: str,
    priority: Priority,
    web_tools: tuple[Tool, ...],
    named_tools: tuple[Tool, ...],
    metrics: Metrics,
) -> PhaseDependencies:
    """The ports that phases work with, tools included."""
    scores = TermOverlap(stores.index.reader).scores
    further_tools = (*web_tools, *named_tools)
    tools = build_tools(stores.turns, stores.index, stores.memory, counter, scores, utc_now, *further_tools)
    return PhaseDependencies(
        recipes,
        execution,
        stores.turns,
        stores.index,
        stores.calls,
        stores.memory,
        stores.summaries,
        stores.interventions,
        counter,
        utc_now,
        tools,
        scores,
        runtime,
        facts=stores.facts,
        sources=stores.sources,
        context_sources=(
            MemorySource(stores.memory),
            ResearchSource(stores.sources),
            VisitSource(stores.sources, stores.index),
            NoteSource(stores.notes),
        ),
        vectors=stores.vectors,
        priority=priority,
        tool_permissions=STORE_PERMISSIONS.union(*(tool.spec.permissions for tool in further_tools)),
        named_tools=tuple(tool.spec.name for tool in named_tools),
        metrics=metrics,
        lineage=LineageIndexWriter(stores.lineage_index, stores.document_texts, counter, phases=phase_effects(), report=print_notice),
    )


def _open_health(
    settings: Settings,
    stores: StoreAdapters,
    runtime: ModelRuntime,
    recipes: RecipeLoader,
    versions: RecipeVersionStore,
    indexes: "IndexService",
) -> "HealthService":
    """The health checks of the store and, for the runtimes `sglang` and `openai`, of their servers."""
    from pandora_dagster.app.health import HealthService

    return HealthService(
        settings=settings,
        runtime=runtime,
        catalog=recipes,
        versions=versions,
        indexes=indexes,
        calls=stores.calls.index,
        notes=stores.notes,
        memory=stores.memory,
        users=partial(user_ids, Layout(settings.root)),
        servers=_open_server_checks(settings, runtime),
        vectors=stores.vectors,
    )


def _open_server_checks(settings: Settings, runtime: ModelRuntime) -> "ServerChecks | None":
    if runtime.name == EMBEDDED:
        return None
    from pandora_dagster.app.servers.served_models import open_server_checks

    return open_server_checks(settings, runtime, TokenRatioFile(settings.root))


def _checked_routing(runtime: ModelRuntime, recipes: RecipeLoader) -> Routing | None:
    """The routing policy; raises ConfigurationError where it names an unknown recipe."""
    served = _served_endpoints(runtime)
    routing = served.routing if served else None
    if served and routing and (unknown := [name for name in routing.recipes if name not in recipes.names()]):
        raise ConfigurationError(
            f"{served.source}: {served.preset}.routing.recipes: {', '.join(unknown)}: expected recipes as pandora recipes list names them"
        )
    return routing


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def print_notice(sentence: str) -> None:
    """Write a notice to stderr."""
    sys.stderr.write(f"pandora: {printable(sentence)}\n")
