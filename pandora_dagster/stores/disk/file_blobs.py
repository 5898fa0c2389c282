"""The Blobs port over files below one store root."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.ports.object_storage import Blob, BlobInfo, Storage
from pandora_dagster.errors import InputError
from pandora_dagster.stores.disk.file_locks import FileLocks, file_lock
from pandora_dagster.stores.disk.files import disk_errors, make_folder, path_inside, read_bytes, sync, write_atomic, write_new

_LOCK_SECONDS = 10.0
"""How long a conditional write waits for the object's lock."""
_KEY = re.compile(r"[^/.\x00][^/\x00]*(?:/[^/.\x00][^/\x00]*)*")


@dataclass(frozen=True, slots=True)
class FileBlobs:
    """One file for each object; an object's version is the sha256 of its bytes. Files whose names begin with a dot are not objects."""

    root: Path

    def put(self, key: str, data: bytes, *, create_only: bool = False, if_match: str | None = None, durable: bool = True) -> str | None:
        path = self._path(key)
        if create_only:
            if not _write_if_missing(path, data, durable=durable):
                return None
        elif if_match is not None:
            with file_lock(path.with_name(f".{path.name}.match.lock"), what=key, seconds=_LOCK_SECONDS):
                if not path.exists() or _version(read_bytes(path)) != if_match:
                    return None
                write_atomic(path, data, durable=durable)
        else:
            write_atomic(path, data, durable=durable)
        return _version(data)

    def get(self, key: str) -> Blob:
        data = read_bytes(self._path(key))
        return Blob(data, _version(data))

    def exists(self, key: str) -> bool:
        return os.path.lexists(self._path(key))

    def list(self, prefix: str) -> Iterator[BlobInfo]:
        folder = self.root / prefix.rpartition("/")[0]
        with disk_errors(folder, "cannot list"):
            for path in _files_below(path_inside(self.root, folder)):
                key = path.relative_to(self.root).as_posix()
                if key.startswith(prefix):
                    with suppress(FileNotFoundError):  # deleted since it was listed
                        status = path.stat()
                        yield BlobInfo(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def delete(self, key: str) -> bool:
        path = self._path(key)
        with disk_errors(path, "cannot delete"):
            try:
                path.unlink()
            except FileNotFoundError:
                return False
            sync(path.parent)
        return True

    def locate(self, key: str) -> str:
        return str(self._path(key))

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise InputError(f"key {key[:200]!r}: expected a relative path, no part of it empty or starting with a dot")
        return path_inside(self.root, self.root / key)


def disk_storage(root: Path) -> Storage:
    """The objects and the locks below a store root."""
    return Storage(FileBlobs(root), FileLocks(root))


def _version(data: bytes) -> str:
    return sha256(data).hexdigest()


def _write_if_missing(path: Path, data: bytes, *, durable: bool) -> bool:
    """Write a file where there is none; False where there is one."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    with disk_errors(path):
        make_folder(path.parent, durable=durable)
        try:
            write_new(part, data, durable=durable)
            os.link(part, path)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
        if durable:
            sync(path.parent)
    return True


def _files_below(folder: Path) -> Iterator[Path]:
    """The files in a folder and its folders, by path; names that begin with a dot are skipped."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name + "/" * entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files_below(Path(entry.path))
        else:
            yield Path(entry.path)
