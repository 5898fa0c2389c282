"""The parts that compress, built and connected: the engine, the calls' summarizer, the turn's section budgets."""

from collections.abc import Callable
from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallLog, Interventions
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.execution.fit.compression_log import EMBEDDED, CompressionLog, EventLogger, json_lines
from pandora_dagster.execution.fit.compression_plan import BudgetChecker
from pandora_dagster.execution.fit.model_compression import ModelCompression
from pandora_dagster.execution.fit.section_budgets import SectionBudgets, SoftLimits
from pandora_dagster.execution.fit.smart_summarizer import SmartSummarizer
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.settings import Settings


@dataclass(frozen=True, slots=True)
class CompressionStack:
    """What a house compresses with; `log.metrics` counts it."""

    engine: SummarizationEngine
    calls: SmartSummarizer
    sections: SectionBudgets
    log: CompressionLog


def open_compression_stack(
    settings: Settings,
    execution: Executor,
    *,
    cookbook: RecipeCatalog,
    counter: TokenMeasure,
    runtime: ModelRuntime,
    calls: CallLog,
    interventions: Interventions,
    clock: Clock,
    new_call_id: Callable[[], str],
    say: EventLogger | None = None,
) -> CompressionStack:
    """Build the parts over `execution`, which compresses the documents of its calls from then on, unless that is switched off."""
    log = CompressionLog(calls, clock, new_call_id, say or json_lines())
    layer = ModelLayer(settings.compression_model_layer)
    engine = SummarizationEngine(
        cookbook=cookbook,
        counter=counter,
        clock=clock,
        log=log,
        model=None if runtime.name == EMBEDDED else ModelCompression(execution, counter, layer),
        runtime=runtime.name,
        layer=layer,
        served=runtime.model,
        cache_ttl_s=settings.compression_cache_ttl_s,
    )
    summarizer = SmartSummarizer(engine, BudgetChecker(counter.count), counter, log)
    if settings.compression_enabled:
        execution.use_fitter(summarizer)
    limits = SoftLimits(settings.compression_threshold, settings.min_compression_savings)
    return CompressionStack(engine, summarizer, SectionBudgets(engine, counter, interventions, log, limits), log)
