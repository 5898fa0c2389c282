"""The lineage index: which document was made from which, in one DuckDB file. Knows rows; reads no document.

An archival run writes its rows in batches, as columns. Only the search for rows to replace grows with the index: one scan of a column.
"""

import json
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.record_storage import DocumentTexts, LineageIndex
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, Turn
from pandora_dagster.errors import DamagedIndexError, PandoraError, StoreError
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema
from pandora_dagster.stores.lineage.turn_lineage import turn_edges

_PLAIN = columns_of(LineageEdge, without=("span", "verdicts", "at"))
_VALUES = {**_PLAIN, "verdicts": "VARCHAR", "span_start": "BIGINT", "span_end": "BIGINT", "made_at": "VARCHAR"}
_PLAIN_VALUES = attrgetter(*_PLAIN)
_LINEAGE = ColumnTable("lineage", {"owner": "VARCHAR", **_VALUES})
LINEAGE_SCHEMA = Schema(1, (_LINEAGE.creation, "CREATE TABLE whole (since VARCHAR)"))
_ORDER = "ORDER BY owner, child, relation, parent, span_start NULLS FIRST, span_end"


@dataclass(frozen=True, slots=True)
class DuckLineageIndex:
    """The rows by user and document. Every method opens, works and closes; raises StoreError."""

    file: DuckDBFile

    def put(self, edges: Sequence[LineageEdge], *, owners: Collection[str] = ()) -> None:
        """Store rows in the place of all rows of the same children, and of all rows of `owners`; all of them or none."""
        if not edges and not owners:
            return
        of = [DocumentId.parse(edge.child).owner for edge in edges]
        whole = frozenset(owners)
        children = sorted({edge.child for edge, owner in zip(edges, of, strict=True) if owner not in whole})
        with self.file.writing() as db:
            if whole:
                _LINEAGE.delete(db, owner=sorted(whole))
            if children:
                _LINEAGE.delete(db, child=children)
            _LINEAGE.insert(db, [(owner, *_values(edge)) for owner, edge in zip(of, edges, strict=True)])

    def parents(self, user: str, documents: Collection[str]) -> tuple[LineageEdge, ...]:
        """What these documents were made from."""
        return self._rows("user_id = ? AND child IN (SELECT unnest(?::VARCHAR[]))", [user, list(documents)])

    def derived_from_turn(self, user: str, turn: str) -> tuple[LineageEdge, ...]:
        """What was made from any document of a turn, `<user>:<turn>`."""
        return self._rows("user_id = ? AND starts_with(parent, ?)", [user, f"{turn}/"])

    def rows_of(self, user: str, owners: Collection[str]) -> tuple[LineageEdge, ...]:
        """The rows of these turns, narratives and digests."""
        return self._rows("user_id = ? AND owner IN (SELECT unnest(?::VARCHAR[]))", [user, list(owners)])

    def owners(self) -> tuple[tuple[str, str], ...]:
        """User and owner of all rows, each once, in order."""
        if not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            found = db.execute("SELECT DISTINCT user_id, owner FROM lineage ORDER BY ALL")
            return tuple((str(who), str(owner)) for who, owner in found.fetchall())

    def is_complete(self) -> bool:
        """Whether the rows were once made of the whole store; the rows alone do not show which turns are older than the index."""
        if not self.file.path.exists():
            return False
        with self.file.reading() as db:
            return db.execute("SELECT 1 FROM whole LIMIT 1").fetchone() is not None

    def mark_complete(self, at: str) -> None:
        """Say that the rows are of the whole store."""
        with self.file.writing() as db:
            db.execute("INSERT INTO whole VALUES (?)", [at])

    def _rows(self, where: str, values: list[Any]) -> tuple[LineageEdge, ...]:
        if not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            found = db.execute(f"SELECT {', '.join(_VALUES)} FROM lineage WHERE {where} {_ORDER}", values).fetchall()  # noqa: S608 - fixed names
        try:
            return tuple(_edge(row) for row in found)
        except ValueError as error:
            message = f"{self.file.path}: damaged row: {str(error).splitlines()[-1][:200]}: expected documents of one user"
            raise DamagedIndexError(message, hint="run `pandora index rebuild`: it makes the index again from the documents") from error


def _values(edge: LineageEdge) -> tuple[Any, ...]:  # DuckDB parameters: str, int or None
    return *_PLAIN_VALUES(edge), json.dumps(dict(edge.verdicts), sort_keys=True), *(edge.span or (None, None)), edge.at


def _edge(values: tuple[Any, ...]) -> LineageEdge:
    *plain, verdicts, start, end, at = values
    span = None if start is None else (start, end)
    row = dict(zip(_PLAIN, plain, strict=True))
    return LineageEdge.model_validate({**row, "verdicts": json.loads(verdicts), "span": span, "at": at})


# The rows of turns, written when a turn is done, archived or brought back, and those of levels. Knows that nothing depends on it.


class LineageIndexWriter:
    """The `LineageWriter` port. `texts` gives a reader for one batch; `report` receives one sentence for each fault, once."""

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
        """Rows in the place of the turns' older ones, in one opening of the index. What is not written is at the next rebuild; False
        where the index was held too long or the disk refused."""
        with self._reporting_once() as errors:
            texts = self._texts()

            def look(document: DocumentId, at: str) -> str | None:
                return texts.cited(document, at=at)

            edges = [
                edge
                for manifest, original in turns
                for edge in turn_edges(manifest, original, phases=self._phases, count=self._counter.count, look=look)
            ]
            self.index.put(edges, owners=[str(turn.key) for _, turn in turns])
        return not any(isinstance(error, StoreError) and not isinstance(error, DamagedIndexError) for error in errors)

    def citing(self, key: TurnKey) -> tuple[TurnKey, ...]:
        """The other turns whose sections cite a document of this one; none where the index cannot be read."""
        with self._reporting_once():
            found = (
                DocumentId.parse(e.child).turn for e in self.index.derived_from_turn(key.user, str(key)) if e.relation is Relation.CITED
            )
            return tuple(sorted({place.key for place in found if place} - {key}))
        return ()

    def put_rows(self, document: str, edges: Sequence[LineageEdge]) -> None:
        """The rows of a narrative or a digest in the place of all its older ones; none where it is gone."""
        with self._reporting_once():
            self.index.put(edges, owners=[document])

    @contextmanager
    def _reporting_once(self) -> Generator[list[PandoraError]]:
        """What went wrong inside is in the list afterwards."""
        faults: list[PandoraError] = []
        try:
            yield faults
        except PandoraError as error:
            faults.append(error)
            sentence = f"{error}; the documents are stored, their lineage is not: run `pandora index rebuild`"
            if sentence not in self._reported:
                self._reported.add(sentence)
                self._report(sentence)
