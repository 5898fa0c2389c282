"""Ports of the lineage: its index, its writer, the texts that document ids name."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge
from pandora_dagster.contracts.turns import Manifest, Turn


class LineageIndex(Protocol):
    """The rows by user and document. They can be made again from manifests and records; raises StoreError."""

    def put(self, edges: Sequence[LineageEdge], *, owners: Collection[str] = ()) -> None:
        """Store rows in the place of all rows of the same children, and take away every other row of `owners` (`DocumentId.owner` of
        a child: a turn, a narrative, a digest); all or nothing. The same rows again change nothing."""
        ...

    def remove_user(self, user: str) -> None:
        """Take away every row of a user."""
        ...

    def parents(self, user: str, documents: Collection[str]) -> tuple[LineageEdge, ...]:
        """What these documents were made from."""
        ...

    def children(self, user: str, documents: Collection[str]) -> tuple[LineageEdge, ...]:
        """What was made from these documents."""
        ...

    def rows_of(self, user: str, owners: Collection[str]) -> tuple[LineageEdge, ...]:
        """The rows of these turns, narratives and digests."""
        ...

    def owners(self, user: str | None = None) -> tuple[tuple[str, str], ...]:
        """User and owner of all rows, each once, in order."""
        ...


class LineageWriter(Protocol):
    """Writes the rows of turns and of levels above them. Never raises: the documents stand, and the rows can be made again from them."""

    def put(self, turns: Sequence[tuple[Manifest, Turn]]) -> bool:
        """Turns as they stand, each with its documents as they were before any archival; False where another try may do."""
        ...

    def citing(self, key: TurnKey) -> tuple[TurnKey, ...]:
        """The other turns whose sections cite a document of this one."""
        ...

    def put_rows(self, document: str, edges: Sequence[LineageEdge]) -> None:
        """The rows of a narrative or a digest in the place of all its older ones; none where it is gone."""
        ...


class DocumentTexts(Protocol):
    """The texts that document ids name, as they lie now."""

    def cited(self, document: DocumentId, *, at: str) -> str | None:
        """The turn's document as one read it at `at`, before any archival; None where it can not be read."""
        ...

    def is_deleted(self, document: DocumentId) -> bool:
        """Whether it was an original that was deleted by rule: a link to it can not be proved any more, and is no fault."""
        ...

    def candidates(self, document: DocumentId) -> Iterator[str]:
        """The text, and where a link may have been made to another state of it (before an archival or a re-run), that one too.
        Raises DocumentError where it is gone or damaged."""
        ...
