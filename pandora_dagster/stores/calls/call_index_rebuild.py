"""The call index made again from the lines of call records, and compared with them. The lines are the truth (000 section 27)."""

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

_BATCH = 500
"""Files that are read together."""


def rebuild_calls(files: CallFiles, index: DuckCallIndex, *, report: Callable[[str], None]) -> tuple[int, Path | None]:
    """Make the index again beside the old one, then put it in its place; returns the calls and where a damaged index is kept.

    `report` receives each line that is no record. What was written meanwhile is indexed afterwards. Raises StoreError.
    """
    taken, damaged_file = index.file.rebuild(lambda fresh: _absorbed(DuckCallIndex(fresh), files, report))
    return taken + _absorbed(index, files, lambda _: None), damaged_file


def verify_calls(files: CallFiles, index: DuckCallIndex, manifest: Callable[[TurnKey], Manifest]) -> tuple[str, ...]:
    """Every difference between lines and index, each as one sentence; empty where they agree. Raises StoreError.

    The calls of a turn are indexed when it is completed; until then, and in files of calls without a turn, only the part that the index
    has read is compared.
    """
    faults: list[str] = []
    there = {record.call_id: record for record in index.records()}
    for path, upto in _read(files, index.read_positions(), manifest, faults.append):
        for record in records_in(path, faults.append, upto=upto):
            faults += _differences(record, there.pop(record.call_id, None), path)
    every = {record.call_id for user in files.users() for record in files.read(user, report=lambda _: None)} if there else set[str]()
    faults += [f"call {call}: in the index, but in no file of call records: expected no row" for call in there if call not in every]
    return tuple(faults)


def _read(
    files: CallFiles, marks: dict[str, int], manifest: Callable[[TurnKey], Manifest], report: Callable[[str], None]
) -> Iterator[tuple[Path, int | None]]:
    """Files with how many bytes of them must be in the index; None for all."""
    for user in files.users():
        for key in turn_keys(files.layout, user):
            is_completed = _is_completed(key, manifest)
            yield from ((path, None if is_completed else marks.get(str(path), 0)) for path in files.paths_of(key, report=report))
        yield from ((path, marks.get(str(path), 0)) for path in files.days(user, report=report))


def _is_completed(key: TurnKey, manifest: Callable[[TurnKey], Manifest]) -> bool:
    try:
        return manifest(key).state is not TurnState.OPEN
    except (DocumentError, UnknownTurnError):
        return False


def _differences(record: CallRecord, there: CallRecord | None, path: Path) -> Iterator[str]:
    if there is None:
        yield f"{path}: call {record.call_id}: missing from the index, expected a row"
    elif there != record:
        yield f"{path}: call {record.call_id}: the index differs from the record in the file"


def _absorbed(index: DuckCallIndex, files: CallFiles, report: Callable[[str], None]) -> int:
    every = (path for user in files.users() for path in files.paths(user, report=report))
    return sum(index.index_files(batch, report=report) for batch in batches(every, _BATCH))
