"""Index administration: the indexes of a store rebuilt from its documents and records, and compared with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index_rebuild import RebuildReport

FaultCallback = Callable[[str], None]
ProgressCallback = Callable[[int], None]
"""Receives the number of turns indexed so far."""


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """One index of a store besides the index of turns."""

    name: str
    file: DuckDBFile
    rebuild: Callable[[FaultCallback], tuple[int, Path | None]]
    """Rebuilds the index; returns the number of its rows, and where a damaged file is kept. Raises StoreError."""
    verify: Callable[[], Sequence[str]]
    """One sentence for each difference from the documents. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class IndexService:
    """The indexes of one store. `vectors` is None where embeddings are off."""

    turns_file: DuckDBFile
    rebuild_turns: Callable[[ProgressCallback], RebuildReport]
    verify_turns: Callable[[], Sequence[str]]
    calls: StoredIndex
    sources: StoredIndex
    lineage: StoredIndex
    vectors: StoredIndex | None = None

    def rebuild(self, *, progress: ProgressCallback = lambda turns: None) -> RebuildReport:
        """Rebuild the indexes of turns, calls, sources, vectors and lineage from their documents and records. Raises StoreError."""
        report = self.rebuild_turns(progress)
        broken: list[str] = []
        calls, calls_damaged_file = self.calls.rebuild(broken.append)
        sources, sources_damaged_file = self.sources.rebuild(broken.append)
        vectors = self.vectors.rebuild(broken.append)[0] if self.vectors else 0
        links, lineage_damaged_file = self.lineage.rebuild(lambda fault: None)  # unreadable turns are in the report of the turns already
        return replace(
            report,
            calls=calls,
            calls_damaged_file=calls_damaged_file,
            broken_lines=tuple(broken),
            sources=sources,
            sources_damaged_file=sources_damaged_file,
            vectors=vectors,
            links=links,
            lineage_damaged_file=lineage_damaged_file,
        )

    def verify(self) -> tuple[str, ...]:
        """One sentence for each difference between the indexes and the documents and records. Raises StoreError."""
        others = (self.calls, self.sources, self.vectors, self.lineage)
        return (*self.verify_turns(), *(fault for index in others if index for fault in index.verify()))

    def files(self) -> Iterator[tuple[str, DuckDBFile]]:
        """The name and the file of each index."""
        yield "turns", self.turns_file
        yield from ((index.name, index.file) for index in (self.calls, self.sources, self.lineage, self.vectors) if index)
