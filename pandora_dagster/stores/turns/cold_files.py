"""Cold storage: the originals of one archived turn in one file, `cold/<user>/<yyyy>/<mm>/<sha256>.tar.zst`.

An object is a POSIX tar, the same bytes for the same files (names sorted, no times, no owners), compressed with zstd; its name is
the sha256 of the tar. `tar --zstd -xf` opens it without this program. An object that was deleted by rule leaves
`<sha256>.tombstone.json`; once that is written, the originals count as deleted.
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
"""A larger object is neither written nor unpacked: what one says of its size is not believed beyond this."""
_SUFFIX = ".tar.zst"
_TOMBSTONE = "cold/{user}/{year}/{month}/{sha256}.tombstone.json"
LEVEL = 6
"""zstd: 10 kB of text in well under a millisecond, and within some per cent of the slowest level."""


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
        """Each object on the disk, read back and compared byte by byte when this returns.

        The bytes of all are written first and waited for together. A whole object stays; a damaged one is
        rewritten. Raises StoreError (also where what comes back is not what was written), DocumentError for a symbolic link in the path.
        """
        packed = [self._packed(item) for item in objects]
        stored = [one for one in packed if self._is_stored(one)]
        with disk_errors(self.layout.cold):
            write_files({one.path: one.data for one in packed if one not in stored})
        with disk_errors(self.layout.cold):  # a run that was cut off may have left them unsynced
            for path in dict.fromkeys(p for one in stored for p in (one.path, one.path.parent)):
                sync(path)
        with disk_errors(self.layout.cold):
            for one in packed:  # what is archived again is no longer pruned
                self.tombstones.delete(*self._key(one.path))
        for one in packed:
            if _tar_of(one.path) != one.tar:
                raise StoreError(f"{one.path}: other bytes came back than were written: expected the same", hint="check the disk")
        return tuple(ColdLocation(str(p.path.relative_to(self.root)), p.sha256, p.path.stat().st_size) for p in packed)

    def read(self, record: ArchiveRecord) -> Mapping[str, bytes]:
        """The originals, each verified against its hash; raises OriginalsDeletedError where a tombstone says so, DocumentError (`missing`
        where the object is gone without one)."""
        path = self._path(record.location)
        if gone := self.tombstone(record):
            raise OriginalsDeletedError(
                f"{gone.turn}: its originals were {gone.description}", missing=True, hint="the compressed documents remain"
            )
        files = _unpacked(path, record.sha256)
        for name in sorted({*files, *record.files}):
            if name not in record.files or name not in files:
                where = "the manifest does not name it" if name in files else "it is not in the object"
                raise DocumentError(f"{path}: {name}: {where}: expected the same files in both")
            if (found := sha256(files[name]).hexdigest()) != record.files[name]:
                raise DocumentError(f"{path}: {name}: sha256 {found[:12]}: expected {record.files[name][:12]} as in {MANIFEST}")
        return files

    def verify(self, record: ArchiveRecord) -> str:
        """What is wrong with an object, as one sentence; "" where all of it is as it was, or was deleted by rule."""
        try:
            self.read(record)
        except OriginalsDeletedError:
            return ""
        except (DocumentError, StoreError) as error:
            return str(error)
        return ""

    def tombstone(self, record: ArchiveRecord) -> Tombstone | None:
        """What says that the originals were deleted by rule; raises DocumentError for one that is damaged or contradicts the record."""
        key = self._key(self._path(record.location))
        found = self.tombstones.find(*key)
        if found is None:
            return None
        if found.sha256 != record.sha256 or {n: f.sha256 for n, f in found.files.items()} != dict(record.files) or found.day != record.day:
            raise self.tombstones.damaged(f"it describes other originals than {MANIFEST}: expected the same hashes and the same day", *key)
        return found

    def write_tombstone(self, location: ColdLocation, tombstone: Tombstone) -> None:
        """The tombstone on the disk: from now on the originals count as deleted. Raises StoreError."""
        self.tombstones.put(tombstone, *self._key(self._path(location)))

    def delete(self, location: ColdLocation) -> None:
        """The object gone, whose tombstone is stored. Raises StoreError."""
        path = self._path(location)
        if not self.tombstones.exists(*self._key(path)):
            raise StoreError(f"{path}: it has no tombstone: expected one before the object goes")
        with disk_errors(path, "cannot delete"):
            path.unlink(missing_ok=True)
            sync(path.parent)

    def exists(self, record: ArchiveRecord) -> bool:
        """Whether there is an object, whatever it holds."""
        return os.path.lexists(self._path(record.location))

    def objects(self, *, before: datetime) -> Iterator[ColdLocation]:
        """Every object that was written before then, whether a turn names it or not; unreachable ones are passed over."""
        for path in sorted(self.layout.cold.glob(f"*/*/*/*{_SUFFIX}")):
            with suppress(OSError, DocumentError):
                about = path_inside(self.root, path).lstat()
                if stat.S_ISREG(about.st_mode) and about.st_mtime < before.timestamp():
                    yield ColdLocation(path.relative_to(self.root).as_posix(), path.name.removesuffix(_SUFFIX), about.st_size)

    def unpack(self, location: ColdLocation) -> tuple[TurnKey, Mapping[str, bytes]]:
        """Whose originals an object holds by its own word, and what they are; raises DocumentError."""
        path = self._path(location)
        files = _unpacked(path, location.sha256)
        key = original_manifest(files, where=str(path)).key
        if path.parts[-4] != key.user:
            raise DocumentError(f"{path}: it holds {key}: expected it below {self.layout.cold.name}/{key.user}/")
        return key, files

    def remove_partial_objects(self) -> int:
        """Delete half-written objects that no process writes; returns their number. Folders that cannot be read are passed over."""
        swept = 0
        for folder in self.layout.cold.glob("*/*/*"):
            with suppress(StoreError):
                swept += remove_strays(path_inside(self.root, folder), now=time.time())
        return swept

    def _packed(self, item: ColdObject) -> _PackedObject:
        tar = packed_tar(item.files)
        if len(tar) > MAX_OBJECT_BYTES:
            raise DocumentError(f"turn {item.key}: {len(tar):,} bytes of originals: expected at most {MAX_OBJECT_BYTES:,}")
        name = sha256(tar).hexdigest()
        year, month, _ = item.day.split("-")
        path = self.layout.cold / user_id(item.key.user) / year / month / f"{name}{_SUFFIX}"
        within = path.parent.relative_to(self.root)
        if os.path.realpath(path.parent) != str(Path(os.path.realpath(path_inside(self.root, self.layout.cold))).parent / within):
            raise DocumentError(f"{path.parent}: a symbolic link in the path: expected folders of cold storage", hint="remove the link")
        return _PackedObject(path, name, tar, zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(tar))

    def _is_stored(self, one: _PackedObject) -> bool:
        try:
            return _tar_of(one.path) == one.tar
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


def packed_tar(files: Mapping[str, bytes]) -> bytes:
    """A tar that is the same for the same files: names sorted, mode 0644, without owner and times."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for name in sorted(files):
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(files[name]), 0o644
            tar.addfile(about, io.BytesIO(files[name]))
    return made.getvalue()


