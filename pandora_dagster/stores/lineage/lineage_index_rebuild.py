"""The lineage index made again from the manifests, and compared with them. The documents are the truth."""

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

BATCH = 200
"""Turns whose rows are written or compared together."""
EdgeSource = Callable[[], Iterable[LineageEdge]]
"""The rows of what belongs to no turn, made of its records: narratives, digests."""


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
            manifest, original, phases=texts.phases, count=self.counter.count, look=lambda document, at: texts.cited(document, at=at)
        )

    def _original(self, key: TurnKey) -> Turn:
        manifest = self.turns.manifest(key)
        if manifest.archive is not None or manifest.state in (TurnState.SAVED, TurnState.CLARIFY):
            return self.turns.original(key)
        return Turn(key, manifest, "")

    def of_records(self) -> Iterator[LineageEdge]:
        """The rows of narratives and digests."""
        for make in self.records:
            yield from make()


def rebuild_lineage(
    expected: ExpectedLineage,
    index: DuckLineageIndex,
    *,
    at: str,
    report: Callable[[str], None],
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[int, Path | None]:
    """Make the index again beside the old one, then put it in its place: its rows, and where a damaged one is kept.

    Rows of narratives and digests without a record are taken over. `report` receives each document that cannot be read. Raises StoreError.
    """
    faults: list[str] = []
    seen: dict[TurnKey, tuple[str, ...]] = {}

    def fill(file: DuckDBFile) -> int:
        fresh, count = DuckLineageIndex(file), 0
        for keys in batches(expected.turns.keys(), BATCH):
            seen.update({key: _state_key(expected.turns, key) for key in keys})
            edges = [edge for key in keys for edge in expected.of_turn(key, faults)]
            fresh.put(edges)
            count += len(edges)
            progress(len(seen))
        made = tuple(expected.of_records())
        recorded = {DocumentId.parse(edge.child).owner for edge in made}
        kept = (*made, *(edge for edge in _of_no_turn(index) if DocumentId.parse(edge.child).owner not in recorded))
        fresh.put(kept)
        fresh.mark_complete(at)
        return count + len(kept)

    count, damaged_file = index.file.rebuild(fill)
    changed = (key for key in expected.turns.keys() if seen.get(key) != _state_key(expected.turns, key))  # noqa: SIM118 - a store
    for keys in batches(changed, BATCH):
        index.put([edge for key in keys for edge in expected.of_turn(key, [])], owners=[str(key) for key in keys])
    for fault in faults:
        report(fault)
    return count, damaged_file


def verify_lineage(expected: ExpectedLineage, index: DuckLineageIndex, *, keys: Iterable[TurnKey] | None = None) -> Iterator[str]:
    """Every difference between the manifests and the rows, each as one sentence. `keys`: of these turns alone. Raises StoreError."""
    seen: set[str] = set()
    for batch in batches(expected.turns.keys() if keys is None else keys, BATCH):
        yield from differences(expected, index, batch)
        seen |= {str(key) for key in batch} if keys is None else set()
    if keys is not None:
        return
    gone = [owner for _, owner in index.owners() if is_turn_owner(owner) and owner not in seen]
    yield from (f"{owner}: in the lineage, but no such turn: expected no row" for owner in gone)
    made: dict[str, list[LineageEdge]] = {}
    for edge in expected.of_records():
        made.setdefault(DocumentId.parse(edge.child).owner, []).append(edge)
    for owner, edges in made.items():
        yield from _compared(owner, edges, index.rows_of(edges[0].user_id, [owner]))


def differences(expected: ExpectedLineage, index: DuckLineageIndex, keys: Sequence[TurnKey]) -> Iterator[str]:
    """What the rows of these turns do not say as their manifests do. Raises StoreError."""
    rows: dict[str, list[LineageEdge]] = {}
    for user in dict.fromkeys(key.user for key in keys):
        for edge in index.rows_of(user, [str(key) for key in keys if key.user == user]):
            rows.setdefault(DocumentId.parse(edge.child).owner, []).append(edge)
    for key in keys:
        faults: list[str] = []
        edges = expected.of_turn(key, faults)
        yield from faults or _compared(str(key), edges, rows.get(str(key), ()))


def _compared(owner: str, wanted: Sequence[LineageEdge], found: Sequence[LineageEdge]) -> Iterator[str]:
    if wanted and not found:
        yield f"{owner}: missing from the lineage, expected {len(wanted)} rows"
        return
    there = {_place(edge): edge for edge in found}
    for edge in wanted:
        row = there.pop(_place(edge), None)
        if row is None:
            yield f"{owner}: {edge.relation}: {edge.child} from {edge.parent}: missing from the lineage, expected a row"
        elif row != edge:
            name = next(name for name in LineageEdge.model_fields if getattr(row, name) != getattr(edge, name))
            fault = f"the lineage says {str(getattr(row, name))[:80]!r}, its documents say {str(getattr(edge, name))[:80]!r}"
            yield f"{owner}: {edge.relation}: {edge.child} from {edge.parent}: {name}: {fault}"
    for edge in there.values():
        yield f"{owner}: {edge.relation}: {edge.child} from {edge.parent}: in the lineage, but not in its documents: expected no row"


def _place(edge: LineageEdge) -> tuple[object, ...]:
    return edge.child, edge.relation, edge.parent, edge.span


def _of_no_turn(index: DuckLineageIndex) -> Iterator[LineageEdge]:
    """Rows of narratives and digests that the index has; none of a damaged one."""
    try:
        found = [(user, owner) for user, owner in index.owners() if not is_turn_owner(owner)]
        for user in dict.fromkeys(user for user, _ in found):
            yield from index.rows_of(user, [owner for whose, owner in found if whose == user])
    except DamagedIndexError:
        return


def _state_key(turns: TurnStore, key: TurnKey) -> tuple[str, ...]:
    """The state that shows that a turn changed while the index was made."""
    try:
        manifest = turns.manifest(key)
    except PandoraError:
        return ()
    return str(manifest.revision), str(manifest.state), manifest.context_sha, turn_entry(manifest)
