"""The ColdStorage port: the originals of one archived turn in one file, `cold/<user>/<yyyy>/<mm>/<sha256>.tar.zst`.

An object is a POSIX tar compressed with zstd, named by the sha256 of the tar. Equal files give an equal tar: names are sorted, times and
owners are left out. `tar --zstd -xf` opens it without this program. When an object is deleted by rule, `<sha256>.tombstone.json` is written
first; from then on the originals count as deleted.
"""

import io
import os
import stat
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import zstandard

from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdLocation, ColdObject
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.retention import Tombstone
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import DocumentError, OriginalsDeletedError, StoreError, UnknownTurnError
from pandora_dagster.stores.disk.files import disk_errors, path_inside, remove_strays, sync, write_files
from pandora_dagster.stores.disk.layout import CONTEXT, MANIFEST, REVISIONS, Layout
from pandora_dagster.stores.disk.record_files import RecordFiles
from pandora_dagster.stores.turns.manifests import parse_manifest
from pandora_dagster.stores.turns.turn_folder import named_files

MAX_OBJECT_BYTES = 512 * 1024 * 1024
"""A larger object is neither written nor unpacked, whatever size its header states."""
_SUFFIX = ".tar.zst"
_TOMBSTONE = "cold/{user}/{year}/{month}/{sha256}.tombstone.json"
ZSTD_LEVEL = 6
"""Compresses 10 kB of text in under a millisecond, to within some per cent of the slowest level."""


@dataclass(frozen=True, slots=True)
class _PackedObject:
    """An object ready to be written."""

    path: Path
    sha256: str
    tar: bytes
    data: bytes
    """The tar, compressed."""


