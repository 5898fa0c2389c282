"""The adapters of one store: its files, DuckDB indexes and records. Part of the composition root: constructs, decides nothing."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pandora_dagster.app.index_service import FaultCallback, IndexService, ProgressCallback, StoredIndex
from pandora_dagster.app.lineage_service import LineageService, level_readers, level_rows
from pandora_dagster.app.transfer_service import TransferService
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel
from pandora_dagster.phases.flow.phase_table import phases_ending_in, section_writers
from pandora_dagster.runtime.call_spans import exporting_spans, is_exporter_configured
from pandora_dagster.settings import Settings, process_environment
from pandora_dagster.stores.calls.call_index import DuckCallIndex
from pandora_dagster.stores.calls.call_index_rebuild import rebuild_calls, verify_calls
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.calls.metrics_file import MetricsFile, metrics_listener
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.disk.turn_directory import FirstDay
from pandora_dagster.stores.lineage.lineage_index import DuckLineageIndex
from pandora_dagster.stores.records.intervention_files import InterventionFiles
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, RebuildReport, document_rows, rebuild_turns, verify_turns
from pandora_dagster.stores.search.turn_vectors import TurnVectors
from pandora_dagster.stores.turns.revisions import PhaseTable
from pandora_dagster.stores.turns.turn_files import TurnFiles
from pandora_dagster.stores.user.fact_files import FactFiles
from pandora_dagster.stores.user.level_files import LevelFiles
from pandora_dagster.stores.user.memory_files import MemoryFiles
from pandora_dagster.stores.user.note_files import NoteFiles
from pandora_dagster.stores.user.note_index import DuckNoteIndex
from pandora_dagster.stores.user.session_files import ConversationSummaryFiles, SessionFiles
from pandora_dagster.stores.user.source_files import DuckResearchIndex, SourceFiles, rebuild_sources, verify_sources
from pandora_dagster.transfer.conversation_import import ImportContext

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StoreAdapters:
    """Every adapter of one store. Nothing is written before the first use of an adapter."""

    turns: TurnFiles
    index: DuckTurnIndex
    vectors: TurnVectors | None
    calls: IndexedCallLog
    vault: VaultFiles
    interventions: InterventionFiles
    sessions: SessionFiles
    summaries: ConversationSummaryFiles
    memory: MemoryFiles
    facts: FactFiles
    sources: SourceFiles
    research_index: DuckResearchIndex
    notes: NoteFiles


def open_store_adapters(
    settings: Settings, counter: TokenMeasure, clock: Clock, *, embeddings: EmbeddingModel | None, metrics: MetricsFile, report: Report
) -> StoreAdapters:
    """The adapters of the store of `settings`. `report` receives one sentence for each fault that loses nothing."""
    root, wait_s = settings.root, settings.index_lock_wait_s
    indexes = root / "indexes"
    vectors = TurnVectors.at(indexes / "turn_vectors.duckdb", embeddings, report=report, wait_s=wait_s) if embeddings else None
    turns = TurnFiles(
        root, counter=counter, clock=clock, phases=PhaseTable(section_writers(), clarifying=phases_ending_in(TurnState.CLARIFY))
    )
    sessions = SessionFiles(root)

    def remake() -> None:
        report("the turn index is of an older design: it is made anew from the documents")
        rebuild_turns(turns, index, Preambles(sessions))

    index = DuckTurnIndex.at(indexes / "turn_index.duckdb", wait_s=wait_s, vectors=vectors, clock=clock, remake=remake)
    research_index = DuckResearchIndex.at(indexes / "research_index.duckdb", wait_s=wait_s)
    note_index = DuckNoteIndex.at(indexes / "note_index.duckdb", index.reader, wait_s=wait_s)
    return StoreAdapters(
        turns=turns,
        index=index,
        vectors=vectors,
        calls=_open_call_log(root, wait_s, metrics, report),
        vault=VaultFiles(root, enabled=settings.keep_packs),
        interventions=InterventionFiles(root, clock=clock, random_hex=secrets.token_hex),
        sessions=sessions,
        summaries=ConversationSummaryFiles(root),
        memory=MemoryFiles(root),
        facts=FactFiles(root),
        sources=SourceFiles(root, research_index),
        research_index=research_index,
        notes=NoteFiles(root, {settings.user: settings.notes} if settings.notes else {}, note_index),
    )


def _open_call_log(root: Path, wait_s: float, metrics: MetricsFile, report: Report) -> IndexedCallLog:
    """The call log; its listeners count metrics, and export spans where an exporter is configured."""
    listeners: tuple[Callable[[CallRecord], None], ...] = (metrics_listener(metrics),)
    index = DuckCallIndex.at(root / "indexes" / "call_index.duckdb", wait_s=wait_s)
    if not is_exporter_configured(process_environment()):
        return IndexedCallLog(CallFiles(root), index, report=report, listeners=listeners)
    spans = exporting_spans()
    return IndexedCallLog(CallFiles(root), index, report=report, listeners=(*listeners, spans.call), settled=(spans.turn,))


def open_lineage_service(settings: Settings, stores: StoreAdapters, counter: TokenMeasure, clock: Clock) -> LineageService:
    """The lineage of the store, with the readers of its summary levels."""
    index = DuckLineageIndex.at(settings.root / "indexes" / "lineage.duckdb", wait_s=settings.index_lock_wait_s)
    levels = LevelFiles(settings.root)
    return LineageService(
        settings.root,
        stores.turns,
        counter,
        index,
        stores.sources,
        stores.notes,
        clock,
        levels=level_readers(levels),
        records=(lambda: level_rows(levels, stores.turns, counter),),
    )


def open_index_service(stores: StoreAdapters, lineage: LineageService) -> IndexService:
    """The indexes of the store, each with the functions that rebuild and verify it."""
    turns, calls, vectors = stores.turns, stores.calls, stores.vectors
    preambles = Preambles(stores.sessions)

    def rebuild(progress: ProgressCallback) -> RebuildReport:
        return rebuild_turns(turns, stores.index, preambles, progress=progress)

    def rebuild_vectors(vectors: TurnVectors, _report: FaultCallback) -> tuple[int, None]:
        return vectors.rebuild(document_rows(turns, preambles)), None

    return IndexService(
        turns_file=stores.index.file,
        rebuild_turns=rebuild,
        verify_turns=partial(verify_turns, turns, stores.index, preambles),
        calls=StoredIndex(
            "calls",
            calls.index.file,
            lambda report: rebuild_calls(calls.files, calls.index, report=report),
            partial(verify_calls, calls.files, calls.index, turns.manifest),
        ),
        sources=StoredIndex(
            "research and visits",
            stores.research_index.file,
            lambda report: rebuild_sources(stores.sources, stores.research_index, report=report),
            partial(verify_sources, stores.sources, stores.research_index),
        ),
        lineage=StoredIndex("lineage", lineage.index.file, lambda report: lineage.rebuild(report=report), lineage.verify),
        vectors=vectors
        and StoredIndex(
            "vectors", vectors.file, partial(rebuild_vectors, vectors), lambda: vectors.verify(document_rows(turns, preambles))
        ),
    )


def open_transfer_service(settings: Settings, stores: StoreAdapters) -> TransferService:
    """Import into the store and export out of it."""
    return TransferService(
        settings,
        stores.turns,
        ImportContext(stores.turns, stores.sessions, stores.index, stores.index.reader, stores.vectors),
        lambda day: FirstDay(settings.root).extend(day, known=settings.first_day),
    )
