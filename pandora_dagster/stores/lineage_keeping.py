"""The rows of turns, written when a turn is done, archived or brought back, and those of levels. Knows that nothing depends on it."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports import TokenMeasure
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import DamagedIndexError, PandoraError, StoreError
from pandora_dagster.selection.turn_lineage import turn_edges
from pandora_dagster.stores.lineage_index import DuckLineageIndex
from pandora_dagster.stores.lineage_texts import StoredDocumentTexts


class LineageIndexWriter:
    """The KeepsLineage port. `texts` gives a reader for one batch; `report` is told in one sentence what went wrong, each once."""

    def __init__(
        self, index: DuckLineageIndex, texts: Callable[[], StoredDocumentTexts], counter: TokenMeasure, *, report: Callable[[str], None]
    ) -> None:
        self.index = index
        self._texts, self._counter, self._report = texts, counter, report
        self._told: set[str] = set()

    def put(self, turns: Sequence[tuple[Manifest, Turn]]) -> bool:
        """Rows in the place of the turns' older ones, in one opening of the index. What is not written is at the next rebuild; False
        where the index was held too long or the disk refused."""
        with self._reporting_once() as told:
            texts = self._texts()
            edges = [
                edge
                for manifest, original in turns
                for edge in turn_edges(
                    manifest, original, count=self._counter.count, look=lambda document, at: texts.cited(document, at=at)
                )
            ]
            self.index.put(edges, owners=[str(turn.key) for _, turn in turns])
        return not any(isinstance(error, StoreError) and not isinstance(error, DamagedIndexError) for error in told)

    def citing(self, key: TurnKey) -> tuple[TurnKey, ...]:
        """The other turns whose sections cite a document of this one; none where the index can not be read."""
        with self._reporting_once():
            found = (DocumentId.parse(e.child).turn for e in self.index.derived_from_turn(key.user, str(key)) if e.relation is Relation.CITED)
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
            sentence = f"{error}; the documents stand, their lineage does not tell of them: pandora index rebuild makes it again"
            if sentence not in self._told:
                self._told.add(sentence)
                self._report(sentence)
