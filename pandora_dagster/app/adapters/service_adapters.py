"""The services over the indexes of one store: lineage, rebuild and verification, import and export. Constructs, decides nothing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pandora_dagster.app.adapters.store_adapters import StoreAdapters
from pandora_dagster.app.index_service import CALLS, LINEAGE, SOURCES, VECTORS, FaultCallback, IndexService, ProgressCallback, StoredIndex
from pandora_dagster.app.lineage_service import LineageService, level_rows
from pandora_dagster.app.transfer_service import TransferService
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.turns import RebuildReport
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.settings import Settings
from pandora_dagster.stores.calls.call_index_rebuild import rebuild_calls, verify_calls
from pandora_dagster.stores.lineage.lineage_index_rebuild import ExpectedLineage, rebuild_lineage, verify_lineage
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, document_rows, rebuild_turns, verify_turns
from pandora_dagster.stores.user.source_files import rebuild_sources, verify_sources
from pandora_dagster.transfer.conversation_import import ImportContext

Report = Callable[[str], None]


def open_lineage_service(stores: StoreAdapters, counter: TokenMeasure, clock: Clock) -> LineageService:
    """The lineage of the store, with its summary levels."""
    levels, turns, index, texts = stores.archive.levels, stores.turns, stores.lineage_index, stores.document_texts

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
