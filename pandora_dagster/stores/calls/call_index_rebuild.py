"""Rebuilds the call index from the lines of call records, and compares it with them (specification 000, section 27)."""

from collections.abc import Callable, Iterator
from pathlib import Path

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.stores.calls.call_index import DuckCallIndex
from pandora_dagster.stores.calls.call_log import CallFiles, records_in
from pandora_dagster.stores.disk.duckdb_file import batches
from pandora_dagster.stores.disk.turn_directory import turn_keys

_BATCH_FILES = 500
"""Files that are indexed in one transaction."""


def rebuild_calls(files: CallFiles, index: DuckCallIndex, *, report: Callable[[str], None]) -> tuple[int, Path | None]:
    """Rebuild the index and return the number of its calls and the new path of a damaged index file.

    `report` receives each line that is no record. Calls that were written meanwhile are indexed afterwards. Raises StoreError.
    """
    count, damaged_file = index.file.rebuild(lambda fresh: _index_all(DuckCallIndex(fresh), files, report))
    return count + _index_all(index, files, lambda _: None), damaged_file


def verify_calls(files: CallFiles, index: DuckCallIndex, manifest: Callable[[TurnKey], Manifest]) -> tuple[str, ...]:
    """Every difference between lines and index, each as one sentence; empty where they agree. Raises StoreError.

    The calls of a turn are indexed when it is completed; until then, and in files of calls without a turn, only the part that the index
    has read is compared.
    """
    faults: list[str] = []
    indexed = {record.call_id: record for record in index.records()}
    for path, max_bytes in _files_to_compare(files, index.read_positions(), manifest, faults.append):
        for record in records_in(path, faults.append, max_bytes=max_bytes):
            faults += _differences(record, indexed.pop(record.call_id, None), path)
    written_calls = (
        {record.call_id for user in files.users() for record in files.read(user, report=lambda _: None)} if indexed else set[str]()
    )
    faults += [
        f"call {call}: in the index, but in no file of call records: expected no row" for call in indexed if call not in written_calls
    ]
    return tuple(faults)


def _files_to_compare(
    files: CallFiles, read_positions: dict[str, int], manifest: Callable[[TurnKey], Manifest], report: Callable[[str], None]
) -> Iterator[tuple[Path, int | None]]:
    """Files, each with the number of its bytes that must be in the index; None for all of them."""
    for user in files.users():
        for key in turn_keys(files.layout, user):
            is_completed = _is_completed(key, manifest)
            yield from ((path, None if is_completed else read_positions.get(str(path), 0)) for path in files.paths_of(key, report=report))
        yield from ((path, read_positions.get(str(path), 0)) for path in files.day_paths(user, report=report))


def _is_completed(key: TurnKey, manifest: Callable[[TurnKey], Manifest]) -> bool:
    try:
        return manifest(key).state is not TurnState.OPEN
    except (DocumentError, UnknownTurnError):
        return False


def _differences(record: CallRecord, indexed: CallRecord | None, path: Path) -> Iterator[str]:
    if indexed is None:
        yield f"{path}: call {record.call_id}: missing from the index, expected a row"
    elif indexed != record:
        yield f"{path}: call {record.call_id}: the index differs from the record in the file"


def _index_all(index: DuckCallIndex, files: CallFiles, report: Callable[[str], None]) -> int:
    """Index the files of all users; returns the number of added calls."""
    paths = (path for user in files.users() for path in files.paths(user, report=report))
    return sum(index.index_files(batch, report=report) for batch in batches(paths, _BATCH_FILES))
