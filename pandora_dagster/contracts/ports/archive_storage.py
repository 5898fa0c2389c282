"""The ports of archival: cold storage, the replacement of a turn's folder, holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdLocation, ColdObject, Hold
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.retention import Tombstone
from pandora_dagster.contracts.turns import Manifest, Turn


class ColdStorage(Protocol):
    """The originals of archived turns, stored by their hash and never changed."""

    def put(self, objects: Sequence[ColdObject]) -> tuple[ColdLocation, ...]:
        """Write the objects, read each back and compare it byte by byte. Raises StoreError, DocumentError."""
        ...

    def remove_partial_objects(self) -> int:
        """Delete half-written objects that no process writes; returns their number. Folders that cannot be read are passed over."""
        ...

    def read(self, record: ArchiveRecord) -> Mapping[str, bytes]:
        """The originals, each verified against its hash.

        Raises DocumentError, with `missing` set where the object is not there, and OriginalsDeletedError."""
        ...

    def verify(self, record: ArchiveRecord) -> str:
        """The fault of an object, as one sentence; "" where it is unchanged, or was deleted by retention."""
        ...

    def tombstone(self, record: ArchiveRecord) -> Tombstone | None:
        """The tombstone of originals that were deleted by retention; raises DocumentError for one that contradicts the record."""
        ...

    def write_tombstone(self, location: ColdLocation, tombstone: Tombstone) -> None:
        """Write the tombstone: from now on the originals count as deleted. Raises StoreError."""
        ...

    def delete(self, location: ColdLocation) -> None:
        """Delete an object whose tombstone is stored. Raises StoreError."""
        ...

    def objects(self, *, before: datetime) -> Iterator[ColdLocation]:
        """Every object that was written earlier than `before`, whether a turn names it or not."""
        ...

    def unpack(self, location: ColdLocation) -> tuple[TurnKey, Mapping[str, bytes]]:
        """The turn that an object names as its own, and the originals in it by name. Raises DocumentError."""
        ...

    def exists(self, record: ArchiveRecord) -> bool:
        """Whether there is an object; its content is not verified."""
        ...


class TurnArchive(Protocol):
    """Replaces a turn's documents by compressed ones, and restores them. The caller holds the turn's lock."""

    def size(self, key: TurnKey) -> int:
        """Bytes that `originals` would read, by the sizes of the files; 0 for a turn that is not there. Never raises."""
        ...

    def originals(self, key: TurnKey) -> tuple[Turn, Mapping[str, bytes]]:
        """The newest revision, and the files of the folder that go to cold storage, by their name there.

        Raises DocumentError for a file that contradicts its manifest, and for a symbolic link."""
        ...

    def archived_turn(self, turn: Turn, texts: Mapping[str, str], record: ArchiveRecord) -> Turn:
        """The turn as it will be stored: `texts` are its documents, context.md among them. Raises DocumentError where section 0 differs."""
        ...

    def commit(self, turns: Sequence[tuple[Turn, Turn]]) -> None:
        """Replace each turn (before, after): compressed documents first, `turn.json` last. Raises StoreError."""
        ...

    def remove_unnamed(self, manifests: Iterable[Manifest]) -> None:
        """Delete files that archived turns no longer name. Raises StoreError."""
        ...

    def reconcile(self, key: TurnKey) -> None:
        """Make an archived turn's folder match its manifest after an interrupted run. Raises DocumentError, StoreError."""
        ...

    def restore(self, key: TurnKey) -> Turn:
        """Write the originals back, byte for byte, the newest revision's `turn.json` last. Raises DocumentError, StoreError."""
        ...

    def clear_leftovers(self, key: TurnKey) -> None:
        """Delete what an interrupted restore left beside a restored turn. Raises DocumentError."""
        ...


class Holds(Protocol):
    """The holds that keep turns from archival."""

    def find(self, key: TurnKey) -> Hold | None:
        """The hold of a turn; raises DocumentError for a damaged one, which may be a pin."""
        ...

    def put(self, key: TurnKey, hold: Hold) -> None: ...
    def remove(self, key: TurnKey) -> bool:
        """True where there was one."""
        ...