class ColdFiles:
    """The ColdStorage port below one store root."""

    def __init__(self, root: Path) -> None:
        self.root, self.layout = root, Layout(root)
        hint = "it is no proof that the originals may be gone"
        self.tombstones = RecordFiles(root, _TOMBSTONE, Tombstone, expected="a tombstone", hint=hint)

    def put(self, objects: Sequence[ColdObject]) -> tuple[ColdLocation, ...]:
        """Store objects; when this returns, each is on the disk and was read back and compared.

        All objects are written first and flushed together. An intact object is not written again; a damaged one is. Raises StoreError, also
        where other bytes are read back, DocumentError for a symbolic link in the path.
        """
        packed = [self._pack(item) for item in objects]
        stored = [item for item in packed if self._is_stored(item)]
        with disk_errors(self.layout.cold):
            write_files({item.path: item.data for item in packed if item not in stored})
        with disk_errors(self.layout.cold):  # an interrupted run may not have flushed them
            for path in dict.fromkeys(path for item in stored for path in (item.path, item.path.parent)):
                sync(path)
        with disk_errors(self.layout.cold):
            for item in packed:  # originals that are archived again are not deleted any more
                self.tombstones.delete(*self._key(item.path))
        for item in packed:
            if read_tar(item.path) != item.tar:
                raise StoreError(f"{item.path}: other bytes were read back than written: expected the same", hint="check the disk")
        return tuple(ColdLocation(str(item.path.relative_to(self.root)), item.sha256, item.path.stat().st_size) for item in packed)

    def read(self, record: ArchiveRecord) -> Mapping[str, bytes]:
        """The originals, each verified against its hash.

        Raises OriginalsDeletedError where there is a tombstone, DocumentError (`missing` where there is neither object nor tombstone).
        """
        path = self._path(record.location)
        if tombstone := self.tombstone(record):
            raise OriginalsDeletedError(
                f"{tombstone.turn}: its originals were {tombstone.description}", missing=True, hint="the compressed documents remain"
            )
        files = _unpack(path, record.sha256)
        for name in sorted({*files, *record.files}):
            if name not in record.files or name not in files:
                where = "the manifest does not name it" if name in files else "it is not in the object"
                raise DocumentError(f"{path}: {name}: {where}: expected the same files in both")
            if (digest := sha256(files[name]).hexdigest()) != record.files[name]:
                raise DocumentError(f"{path}: {name}: sha256 {digest[:12]}: expected {record.files[name][:12]} as in {MANIFEST}")
        return files

    def verify(self, record: ArchiveRecord) -> str:
        """The fault of an object as one sentence; "" where it is intact or was deleted by rule."""
        try:
            self.read(record)
        except OriginalsDeletedError:
            return ""
        except (DocumentError, StoreError) as error:
            return str(error)
        return ""

    def tombstone(self, record: ArchiveRecord) -> Tombstone | None:
        """The tombstone of originals that were deleted by rule, else None; raises DocumentError where it contradicts the record."""
        key = self._key(self._path(record.location))
        tombstone = self.tombstones.find(*key)
        if tombstone is None:
            return None
        if (
            tombstone.sha256 != record.sha256
            or {n: f.sha256 for n, f in tombstone.files.items()} != dict(record.files)
            or tombstone.day != record.day
        ):
            raise self.tombstones.damaged(f"it describes other originals than {MANIFEST}: expected the same hashes and the same day", *key)
        return tombstone

    def write_tombstone(self, location: ColdLocation, tombstone: Tombstone) -> None:
        """Write a tombstone; from then on the originals count as deleted. Raises StoreError."""
        self.tombstones.put(tombstone, *self._key(self._path(location)))

    def delete(self, location: ColdLocation) -> None:
        """Delete an object that has a tombstone. Raises StoreError."""
        path = self._path(location)
        if not self.tombstones.exists(*self._key(path)):
            raise StoreError(f"{path}: it has no tombstone: expected one before the object is deleted")
        with disk_errors(path, "cannot delete"):
            path.unlink(missing_ok=True)
            sync(path.parent)

    def exists(self, record: ArchiveRecord) -> bool:
        """Whether the object exists, intact or not."""
        return os.path.lexists(self._path(record.location))

    def objects(self, *, before: datetime) -> Iterator[ColdLocation]:
        """Every object that was written before a time, also those that no turn names; unreadable ones are skipped."""
        for path in sorted(self.layout.cold.glob(f"*/*/*/*{_SUFFIX}")):
            with suppress(OSError, DocumentError):
                status = path_inside(self.root, path).lstat()
                if stat.S_ISREG(status.st_mode) and status.st_mtime < before.timestamp():
                    yield ColdLocation(path.relative_to(self.root).as_posix(), path.name.removesuffix(_SUFFIX), status.st_size)

    def unpack(self, location: ColdLocation) -> tuple[TurnKey, Mapping[str, bytes]]:
        """The turn that an object belongs to by its own manifest, and its originals; raises DocumentError."""
        path = self._path(location)
        files = _unpack(path, location.sha256)
        key = original_manifest(files, where=str(path)).key
        if path.parts[-4] != key.user:
            raise DocumentError(f"{path}: it holds {key}: expected it below {self.layout.cold.name}/{key.user}/")
        return key, files

    def remove_partial_objects(self) -> int:
        """Delete half-written objects that no process writes; returns their number. Folders that cannot be read are passed over."""
        removed = 0
        for folder in self.layout.cold.glob("*/*/*"):
            with suppress(StoreError):
                removed += remove_strays(path_inside(self.root, folder), now=time.time())
        return removed

    def _pack(self, item: ColdObject) -> _PackedObject:
        tar = build_tar(item.files)
        if len(tar) > MAX_OBJECT_BYTES:
            raise DocumentError(f"turn {item.key}: {len(tar):,} bytes of originals: expected at most {MAX_OBJECT_BYTES:,}")
        name = sha256(tar).hexdigest()
        year, month, _ = item.day.split("-")
        path = self.layout.cold / user_id(item.key.user) / year / month / f"{name}{_SUFFIX}"
        within = path.parent.relative_to(self.root)
        if os.path.realpath(path.parent) != str(Path(os.path.realpath(path_inside(self.root, self.layout.cold))).parent / within):
            raise DocumentError(f"{path.parent}: a symbolic link in the path: expected folders of cold storage", hint="remove the link")
        return _PackedObject(path, name, tar, zstandard.ZstdCompressor(ZSTD_LEVEL, write_checksum=True).compress(tar))

    def _is_stored(self, item: _PackedObject) -> bool:
        try:
            return read_tar(item.path) == item.tar
        except DocumentError:
            return False

    def _path(self, location: ColdLocation) -> Path:
        path = self.root / location.path
        parts = Path(location.path).parts
        if len(parts) != 5 or parts[:1] != (self.layout.cold.name,) or ".." in parts or path.name != f"{location.sha256}{_SUFFIX}":
            raise DocumentError(
                f"{MANIFEST}: cold {location.path[:200]!r}: expected a path below {self.layout.cold.name}/ named by its sha256"
            )
        return path_inside(self.root, path)

    def _key(self, path: Path) -> tuple[str, ...]:
        """User, year, month and sha256 of the object at a path."""
        return (*path.relative_to(self.layout.cold).parts[:-1], path.name.removesuffix(_SUFFIX))


