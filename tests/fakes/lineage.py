"""Lineage in memory: the rows of an index, and the texts that document ids name."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.lineage import DocumentId, LineageEdge
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError, StoreError


@dataclass
class MemoryIndexFile:
    """`IndexFile` of rows in memory: it exists once something was written, and `damage` makes every use of it fail."""

    path: Path = Path("memory/index")
    written: bool = False
    damage: str = ""

    def exists(self) -> bool:
        return self.written

    def fault(self) -> StoreError | None:
        return StoreError(f"{self.path}: {self.damage}: expected an index") if self.written and self.damage else None

    def check(self) -> None:
        """Raise the fault, if there is one."""
        if fault := self.fault():
            raise fault


@dataclass
class MemoryLineageIndex:
    """`LineageIndex` over a list of rows."""

    file: MemoryIndexFile = field(default_factory=MemoryIndexFile)
    rows: list[LineageEdge] = field(default_factory=list[LineageEdge])
    _complete: bool = False

    def put(self, edges: Sequence[LineageEdge], *, owners: Collection[str] = ()) -> None:
        if not edges and not owners:
            return
        self.file.check()
        replaced = {edge.child for edge in edges if _owner(edge) not in owners}
        self.rows = [row for row in self.rows if _owner(row) not in owners and row.child not in replaced]
        self.rows = sorted([*self.rows, *edges], key=_place)
        self.file.written = True

    def parents(self, user: str, documents: Collection[str]) -> tuple[LineageEdge, ...]:
        return tuple(row for row in self._of(user) if row.child in documents)

    def derived_from(self, user: str, beginning: str) -> tuple[LineageEdge, ...]:
        return tuple(row for row in self._of(user) if row.parent.startswith(beginning))

    def rows_of(self, user: str, owners: Collection[str]) -> tuple[LineageEdge, ...]:
        return tuple(row for row in self._of(user) if _owner(row) in owners)

    def owners(self) -> tuple[tuple[str, str], ...]:
        self.file.check()
        return tuple(sorted({(row.user_id, _owner(row)) for row in self.rows}))

    def runs(self) -> tuple[tuple[str, str], ...]:
        self.file.check()
        newest: dict[str, str] = {}
        for row in self.rows:
            if row.run_id:
                newest[row.run_id] = max(newest.get(row.run_id, ""), row.at)
        return tuple(sorted(newest.items(), key=lambda run: (run[1], run[0])))

    def rows_of_run(self, run_id: str) -> tuple[LineageEdge, ...]:
        self.file.check()
        return tuple(row for row in self.rows if row.run_id == run_id)

    def is_complete(self) -> bool:
        self.file.check()
        return self._complete

    def mark_complete(self, at: str) -> None:
        """Say that the rows are of the whole store."""
        self._complete = self.file.written = bool(at)

    def _of(self, user: str) -> list[LineageEdge]:
        self.file.check()
        return [row for row in self.rows if row.user_id == user]


def _owner(edge: LineageEdge) -> str:
    return DocumentId.parse(edge.child).owner


def _place(edge: LineageEdge) -> tuple[str, str, str, str, tuple[int, int]]:
    return _owner(edge), edge.child, edge.relation, edge.parent, edge.span or (-1, -1)


@dataclass
class MemoryDocumentTexts:
    """`DocumentTexts` over a dictionary: the states of each document with the time from which each stands, oldest first."""

    states: defaultdict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    deleted: set[str] = field(default_factory=set[str])
    """The turns, `<user>:<turn>`, whose originals a retention rule deleted."""

    def put(self, document: str, at: str, text: str) -> None:
        """The newest state of a document."""
        self.states[document].append((at, text))

    def text_at(self, document: DocumentId, *, at: str) -> str | None:
        states = self.states.get(str(document), []) if document.turn and not self.is_deleted(document) else []
        earlier = [text for written, text in states if written < at] or [text for _, text in states[:1]]
        return earlier[-1] if earlier else None

    def is_deleted(self, document: DocumentId) -> bool:
        return document.owner in self.deleted

    def candidates(self, document: DocumentId) -> Iterator[str]:
        whole = str(document).partition("#")[0]
        if whole not in self.states:
            raise DocumentError(f"{document}: not stored: expected a document that exists", missing=True)
        section = document.turn.section if document.turn else None
        for _, text in reversed(self.states[whole]):
            if section is None:
                yield text
            elif found := ContextDocument.parse(text).section(section):
                yield found.text
