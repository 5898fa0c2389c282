"""The ColdStorage port in memory: the tars of objects and the JSON of tombstones, so that a test can damage one."""

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from pydantic import ValidationError

from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdLocation, ColdObject
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.retention import Tombstone
from pandora_dagster.errors import DocumentError, OriginalsDeletedError, StoreError
from pandora_dagster.stores.turns.cold_files import build_tar, original_manifest
from tests.fakes.turn_store import utc_now


@dataclass
class MemoryColdStorage:
    """`ColdStorage` over dictionaries by path; `written` is when an object was put there first."""

    clock: Clock = utc_now
    tars: dict[str, bytes] = field(default_factory=dict[str, bytes])
    tombstones: dict[str, str] = field(default_factory=dict[str, str])
    written: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def put(self, objects: Sequence[ColdObject]) -> tuple[ColdLocation, ...]:
        places: list[ColdLocation] = []
        for item in objects:
            tar = build_tar(item.files)
            year, month, _ = item.day.split("-")
            digest = sha256(tar).hexdigest()
            path = f"cold/{item.key.user}/{year}/{month}/{digest}.tar.zst"
            self.tars[path] = tar
            self.written.setdefault(path, self.clock())
            self.tombstones.pop(path, None)
            places.append(ColdLocation(path, digest, len(tar)))
        return tuple(places)

    def remove_partial_objects(self) -> int:
        """An object is in the dictionary whole or not at all."""
        return 0

    def read(self, record: ArchiveRecord) -> Mapping[str, bytes]:
        if gone := self.tombstone(record):
            raise OriginalsDeletedError(f"{gone.turn}: its originals were {gone.description}", missing=True)
        files = self._files(record.location)
        if {name: sha256(data).hexdigest() for name, data in files.items()} != dict(record.files):
            raise DocumentError(f"{record.cold}: other files than the manifest names: expected the same files and hashes in both")
        return files

    def verify(self, record: ArchiveRecord) -> str:
        try:
            self.read(record)
        except OriginalsDeletedError:
            return ""
        except DocumentError as error:
            return str(error)
        return ""

    def tombstone(self, record: ArchiveRecord) -> Tombstone | None:
        if (text := self.tombstones.get(_checked(record.location))) is None:
            return None
        try:
            found = Tombstone.model_validate_json(text)
        except ValidationError as error:
            raise DocumentError(f"{record.cold}: {error.error_count()} faults: expected a tombstone") from error
        hashes = {name: file.sha256 for name, file in found.files.items()}
        if (found.sha256, found.day, hashes) != (record.sha256, record.day, dict(record.files)):
            raise DocumentError(f"{record.cold}: its tombstone describes other originals: expected the same hashes and the same day")
        return found

    def write_tombstone(self, location: ColdLocation, tombstone: Tombstone) -> None:
        self.tombstones[_checked(location)] = tombstone.model_dump_json()

    def delete(self, location: ColdLocation) -> None:
        if _checked(location) not in self.tombstones:
            raise StoreError(f"{location.path}: it has no tombstone: expected one before the object is deleted")
        self.tars.pop(location.path, None)
        self.written.pop(location.path, None)

    def objects(self, *, before: datetime) -> Iterator[ColdLocation]:
        for path, tar in sorted(self.tars.items()):
            if self.written[path] < before:
                yield ColdLocation(path, path.rpartition("/")[2].removesuffix(".tar.zst"), len(tar))

    def unpack(self, location: ColdLocation) -> tuple[TurnKey, Mapping[str, bytes]]:
        files = self._files(location)
        key = original_manifest(files, where=location.path).key
        if location.path.split("/")[1] != key.user:
            raise DocumentError(f"{location.path}: it holds {key}: expected it below cold/{key.user}/")
        return key, files

    def exists(self, record: ArchiveRecord) -> bool:
        return _checked(record.location) in self.tars

    def _files(self, location: ColdLocation) -> dict[str, bytes]:
        if (tar := self.tars.get(_checked(location))) is None:
            raise DocumentError(f"{location.path}: missing: expected the originals of an archived turn", missing=True)
        if sha256(tar).hexdigest() != location.sha256:
            raise DocumentError(f"{location.path}: damaged: its content has another sha256: expected {location.sha256[:12]}")
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:", encoding="utf-8") as opened:
            return {about.name: file.read() for about in opened if (file := opened.extractfile(about))}


def _checked(location: ColdLocation) -> str:
    parts = location.path.split("/")
    if len(parts) != 5 or parts[0] != "cold" or ".." in parts or parts[-1] != f"{location.sha256}.tar.zst":
        raise DocumentError(f"cold {location.path[:200]!r}: expected a path below cold/ named by its sha256")
    return location.path
