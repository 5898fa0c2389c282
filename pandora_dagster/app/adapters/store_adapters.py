"""The adapters of one store: its files, DuckDB indexes and records. Part of the composition root: constructs, decides nothing."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pandora_dagster.app.adapters.service_ports import ArchivePorts, RecordPorts
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel
from pandora_dagster.contracts.ports.record_storage import ExpiringRuns, QueryFiles, RecipeTestStore, RecordedAnswerStore, Vault
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.contracts.web.fetched import HostRecords
from pandora_dagster.contracts.web.page_store import PageStore
from pandora_dagster.phases.flow.phase_table import phase_effects
from pandora_dagster.runtime.call_spans import is_exporter_configured, open_call_spans
from pandora_dagster.settings import Settings, process_environment
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.calls.metrics_file import MetricsFile, metrics_listener
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.disk.files import read_text, write_atomic
from pandora_dagster.stores.lineage.document_texts import StoredDocumentTexts, source_readers
from pandora_dagster.stores.lineage.lineage_index import LINEAGE_SCHEMA, DuckLineageIndex
from pandora_dagster.stores.records.batch_files import BatchFiles, Inbox
from pandora_dagster.stores.records.host_files import HostFiles
from pandora_dagster.stores.records.intervention_files import InterventionFiles
from pandora_dagster.stores.records.recipe_feedback import CorrectionFiles, RecipeTestFiles
from pandora_dagster.stores.records.recorded_answer_files import RecordedAnswerFiles
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, rebuild_turns
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from pandora_dagster.stores.search.turn_vectors import VECTOR_SCHEMA, TurnVectors
from pandora_dagster.stores.turns.archive_folders import HoldFiles, TurnArchiveFolders
from pandora_dagster.stores.turns.cold_files import ColdFiles
from pandora_dagster.stores.turns.turn_files import TurnFiles
from pandora_dagster.stores.user.fact_files import FactFiles
from pandora_dagster.stores.user.level_files import LevelFiles
from pandora_dagster.stores.user.memory_files import MemoryFiles
from pandora_dagster.stores.user.note_files import NoteFiles
from pandora_dagster.stores.user.note_index import NOTE_SCHEMA, DuckNoteIndex
from pandora_dagster.stores.user.page_files import PageFiles
from pandora_dagster.stores.user.research_run_files import ResearchRunFile, ResearchRunSweep, TurnRunFiles, user_run
from pandora_dagster.stores.user.session_files import ContinuationFiles, ConversationSummaryFiles, SessionFiles
from pandora_dagster.stores.user.source_files import (
    MAX_RECORD_BYTES,
    RESEARCH_SCHEMA,
    DuckResearchIndex,
    SourceFiles,
    read_record,
)

Report = Callable[[str], None]
_HOST_DAYS = 30
"""Days after which what is remembered of a host is deleted: robots.txt and waits hold for a day."""
SourceRecord = TypeVar("SourceRecord", Research, Visit)


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
    continuations: ContinuationFiles
    summaries: ConversationSummaryFiles
    memory: MemoryFiles
    facts: FactFiles
    sources: SourceFiles
    research_index: DuckResearchIndex
    notes: NoteFiles
    archive: ArchivePorts
    records: RecordPorts
    lineage_index: DuckLineageIndex
    document_texts: Callable[[], StoredDocumentTexts]
    """Makes a reader of the texts that lineage names."""


def open_store_adapters(
    settings: Settings, counter: TokenMeasure, clock: Clock, *, embeddings: EmbeddingModel | None, metrics: MetricsFile, report: Report
) -> StoreAdapters:
    """The adapters of the store of `settings`. `report` receives one sentence for each fault that loses nothing."""
    root, wait_s = settings.root, settings.index_lock_wait_s
    indexes = root / "indexes"
    vector_file = DuckDBFile(indexes / "turn_vectors.duckdb", VECTOR_SCHEMA, wait_s)
    vectors = TurnVectors(vector_file, embeddings, report=report) if embeddings else None
    turns = TurnFiles(root, counter=counter, clock=clock, phases=phase_effects())
    sessions = SessionFiles(root)

    def rebuild_outdated() -> None:
        report("the turn index is of an older design: it is rebuilt from the documents")
        rebuild_turns(turns, index, Preambles(sessions))

    index = DuckTurnIndex(DuckDBFile(indexes / "turn_index.duckdb", TURN_SCHEMA, wait_s, rebuild_outdated), vectors=vectors, clock=clock)
    research_index = DuckResearchIndex(DuckDBFile(indexes / "research_index.duckdb", RESEARCH_SCHEMA, wait_s))
    sources, archive = SourceFiles(root, research_index), _open_archive_ports(settings, counter, sessions)
    note_index = DuckNoteIndex(DuckDBFile(indexes / "note_index.duckdb", NOTE_SCHEMA, wait_s), index.reader)
    notes = NoteFiles(root, {settings.user: settings.notes} if settings.notes else {}, note_index)
    readers = source_readers(root, archive.levels, sources, notes)
    return StoreAdapters(
        turns=turns,
        index=index,
        vectors=vectors,
        calls=_open_call_log(root, wait_s, metrics, report),
        vault=VaultFiles(root, enabled=settings.keep_packs),
        interventions=InterventionFiles(root, clock=clock, random_hex=secrets.token_hex),
        sessions=sessions,
        continuations=ContinuationFiles(root),
        summaries=ConversationSummaryFiles(root),
        memory=MemoryFiles(root),
        facts=FactFiles(root),
        sources=sources,
        research_index=research_index,
        notes=notes,
        archive=archive,
        records=RecordPorts(BatchFiles(root), Inbox(root), CorrectionFiles(root, clock, secrets.token_hex), RecipeTestFiles(root)),
        lineage_index=DuckLineageIndex(DuckDBFile(indexes / "lineage.duckdb", LINEAGE_SCHEMA, wait_s)),
        document_texts=lambda: StoredDocumentTexts(root, turns, readers, phase_effects()),
    )


def _open_archive_ports(settings: Settings, counter: TokenMeasure, sessions: SessionFiles) -> ArchivePorts:
    """The adapters of archival."""
    root = settings.root
    cold = ColdFiles(root)
    return ArchivePorts(
        cold=cold,
        folders=TurnArchiveFolders(root, cold, counter),
        holds=HoldFiles(root),
        levels=LevelFiles(root),
        preamble=Preambles(sessions).of_turn,
    )


def _open_call_log(root: Path, wait_s: float, metrics: MetricsFile, report: Report) -> IndexedCallLog:
    """The call log; its listeners count metrics, and export spans where an exporter is configured."""
    listeners: tuple[Callable[[CallRecord], None], ...] = (metrics_listener(metrics),)
    index = DuckCallIndex(DuckDBFile(root / "indexes" / "call_index.duckdb", CALL_SCHEMA, wait_s))
    if not is_exporter_configured(process_environment()):
        return IndexedCallLog(CallFiles(root), index, report=report, listeners=listeners)
    spans = open_call_spans()
    return IndexedCallLog(CallFiles(root), index, report=report, listeners=(*listeners, spans.call), turn_listeners=(spans.turn,))


def open_recipe_tests(settings: Settings) -> RecipeTestStore:
    """The recipe tests that were made from users' calls; writes nothing."""
    return RecipeTestFiles(settings.root)


