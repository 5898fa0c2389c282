"""The lineage index: which document was made from which, as rows in one DuckDB file.

A row is an edge from a parent document to its child, such as from an original to its compressed document. The owner of a row is the turn,
narrative or digest that its child belongs to. An archival run writes rows in batches. Only the search for the rows to replace grows with
the index: it scans one column.
"""

import json
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports.lineage_storage import DocumentTexts, LineageIndex
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, Turn
from pandora_dagster.errors import DamagedIndexError, PandoraError, StoreError
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema
from pandora_dagster.stores.lineage.turn_lineage import turn_edges

_DIRECT_COLUMNS = columns_of(LineageEdge, without=("span", "verdicts", "at"))
_EDGE_COLUMNS = {**_DIRECT_COLUMNS, "verdicts": "VARCHAR", "span_start": "BIGINT", "span_end": "BIGINT", "made_at": "VARCHAR"}
_direct_values = attrgetter(*_DIRECT_COLUMNS)
_LINEAGE = ColumnTable("lineage", {"owner": "VARCHAR", **_EDGE_COLUMNS})
LINEAGE_SCHEMA = Schema(1, (_LINEAGE.creation, "CREATE TABLE whole (since VARCHAR)"))
_ORDER_BY = "ORDER BY owner, child, relation, parent, span_start NULLS FIRST, span_end"


@dataclass(frozen=True, slots=True)
class DuckLineageIndex:
    """The rows of all users. Each method opens and closes the file; raises StoreError."""

    file: DuckDBFile

    def put(self, edges: Sequence[LineageEdge], *, owners: Collection[str] = ()) -> None:
        """Store rows after deleting all rows of `owners` and of the same children; all of it or nothing."""
        if not edges and not owners:
            return
        edge_owners = [DocumentId.parse(edge.child).owner for edge in edges]
        replaced_owners = frozenset(owners)
        children = sorted({edge.child for edge, owner in zip(edges, edge_owners, strict=True) if owner not in replaced_owners})
        with self.file.writing() as db:
            if replaced_owners:
                _LINEAGE.delete(db, owner=sorted(replaced_owners))
            if children:
                _LINEAGE.delete(db, child=children)
            _LINEAGE.insert(db, [(owner, *_values(edge)) for owner, edge in zip(edge_owners, edges, strict=True)])

    def parents(self, user: str, documents: Collection[str]) -> tuple[LineageEdge, ...]:
        """The edges from what these documents were made from."""
        return self._rows("user_id = ? AND child IN (SELECT unnest(?::VARCHAR[]))", [user, list(documents)])

    def derived_from(self, user: str, beginning: str) -> tuple[LineageEdge, ...]:
        """The edges to what was made from any document whose id begins so, such as `<user>:<turn>/`."""
        return self._rows("user_id = ? AND starts_with(parent, ?)", [user, beginning])

    def rows_of(self, user: str, owners: Collection[str]) -> tuple[LineageEdge, ...]:
        """The rows of these turns, narratives and digests."""
        return self._rows("user_id = ? AND owner IN (SELECT unnest(?::VARCHAR[]))", [user, list(owners)])

    def owners(self) -> tuple[tuple[str, str], ...]:
        """User and owner of all rows, each once, in order."""
        if not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            rows = db.execute("SELECT DISTINCT user_id, owner FROM lineage ORDER BY ALL")
            return tuple((str(user), str(owner)) for user, owner in rows.fetchall())

    def runs(self) -> tuple[tuple[str, str], ...]:
        """The run ids that rows name, each with the newest time of its rows, oldest first."""
        if not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            rows = db.execute(
                "SELECT run_id, max(made_at) AS newest FROM lineage WHERE run_id <> '' GROUP BY run_id ORDER BY newest, run_id"
            )
            return tuple((str(run_id), str(newest)) for run_id, newest in rows.fetchall())

    def rows_of_run(self, run_id: str) -> tuple[LineageEdge, ...]:
        """The rows that name this run, of all users."""
        return self._rows("run_id = ?", [run_id])

    def is_complete(self) -> bool:
        """Whether the index was once built from the whole store; its rows alone do not show whether older turns are missing."""
        if not self.file.path.exists():
            return False
        with self.file.reading() as db:
            return db.execute("SELECT 1 FROM whole LIMIT 1").fetchone() is not None

    def mark_complete(self, at: str) -> None:
        """Record that the index was built from the whole store."""
        with self.file.writing() as db:
            db.execute("INSERT INTO whole VALUES (?)", [at])

    def _rows(self, where: str, values: list[Any]) -> tuple[LineageEdge, ...]:
        """The edges whose rows meet a condition; raises DamagedIndexError for a row that is no edge."""
        if not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            rows = db.execute(f"SELECT {', '.join(_EDGE_COLUMNS)} FROM lineage WHERE {where} {_ORDER_BY}", values).fetchall()  # noqa: S608 - fixed names
        try:
            return tuple(_edge(row) for row in rows)
        except ValueError as error:
            message = f"{self.file.path}: damaged row: {str(error).splitlines()[-1][:200]}: expected documents of one user"
            raise DamagedIndexError(message, hint="run `pandora index rebuild`: it builds the index from the documents") from error