def original_turn(key: TurnKey, revision: int, files: Mapping[str, bytes]) -> Turn:
    """One revision of a turn out of its originals; raises UnknownTurnError, DocumentError."""
    prefix = revision_prefix(revision)
    where = f"turn {key}: cold storage"
    if prefix + MANIFEST not in files:
        raise UnknownTurnError(f"turn {key}: it had no revision {revision} when it was archived")
    manifest = original_manifest(files, where=where, prefix=prefix)
    where = f"{where}: {prefix}"
    named = {name: _text(files, prefix + name, where) for name in named_files(manifest)}
    return Turn(key, manifest, _text(files, prefix + CONTEXT, where), named)


def original_manifest(files: Mapping[str, bytes], *, where: str, prefix: str = "") -> Manifest:
    """The manifest of the revision below `prefix`; raises DocumentError."""
    return parse_manifest(_text(files, prefix + MANIFEST, f"{where}: {prefix}"), where=f"{where}: {prefix}{MANIFEST}")


def revision_prefix(revision: int) -> str:
    """Where a revision's files are inside an object."""
    return f"{REVISIONS}/{revision}/" if revision else ""


def _text(files: Mapping[str, bytes], name: str, where: str) -> str:
    try:
        return files[name].decode()
    except KeyError:
        raise DocumentError(f"{where}: {name}: not in the object: expected it there", missing=True) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where}: {name}: byte {error.start}: not UTF-8: expected UTF-8 text") from error


def _unpacked(path: Path, expected: str) -> dict[str, bytes]:
    """The files of an object whose tar has the sha256 `expected`; raises DocumentError."""
    tar = _tar_of(path)
    if (found := sha256(tar).hexdigest()) != expected:
        raise DocumentError(f"{path}: its content has sha256 {found[:12]}: expected {expected[:12]}; it is another object's or damaged")
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:", encoding="utf-8") as opened:
            return {about.name: _member(opened, about, path) for about in opened}
    except tarfile.TarError as error:
        raise DocumentError(f"{path}: no tar inside ({error}): expected the originals of a turn") from error


def _tar_of(path: Path) -> bytes:
    """What an object unpacks to; raises DocumentError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DocumentError(f"{path}: missing: expected the originals of an archived turn", missing=True) from error
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}: expected a readable file") from error
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= MAX_OBJECT_BYTES:
            raise DocumentError(f"{path}: it says that it unpacks to {size:,} bytes: expected 0 to {MAX_OBJECT_BYTES:,}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DocumentError(f"{path}: {len(data):,} bytes, damaged or cut off ({error}): expected a whole zstd file") from error


def _member(opened: tarfile.TarFile, about: tarfile.TarInfo, path: Path) -> bytes:
    file = opened.extractfile(about) if about.isreg() else None
    if file is None:
        raise DocumentError(f"{path}: {about.name[:200]!r}: not a file: expected files only")
    return file.read()
