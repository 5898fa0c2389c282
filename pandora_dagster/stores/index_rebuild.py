"""The turn index made again from the documents, and compared with them. The documents are the truth.

Knows documents and rows; how a row is made is `selection.turn_row`'s, how it is stored is the index's.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn, TurnRow
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.selection.turn_row import row_of
from pandora_dagster.stores.duck import DuckFile
from pandora_dagster.stores.turn_index import DuckTurnIndex

_BATCH = 500


class Documents(Protocol):
    """What a rebuild reads; the turn store offers it."""

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]: ...
    def manifest(self, key: TurnKey) -> Manifest: ...
    def load(self, key: TurnKey, *, revision: int | None = None) -> Turn: ...


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild did. `faults` names each turn whose documents can not be read; `aside` a damaged index, kept.

    `calls` and `calls_aside` say the same of the index of calls, `sources` and `sources_aside` of research and visits;
    `broken_lines` names each line and each record that can not be read.
    """

    turns: int
    faults: tuple[str, ...] = ()
    aside: Path | None = None
    calls: int = 0
    calls_aside: Path | None = None
    broken_lines: tuple[str, ...] = ()
    sources: int = 0
    sources_aside: Path | None = None


def rebuild(documents: Documents, index: DuckTurnIndex, *, progress: Callable[[int], None] = lambda turns: None) -> RebuildReport:
    """Make the index again beside the old one, then put it in its place.

    Turns that were saved while it was being made are taken in afterwards, so nobody waits. Raises StoreError.
    """
    file = index.file
    fresh = DuckTurnIndex(DuckFile(file.path.with_name(file.path.name + ".rebuilt"), file.schema, file.wait_s), index.reader)
    with fresh.file.locked():
        fresh.file.discard()
    faults: list[str] = []
    turns = 0
    for rows in _batches(_rows(documents, documents.keys(), faults)):
        fresh.put(rows)
        turns += len(rows)
        progress(turns)
    fresh.file.make()
    aside = file.take(fresh.file)
    index.put(list(_rows(documents, _changed(documents, index), [])))
    return RebuildReport(turns, tuple(faults), aside)


def verify(documents: Documents, index: DuckTurnIndex) -> tuple[str, ...]:
    """Every difference between documents and index, each as one sentence; empty where they agree. Raises StoreError."""
    faults: list[str] = []
    rows = {(row.user_id, row.number): row for row in index.rows()}
    for row in _rows(documents, documents.keys(), faults):
        there = rows.pop((row.user_id, row.number), None)
        faults += _differences(row, there)
    faults += [f"{user}:turn_{number:06d}: in the index, but no document: expected no row" for user, number in rows]
    return tuple(faults)


def _differences(row: TurnRow, there: TurnRow | None) -> Iterator[str]:
    where = f"{row.user_id}:{row.turn_id}"
    if there is None:
        yield f"{where}: missing from the index, expected a row"
        return
    for name in TurnRow.model_fields:
        wanted, found = getattr(row, name), getattr(there, name)
        if wanted != found:
            yield f"{where}: {name}: the index says {_shown(found)}, the documents say {_shown(wanted)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _changed(documents: Documents, index: DuckTurnIndex) -> Iterator[TurnKey]:
    """Turns whose manifest and row no longer tell the same: what happened during a rebuild."""
    known = {(row.user_id, row.number): _mark(row.context_sha, row.state, row.last_activity, row.summary) for row in index.rows()}
    every: Iterable[TurnKey] = documents.keys()
    for key in every:
        try:
            manifest = documents.manifest(key)
        except (DocumentError, UnknownTurnError):
            continue
        said = str((manifest.summary or {}).get("summary", ""))
        if known.get((key.user, key.number)) != _mark(manifest.context_sha, manifest.state, manifest.last_activity, said):
            yield key


def _mark(*values: object) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


def _rows(documents: Documents, keys: Iterable[TurnKey], faults: list[str]) -> Iterator[TurnRow]:
    for key in keys:
        try:
            turn = documents.load(key)
        except (DocumentError, UnknownTurnError) as error:
            faults.append(f"{key}: {error}")
            continue
        yield row_of(turn.manifest, turn.context)


def _batches(rows: Iterator[TurnRow]) -> Iterator[list[TurnRow]]:
    batch: list[TurnRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
