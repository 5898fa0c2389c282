"""The ports of archival: cold storage, the replacement of a turn's folder, what keeps a turn from it. Shapes only."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdLocation, ColdObject, Hold
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.retention import Tombstone
from pandora_dagster.contracts.turns import Manifest, Turn


class ColdStorage(Protocol):
    """Where the originals of archived turns lie, by their hash; nothing here is ever changed."""

    def put(self, objects: Sequence[ColdObject]) -> tuple[ColdLocation, ...]:
        """Each object on the disk, read back and compared byte by byte when this returns. Raises StoreError, DocumentError."""
        ...

    def remove_partial_objects(self) -> int:
        """Delete half-written objects that no process writes any more; returns their number. Unreachable ones stay."""
        ...

    def read(self, record: ArchiveRecord) -> Mapping[str, bytes]:
        """The originals, each verified against its hash; raises DocumentError (`missing` without its object), OriginalsDeletedError."""
        ...

    def verify(self, record: ArchiveRecord) -> str:
        """What is wrong with an object, as one sentence; "" where all of it is as it was, or was deleted by rule."""
        ...

    def tombstone(self, record: ArchiveRecord) -> Tombstone | None:
        """What says that the originals were deleted by rule; raises DocumentError for one that contradicts the record."""
        ...

    def write_tombstone(self, place: ColdLocation, tombstone: Tombstone) -> None:
        """The tombstone on the disk: from now on the originals count as deleted. Raises StoreError."""
        ...

    def delete(self, place: ColdLocation) -> None:
        """The object gone, whose tombstone is stored. Raises StoreError."""
        ...

    def objects(self, *, before: datetime) -> Iterator[ColdLocation]:
        """Every object that was written before then, whether a turn names it or not."""
        ...

    def unpack(self, place: ColdLocation) -> tuple[TurnKey, Mapping[str, bytes]]:
        """Whose originals an object holds by its own word, and what they are. Raises DocumentError."""
        ...

    def exists(self, record: ArchiveRecord) -> bool:
        """Whether there is an object, whatever it holds."""
        ...


class TurnArchive(Protocol):
    """The folders of turns on their way to the archive and back. The caller holds the turn's lock."""

    def size(self, key: TurnKey) -> int:
        """Bytes of what `originals` would read, by what the disk says of them; 0 for a turn that is not there. Never raises."""
        ...

    def originals(self, key: TurnKey) -> tuple[Turn, Mapping[str, bytes]]:
        """The newest revision, and every file of the turn's folder that goes to cold storage by its name there; raises
        DocumentError for one that contradicts its manifest and for links."""
        ...

    def archived_turn(self, turn: Turn, texts: Mapping[str, str], record: ArchiveRecord) -> Turn:
        """The turn as it will be stored: `texts` are its documents, context.md among them. Raises DocumentError where section 0 differs."""
        ...

    def commit(self, turns: Sequence[tuple[Turn, Turn]]) -> None:
        """Each turn as it is stored and as it is archived: compressed documents first, `turn.json` last. Raises StoreError."""
        ...

    def remove_unnamed(self, manifests: Iterable[Manifest]) -> None:
        """Take away what archived turns no longer name. Raises StoreError."""
        ...

    def reconcile(self, key: TurnKey) -> None:
        """An archived turn's folder as its manifest says, whatever a cut-off run left in it. Raises DocumentError, StoreError."""
        ...

    def restore(self, key: TurnKey) -> Turn:
        """The originals back, byte for byte, the newest revision's `turn.json` last. Raises DocumentError, StoreError."""
        ...

    def clear_leftovers(self, key: TurnKey) -> None:
        """Take away what a cut-off restoring left beside a turn that is restored. Raises DocumentError."""
        ...


class Holds(Protocol):
    """What keeps turns from archival."""

    def find(self, key: TurnKey) -> Hold | None:
        """Raises DocumentError for a damaged one: it may be a pin."""
        ...

    def put(self, key: TurnKey, hold: Hold) -> None: ...
    def remove(self, key: TurnKey) -> bool:
        """True where there was one."""
        ...
