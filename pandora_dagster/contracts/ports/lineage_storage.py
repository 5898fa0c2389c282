"""Ports of lineage: its writer, its index, and the texts of the documents it names."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge
from pandora_dagster.contracts.ports.object_storage import IndexFile
from pandora_dagster.contracts.turns import Manifest, Turn


class LineageWriter(Protocol):
    """Writes the rows of turns and of levels above them. Never raises: the rows can be rebuilt from the documents."""

    def put(self, turns: Sequence[tuple[Manifest, Turn]]) -> bool:
        """Write the rows of stored turns, each with its documents as before archival; False where a later attempt may succeed."""
        ...

    def citing(self, key: TurnKey) -> tuple[TurnKey, ...]:
        """The other turns whose sections cite a document of this one."""
        ...

    def put_rows(self, document: str, edges: Sequence[LineageEdge]) -> None:
        """Replace the rows of a narrative or a digest; without `edges` they are removed."""
        ...


class LineageIndex(Protocol):
    """Rows of lineage by document; raises StoreError. An owner is a turn, a narrative or a digest."""

    @property
    def file(self) -> IndexFile: ...
    def parents(self, user: str, documents: Collection[str]) -> tuple[LineageEdge, ...]:
        """The rows whose child is one of these documents."""
        ...

    def put(self, edges: Sequence[LineageEdge], *, owners: Collection[str] = ()) -> None:
        """Store rows; they replace all rows of the same children, and all rows of `owners`."""
        ...

    def derived_from(self, user: str, beginning: str) -> tuple[LineageEdge, ...]:
        """The rows whose parent begins with `beginning`, such as `<user>:<turn>/` or a document."""
        ...

    def rows_of(self, user: str, owners: Collection[str]) -> tuple[LineageEdge, ...]: ...
    def owners(self) -> tuple[tuple[str, str], ...]:
        """User and owner of all rows, each once, in order."""
        ...

    def runs(self) -> tuple[tuple[str, str], ...]:
        """The run ids that rows name, each with the newest time of its rows, oldest first."""
        ...

    def rows_of_run(self, run_id: str) -> tuple[LineageEdge, ...]:
        """The rows that name this run, of all users."""
        ...

    def is_complete(self) -> bool:
        """Whether the rows were once built from the whole store."""
        ...


class DocumentTexts(Protocol):
    """The texts that document ids name, as they are stored now."""

    def text_at(self, document: DocumentId, *, at: str) -> str | None:
        """The turn's document as it was at `at`, before any archival; None where it cannot be read."""
        ...

    def is_deleted(self, document: DocumentId) -> bool:
        """Whether a retention rule deleted this original: a link to it can no longer be proved, which is no fault."""
        ...

    def candidates(self, document: DocumentId) -> Iterator[str]:
        """The text, and where a link may have been made to another state of it (before an archival or a re-run), that one too.
        Raises DocumentError where it is missing or damaged."""
        ...