def open_recorded_answers(folder: Path) -> RecordedAnswerStore:
    """The recorded answers to recipe tests in a folder that the user names."""
    return RecordedAnswerFiles(folder)


def open_vault(settings: Settings) -> Vault:
    """The stored packs, answers and images."""
    return VaultFiles(settings.root, enabled=settings.keep_packs)


def open_host_records(settings: Settings) -> HostRecords:
    """What is remembered of the hosts of the web, for all processes of the store."""
    hosts = HostFiles(settings.root)
    hosts.sweep(before=time.time() - _HOST_DAYS * 86_400)
    return hosts


def open_page_store(settings: Settings) -> PageStore:
    """The pages of visits as they were read."""
    return PageFiles(settings.root)


def open_research_run_store(settings: Settings, user: UserId, run_id: str) -> ResearchRunFile:
    """The checkpoint of one run of research."""
    return user_run(settings.root, user, run_id)


def open_research_run_sweep(settings: Settings) -> ExpiringRuns:
    """The sweep of the checkpoints of all users."""
    return ResearchRunSweep(settings.root)


def open_turn_runs(settings: Settings, turn: TurnKey) -> TurnRunFiles:
    """The checkpoints of the research of one turn."""
    return TurnRunFiles(settings.root, turn)


def open_inbox(settings: Settings) -> QueryFiles:
    """The files of queries that wait; opens no application."""
    return Inbox(settings.root)


def read_source_record(path: Path, record_type: type[SourceRecord]) -> SourceRecord:
    """The research or the visit in a user's file; raises DocumentError with every fault."""
    return read_record(read_text(path, limit=MAX_RECORD_BYTES), record_type, where=str(path))


def write_page(path: Path, page: str) -> None:
    """Write a page that a command shows, whole or not at all; raises StoreError."""
    write_atomic(path, page.encode(), durable=False)
