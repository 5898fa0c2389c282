"""Index administration: the indexes of a store rebuilt from its documents and records, and compared with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pandora_dagster.contracts.ports.object_storage import IndexFile
from pandora_dagster.contracts.turns import RebuildReport

FaultCallback = Callable[[str], None]
ProgressCallback = Callable[[int], None]
"""Receives the number of turns indexed so far."""
TURNS, CALLS, SOURCES, LINEAGE, VECTORS = "turns", "calls", "research and visits", "lineage", "vectors"
"""Names of indexes."""


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """One index of a store besides the index of turns."""

    name: str
    file: IndexFile
    rebuild: Callable[[FaultCallback], tuple[int, Path | None]]
    """Rebuilds the index; returns the number of its rows, and where a damaged file is kept. Raises StoreError."""
    verify: Callable[[], Sequence[str]]
    """One sentence for each difference from the documents. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class IndexService:
    """The indexes of one store: that of turns, and all `others`."""

    turns_file: IndexFile
    rebuild_turns: Callable[[ProgressCallback], RebuildReport]
    verify_turns: Callable[[], Sequence[str]]
    others: tuple[StoredIndex, ...]
    compare_newest: Callable[[int], Sequence[str]]
    """The differences of so many of each user's newest turns from the index of turns. Raises StoreError."""

    def rebuild(self, *, progress: ProgressCallback = lambda turns: None) -> RebuildReport:
        """Rebuild every index from the documents and records. Raises StoreError."""
        report = self.rebuild_turns(progress)
        broken: list[str] = []
        rows: dict[str, int] = {}
        damaged_files = list(report.damaged_files)
        for index in self.others:
            rows[index.name], damaged_file = index.rebuild(broken.append)
            damaged_files += [damaged_file] if damaged_file else []
        return replace(report, rows=rows, broken_lines=tuple(broken), damaged_files=tuple(damaged_files))

    def verify(self) -> tuple[str, ...]:
        """One sentence for each difference between the indexes and the documents and records. Raises StoreError."""
        return (*self.verify_turns(), *(fault for index in self.others for fault in index.verify()))

    def files(self) -> Iterator[tuple[str, IndexFile]]:
        """The name and the file of each index."""
        yield TURNS, self.turns_file
        yield from ((index.name, index.file) for index in self.others)
