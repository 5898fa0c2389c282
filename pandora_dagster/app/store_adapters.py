"""The adapters of one store: its files, DuckDB indexes and records. Part of the composition root: constructs, decides nothing."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from pandora_dagster.app.application import ArchivePorts, RecordPorts
from pandora_dagster.app.erasure_service import ErasureService
from pandora_dagster.app.index_service import CALLS, LINEAGE, SOURCES, VECTORS, FaultCallback, IndexService, ProgressCallback, StoredIndex
from pandora_dagster.app.lineage_service import LineageService, level_rows
from pandora_dagster.app.transfer_service import TransferService
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel
from pandora_dagster.contracts.ports.record_storage import ExpiringRuns, QueryFiles, RecipeTestStore, RecordedAnswerStore, Vault
from pandora_dagster.contracts.ports.user_storage import Eraser, RecordFolder
from pandora_dagster.contracts.turns import RebuildReport
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.contracts.web.fetched import HostRecords
from pandora_dagster.contracts.web.page_store import PageStore
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.phases.flow.phase_table import phase_effects
from pandora_dagster.runtime.call_spans import is_exporter_configured, open_call_spans
from pandora_dagster.settings import Settings, process_environment
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.call_index_rebuild import rebuild_calls, verify_calls
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.calls.metrics_file import MetricsFile, metrics_listener
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.files import read_text, write_atomic
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.erasure.file_erasure import DocumentEraser
from pandora_dagster.stores.erasure.record_erasure import RecordEraser
from pandora_dagster.stores.erasure.record_folder import SqliteRecordFolder
from pandora_dagster.stores.erasure.row_erasure import IndexEraser
from pandora_dagster.stores.erasure.user_data import UserDataFiles
from pandora_dagster.stores.lineage.document_texts import StoredDocumentTexts, source_readers
from pandora_dagster.stores.lineage.lineage_index import LINEAGE_SCHEMA, DuckLineageIndex
from pandora_dagster.stores.lineage.lineage_index_rebuild import ExpectedLineage, rebuild_lineage, verify_lineage
from pandora_dagster.stores.records.batch_files import BatchFiles, Inbox
from pandora_dagster.stores.records.host_files import HostFiles
from pandora_dagster.stores.records.intervention_files import InterventionFiles
from pandora_dagster.stores.records.recipe_feedback import CorrectionFiles, RecipeTestFiles
from pandora_dagster.stores.records.recorded_answer_files import RecordedAnswerFiles
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, document_rows, rebuild_turns, verify_turns
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
    rebuild_sources,
    verify_sources,
)
from pandora_dagster.transfer.conversation_import import ImportContext

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
    note_index = DuckNoteIndex(DuckDBFile(indexes / "note_index.duckdb", NOTE_SCHEMA, wait_s), index.reader)
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
        sources=SourceFiles(root, research_index),
        research_index=research_index,
        notes=NoteFiles(root, {settings.user: settings.notes} if settings.notes else {}, note_index),
        archive=_open_archive_ports(settings, counter, sessions),
        records=RecordPorts(BatchFiles(root), Inbox(root), CorrectionFiles(root, clock, secrets.token_hex), RecipeTestFiles(root)),
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


def open_lineage_service(settings: Settings, stores: StoreAdapters, counter: TokenMeasure, clock: Clock) -> LineageService:
    """The lineage of the store, with its summary levels."""
    index = DuckLineageIndex(DuckDBFile(settings.root / "indexes" / "lineage.duckdb", LINEAGE_SCHEMA, settings.index_lock_wait_s))
    levels, turns = stores.archive.levels, stores.turns
    readers = source_readers(settings.root, levels, stores.sources, stores.notes)

    def texts() -> StoredDocumentTexts:
        return StoredDocumentTexts(settings.root, turns, readers, phase_effects())

    def expected() -> ExpectedLineage:
        return ExpectedLineage(turns, texts(), counter, (lambda: level_rows(levels, turns, counter),))

    def rebuild(report: Report, progress: ProgressCallback) -> tuple[int, Path | None]:
        return rebuild_lineage(expected(), index, at=format_timestamp(clock()), report=report, progress=progress)

    def confirm() -> bool:
        has_all = next(verify_lineage(expected(), index), None) is None
        if has_all:
            index.mark_complete(format_timestamp(clock()))
        return has_all

    return LineageService(turns, levels, index, texts, rebuild, confirm, lambda keys: verify_lineage(expected(), index, keys=keys))


def open_index_service(stores: StoreAdapters, lineage: LineageService) -> IndexService:
    """The indexes of the store, each with the functions that rebuild and verify it."""
    turns, calls, sources = stores.turns, stores.calls, stores.sources
    preambles = Preambles(stores.sessions)

    def rebuild(progress: ProgressCallback) -> RebuildReport:
        return rebuild_turns(turns, stores.index, preambles, progress=progress)

    def rebuild_lineage_rows(_report: FaultCallback) -> tuple[int, Path | None]:
        return lineage.rebuild(report=lambda fault: None)  # unreadable turns are in the report of the turns already

    others = [
        StoredIndex(
            CALLS,
            calls.index.file,
            lambda report: rebuild_calls(calls.files, calls.index, report=report),
            partial(verify_calls, calls.files, calls.index, turns.manifest),
        ),
        StoredIndex(
            SOURCES,
            stores.research_index.file,
            lambda report: rebuild_sources(sources, stores.research_index, report=report),
            partial(verify_sources, sources, stores.research_index),
        ),
        StoredIndex(LINEAGE, lineage.index.file, rebuild_lineage_rows, lineage.verify),
    ]
    if vectors := stores.vectors:
        rows = partial(document_rows, turns, preambles)
        others.append(StoredIndex(VECTORS, vectors.file, lambda report: (vectors.rebuild(rows()), None), lambda: vectors.verify(rows())))

    def compare_newest(turns_of_a_user: int) -> tuple[str, ...]:
        return verify_turns(turns, stores.index, preambles, newest=turns_of_a_user)

    return IndexService(stores.index, rebuild, partial(verify_turns, turns, stores.index, preambles), tuple(others), compare_newest)


def open_transfer_service(settings: Settings, stores: StoreAdapters) -> TransferService:
    """Import into the store and export out of it."""
    return TransferService(
        settings,
        stores.turns,
        ImportContext(stores.turns, stores.sessions, stores.index, stores.index.reader, stores.vectors),
    )


def open_erasure(
    settings: Settings, runs: Eraser, *, on_step: Callable[[str], None] = lambda step: None, wait_s: float = 60.0
) -> ErasureService:
    """The erasure over a store. `runs` erases Dagster's records; `wait_s`: seconds to wait for each turn, index and record that another
    process holds."""
    root, layout = settings.root, Layout(settings.root)
    intents = ErasureIntents(root, wait_s=min(wait_s, 10.0))
    records = RecordEraser(root, settings.user, (settings.dagster_home,), wait_s)
    shipped = shipped_folder()
    data = UserDataFiles(
        layout=layout,
        trash=intents.trash_folder,
        notes=(settings.user, settings.notes) if settings.notes else None,
        names=(root, settings.dagster_home),
        program=(shipped / "recipes", shipped / "prompts", Path(__file__).parents[1]),
        queries_of_others=records.queries_of_others,
        wait_s=wait_s,
    )
    erasers = (IndexEraser(root, wait_s), records, runs, DocumentEraser(layout, intents, wait_s))
    return ErasureService(intents, data, erasers, partial(datetime.now, UTC), on_step)


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


def open_record_folder(folder: Path) -> RecordFolder:
    """A folder of records that another program writes, as Dagster's."""
    return SqliteRecordFolder(folder)


def read_source_record(path: Path, record_type: type[SourceRecord]) -> SourceRecord:
    """The research or the visit in a user's file; raises DocumentError with every fault."""
    return read_record(read_text(path, limit=MAX_RECORD_BYTES), record_type, where=str(path))


def write_page(path: Path, page: str) -> None:
    """Write a page that a command shows, whole or not at all; raises StoreError."""
    write_atomic(path, page.encode(), durable=False)
