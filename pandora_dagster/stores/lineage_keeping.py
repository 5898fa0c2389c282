"""The rows of turns, written when a turn is done, archived or brought back, and those of levels. Knows that nothing depends on it."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from pandora_dagster.contracts.lineage import Edge
from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import PandoraError
from pandora_dagster.selection.turn_lineage import edges_of_turn
from pandora_dagster.stores.lineage_index import DuckLineageIndex
from pandora_dagster.stores.lineage_texts import StoredTexts


class LineageKeeper:
    """The KeepsLineage port. `texts` gives a reader for one batch; `report` is told in one sentence what went wrong, each once."""

    def __init__(
        self, index: DuckLineageIndex, texts: Callable[[], StoredTexts], counter: CountsTokens, *, report: Callable[[str], None]
    ) -> None:
        self.index = index
        self._texts, self._counter, self._report = texts, counter, report
        self._told: set[str] = set()

    def put(self, turns: Sequence[tuple[Manifest, Turn]]) -> None:
        """Rows in the place of the turns' older ones, in one opening of the index. What is not written is at the next rebuild."""
        with self._told_once():
            texts = self._texts()
            edges = [
                edge
                for manifest, original in turns
                for edge in edges_of_turn(
                    manifest, original, count=self._counter.count, look=lambda document, at: texts.cited(document, at=at)
                )
            ]
            self.index.put(edges, owners=[str(turn.key) for _, turn in turns])

    def put_rows(self, document: str, edges: Sequence[Edge]) -> None:
        """The rows of a narrative or a digest in the place of all its older ones; none where it is gone."""
        with self._told_once():
            self.index.put(edges, owners=[document])

    @contextmanager
    def _told_once(self) -> Generator[None]:
        try:
            yield
        except PandoraError as error:
            sentence = f"{error}; the documents stand, their lineage does not tell of them: pandora index rebuild makes it again"
            if sentence not in self._told:
                self._told.add(sentence)
                self._report(sentence)