def build_tar(files: Mapping[str, bytes]) -> bytes:
    """A tar that is the same for the same files: names sorted, mode 0644, without owner and times."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def original_turn(key: TurnKey, revision: int, files: Mapping[str, bytes]) -> Turn:
    """One revision of a turn from its originals; raises UnknownTurnError, DocumentError."""
    prefix = revision_prefix(revision)
    where = f"turn {key}: cold storage"
    if prefix + MANIFEST not in files:
        raise UnknownTurnError(f"turn {key}: it had no revision {revision} when it was archived")
    manifest = original_manifest(files, where=where, prefix=prefix)
    where = f"{where}: {prefix}"
    documents = {name: _text(files, prefix + name, where) for name in named_files(manifest)}
    return Turn(key, manifest, _text(files, prefix + CONTEXT, where), documents)


def original_manifest(files: Mapping[str, bytes], *, where: str, prefix: str = "") -> Manifest:
    """The manifest of the revision below `prefix`; raises DocumentError."""
    return parse_manifest(_text(files, prefix + MANIFEST, f"{where}: {prefix}"), where=f"{where}: {prefix}{MANIFEST}")


def revision_prefix(revision: int) -> str:
    """The prefix of a revision's files in an object."""
    return f"{REVISIONS}/{revision}/" if revision else ""


def _text(files: Mapping[str, bytes], name: str, where: str) -> str:
    try:
        return files[name].decode()
    except KeyError:
        raise DocumentError(f"{where}: {name}: not in the object: expected it there", missing=True) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where}: {name}: byte {error.start}: not UTF-8: expected UTF-8 text") from error


def _unpack(path: Path, expected: str) -> dict[str, bytes]:
    """The files of an object whose tar has the sha256 `expected`; raises DocumentError."""
    tar = read_tar(path)
    if (digest := sha256(tar).hexdigest()) != expected:
        raise DocumentError(f"{path}: its content has sha256 {digest[:12]}: expected {expected[:12]}; it is another object's or damaged")
    return tar_files(tar, path)


def tar_files(tar: bytes, path: Path) -> dict[str, bytes]:
    """The files of a tar; raises DocumentError where it has anything but plain files, whose sizes are at most that of the tar itself."""
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:", encoding="utf-8") as opened:
            return {member.name: _read_member(opened, member, path, limit=len(tar)) for member in opened}
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:  # headers are converted to numbers unchecked
        raise DocumentError(f"{path}: no tar inside ({error}): expected the originals of a turn") from error


def read_tar(path: Path) -> bytes:
    """The tar in an object; raises DocumentError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DocumentError(f"{path}: missing: expected the originals of an archived turn", missing=True) from error
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}: expected a readable file") from error
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= MAX_OBJECT_BYTES:
            raise DocumentError(f"{path}: its header states {size:,} bytes: expected 0 to {MAX_OBJECT_BYTES:,}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DocumentError(f"{path}: {len(data):,} bytes, damaged or cut off ({error}): expected a whole zstd file") from error


def _read_member(opened: tarfile.TarFile, member: tarfile.TarInfo, path: Path, *, limit: int) -> bytes:
    """The bytes of a member. A sparse one claims any size in a few bytes of header, so it is refused before it is read."""
    is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
    file = opened.extractfile(member) if is_plain and 0 <= member.size <= limit else None
    if file is None:
        raise DocumentError(f"{path}: {member.name[:200]!r}: not a plain file of at most {limit:,} bytes: expected those only")
    return file.read()
