"""Rebuilds the lineage index from the manifests, and compares it with them. The documents are the source of truth."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, is_turn_owner
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.turn_entry import turn_entry
from pandora_dagster.errors import DamagedIndexError, DocumentError, InputError, PandoraError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, batches
from pandora_dagster.stores.lineage.document_texts import StoredDocumentTexts
from pandora_dagster.stores.lineage.lineage_index import DuckLineageIndex
from pandora_dagster.stores.lineage.turn_lineage import archival_edges, turn_edges

BATCH_TURNS = 200
"""Turns whose rows are written or compared together."""
EdgeSource = Callable[[], Iterable[LineageEdge]]
"""The rows of documents without a turn, from their records: narratives, digests."""


@dataclass(frozen=True, slots=True)
class ExpectedLineage:
    """The rows that a store should have."""

    turns: TurnStore
    texts: StoredDocumentTexts
    counter: TokenMeasure
    records: Sequence[EdgeSource] = ()

    def of_turn(self, key: TurnKey, faults: list[str]) -> tuple[LineageEdge, ...]:
        """The rows of a turn; where its originals cannot be read, that is added to `faults`, and the rows come from the manifest."""
        try:
            manifest = self.turns.manifest(key)
            if manifest.recorded and manifest.archive is None:
                return ()
            original = self._original(key)
        except (DocumentError, InputError) as error:
            faults.append(f"{key}: {error}")
            try:
                return archival_edges(self.turns.manifest(key))
            except PandoraError:
                return ()
        texts = self.texts
        return turn_edges(
            manifest,
            original,
            phases=texts.phases,
            count=self.counter.count,
            read_document=lambda document, at: texts.text_at(document, at=at),
        )

    def _original(self, key: TurnKey) -> Turn:
        manifest = self.turns.manifest(key)
        if manifest.archive is not None or manifest.state in (TurnState.SAVED, TurnState.CLARIFY):
            return self.turns.original(key)
        return Turn(key, manifest, "")

    def of_records(self) -> Iterator[LineageEdge]:
        """The rows of narratives and digests."""
        for edge_source in self.records:
            yield from edge_source()


def rebuild_lineage(
    expected: ExpectedLineage,
    index: DuckLineageIndex,
    *,
    at: str,
    report: Callable[[str], None],
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[int, Path | None]:
    """Rebuild the index and return the number of its rows and the new path of a damaged index file.

    Rows of narratives and digests without a record are copied from the old index. `report` receives each document that cannot be
    read. Raises StoreError.
    """
    faults: list[str] = []
    turn_states: dict[TurnKey, tuple[str, ...]] = {}

    def fill(file: DuckDBFile) -> int:
        fresh, count = DuckLineageIndex(file), 0
        for keys in batches(expected.turns.keys(), BATCH_TURNS):
            turn_states.update({key: _state_key(expected.turns, key) for key in keys})
            edges = [edge for key in keys for edge in expected.of_turn(key, faults)]
            fresh.put(edges)
            count += len(edges)
            progress(len(turn_states))
        record_edges = tuple(expected.of_records())
        recorded_owners = {DocumentId.parse(edge.child).owner for edge in record_edges}
        edges_without_turn = (
            *record_edges,
            *(edge for edge in _rows_without_turn(index) if DocumentId.parse(edge.child).owner not in recorded_owners),
        )
        fresh.put(edges_without_turn)
        fresh.mark_complete(at)
        return count + len(edges_without_turn)

    count, damaged_file = index.file.rebuild(fill)
    changed = (key for key in expected.turns.keys() if turn_states.get(key) != _state_key(expected.turns, key))  # noqa: SIM118 - a store
    for keys in batches(changed, BATCH_TURNS):
        index.put([edge for key in keys for edge in expected.of_turn(key, [])], owners=[str(key) for key in keys])
    for fault in faults:
        report(fault)
    return count, damaged_file


def verify_lineage(expected: ExpectedLineage, index: DuckLineageIndex, *, keys: Iterable[TurnKey] | None = None) -> Iterator[str]:
    """Every difference between the manifests and the rows, each as one sentence; with `keys` of these turns alone. Raises StoreError."""
    compared: set[str] = set()
    for batch in batches(expected.turns.keys() if keys is None else keys, BATCH_TURNS):
        yield from differences(expected, index, batch)
        compared |= {str(key) for key in batch} if keys is None else set()
    if keys is not None:
        return
    without_turn = [owner for _, owner in index.owners() if is_turn_owner(owner) and owner not in compared]
    yield from (f"{owner}: in the lineage, but no such turn: expected no row" for owner in without_turn)
    record_edges: dict[str, list[LineageEdge]] = {}
    for edge in expected.of_records():
        record_edges.setdefault(DocumentId.parse(edge.child).owner, []).append(edge)
    for owner, edges in record_edges.items():
        yield from _row_differences(owner, edges, index.rows_of(edges[0].user_id, [owner]))


def differences(expected: ExpectedLineage, index: DuckLineageIndex, keys: Sequence[TurnKey]) -> Iterator[str]:
    """Every difference between the rows of these turns and their manifests. Raises StoreError."""
    rows: dict[str, list[LineageEdge]] = {}
    for user in dict.fromkeys(key.user for key in keys):
        for edge in index.rows_of(user, [str(key) for key in keys if key.user == user]):
            rows.setdefault(DocumentId.parse(edge.child).owner, []).append(edge)
    for key in keys:
        faults: list[str] = []
        edges = expected.of_turn(key, faults)
        yield from faults or _row_differences(str(key), edges, rows.get(str(key), ()))


def _row_differences(owner: str, expected: Sequence[LineageEdge], stored: Sequence[LineageEdge]) -> Iterator[str]:
    """Every difference between the rows that an owner should have and those that the index has."""
    if expected and not stored:
        yield f"{owner}: missing from the lineage, expected {len(expected)} rows"
        return
    remaining = {_edge_key(edge): edge for edge in stored}
    for edge in expected:
        row = remaining.pop(_edge_key(edge), None)
        if row is None:
            yield f"{owner}: {edge.relation}: {edge.child} from {edge.parent}: missing from the lineage, expected a row"
        elif row != edge:
            name = next(name for name in LineageEdge.model_fields if getattr(row, name) != getattr(edge, name))
            fault = f"the lineage says {str(getattr(row, name))[:80]!r}, its documents say {str(getattr(edge, name))[:80]!r}"
            yield f"{owner}: {edge.relation}: {edge.child} from {edge.parent}: {name}: {fault}"
    for edge in remaining.values():
        yield f"{owner}: {edge.relation}: {edge.child} from {edge.parent}: in the lineage, but not in its documents: expected no row"


def _edge_key(edge: LineageEdge) -> tuple[object, ...]:
    """What identifies a row."""
    return edge.child, edge.relation, edge.parent, edge.span


def _rows_without_turn(index: DuckLineageIndex) -> Iterator[LineageEdge]:
    """Rows of narratives and digests that the index has; none of a damaged one."""
    try:
        owners = [(user, owner) for user, owner in index.owners() if not is_turn_owner(owner)]
        for user in dict.fromkeys(user for user, _ in owners):
            yield from index.rows_of(user, [owner for other_user, owner in owners if other_user == user])
    except DamagedIndexError:
        return


def _state_key(turns: TurnStore, key: TurnKey) -> tuple[str, ...]:
    """What differs where a turn changed while the index was built."""
    try:
        manifest = turns.manifest(key)
    except PandoraError:
        return ()
    return str(manifest.revision), str(manifest.state), manifest.context_sha, turn_entry(manifest)