def _values(edge: LineageEdge) -> tuple[Any, ...]:  # DuckDB parameters: str, int or None
    return *_direct_values(edge), json.dumps(dict(edge.verdicts), sort_keys=True), *(edge.span or (None, None)), edge.at


def _edge(values: tuple[Any, ...]) -> LineageEdge:
    *direct, verdicts, start, end, at = values
    span = None if start is None else (start, end)
    row = dict(zip(_DIRECT_COLUMNS, direct, strict=True))
    return LineageEdge.model_validate({**row, "verdicts": json.loads(verdicts), "span": span, "at": at})


class LineageIndexWriter:
    """The `LineageWriter` port: writes the rows of turns that are completed, archived or restored, and those of levels.

    `texts` gives a reader for one batch; `report` receives one sentence for each fault, once. No fault is raised.
    """

    def __init__(
        self,
        index: LineageIndex,
        texts: Callable[[], DocumentTexts],
        counter: TokenMeasure,
        *,
        phases: PhaseEffects,
        report: Callable[[str], None],
    ) -> None:
        self.index = index
        self._texts, self._counter, self._phases, self._report = texts, counter, phases, report
        self._reported: set[str] = set()

    def put(self, turns: Sequence[tuple[Manifest, Turn]]) -> bool:
        """Replace the rows of these turns in one transaction; what is not written is added by the next rebuild.

        False where a later attempt may succeed: the index was locked too long, or the disk refused. True does not say that
        rows were written.
        """
        with self._reporting_once() as errors:
            texts = self._texts()

            def read_document(document: DocumentId, at: str) -> str | None:
                return texts.text_at(document, at=at)

            edges = [
                edge
                for manifest, original in turns
                for edge in turn_edges(manifest, original, phases=self._phases, count=self._counter.count, read_document=read_document)
            ]
            self.index.put(edges, owners=[str(turn.key) for _, turn in turns])
        return not any(isinstance(error, StoreError) and not isinstance(error, DamagedIndexError) for error in errors)

    def citing(self, key: TurnKey) -> tuple[TurnKey, ...]:
        """The other turns whose sections cite a document of this one; none where the index cannot be read."""
        with self._reporting_once():
            citing_documents = (
                DocumentId.parse(edge.child).turn
                for edge in self.index.derived_from(key.user, f"{key}/")
                if edge.relation is Relation.CITED
            )
            return tuple(sorted({turn_document.key for turn_document in citing_documents if turn_document} - {key}))
        return ()

    def put_rows(self, document: str, edges: Sequence[LineageEdge]) -> None:
        """Replace the rows of a narrative or a digest; `edges` is empty where it was deleted."""
        with self._reporting_once():
            self.index.put(edges, owners=[document])

    @contextmanager
    def _reporting_once(self) -> Generator[list[PandoraError]]:
        """Catch the errors of the block: the list has them afterwards, and each sentence is reported once."""
        faults: list[PandoraError] = []
        try:
            yield faults
        except PandoraError as error:
            faults.append(error)
            sentence = f"{error}; the documents are stored, their lineage is not: run `pandora index rebuild`"
            if sentence not in self._reported:
                self._reported.add(sentence)
                self._report(sentence)
