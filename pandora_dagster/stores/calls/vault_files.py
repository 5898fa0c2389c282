"""The Vault port: prompt packs and raw answers, kept for the inspection of a halt (decision 14).

Files are named by the sha256 of their content, compressed and without credentials; they are kept for the retention time of the settings, or
not at all.
"""

import os
import re
import threading
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import zstandard

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.turns import MAX_DOCUMENT_BYTES
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.files import disk_errors, path_inside, write_atomic
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids

_REFERENCE = re.compile(r"([^/]+)/([a-z][a-z_]{0,20})/([0-9a-f]{64})")
_SWEEP_MARK = ".vault_swept"
"""A file in the store root whose modification time is that of the last sweep."""
_DAY_S = 86_400
_MAX_CONTENT_BYTES = 4 * MAX_DOCUMENT_BYTES
_KIND = re.compile(r"[a-z][a-z_]{0,20}")


class _Zstd(threading.local):
    """One compressor and decompressor for each thread: creating one takes longer than using it (80 of 150 microseconds)."""

    def __init__(self) -> None:
        self.compressor, self.decompressor = zstandard.ZstdCompressor(level=3), zstandard.ZstdDecompressor()


class VaultFiles:
    """The Vault port over `users/<user>/vault/`. `enabled=False` keeps nothing and still reads what was kept."""

    def __init__(self, root: Path, *, enabled: bool = True) -> None:
        self._layout = Layout(root)
        self._enabled = enabled
        self._zstd = _Zstd()
        self._folders: dict[str, str] = {}

    def keep(self, user: str, kind: str, text: str) -> str:
        """Keep `text` without credentials; returns its reference `<user>/<kind>/<sha256>`, "" where the vault is off."""
        if not _KIND.fullmatch(kind):
            raise ValueError(f"kind {kind!r}: expected a lower-case word such as pack or answer")
        return self._keep_bytes(user, kind, redact(text).encode(errors="replace"))

    def keep_image(self, user: str, data: bytes) -> str:
        """Keep the bytes of an image unchanged; returns its reference `<user>/image/<sha256>`, "" where the vault is off."""
        return self._keep_bytes(user, "image", data)

    def _keep_bytes(self, user: str, kind: str, data: bytes) -> str:
        if not self._enabled:
            return ""
        digest = sha256(data).hexdigest()
        path = self._path(user, kind, digest)
        if path.exists():
            with disk_errors(path):
                os.utime(path)
        else:
            # Nothing depends on these files, and waiting for the disk would slow every call.
            write_atomic(path, self._zstd.compressor.compress(data), durable=False)
        return f"{user}/{kind}/{digest}"

    def read(self, ref: str) -> str:
        """What was kept under `ref`; raises DocumentError (`missing` where its retention is over)."""
        return self.read_image(ref).decode()

    def read_image(self, ref: str) -> bytes:
        """The bytes that were kept under `ref`; raises like `read`."""
        match = _REFERENCE.fullmatch(ref)
        if not match:
            raise DocumentError(f"reference {ref[:120]!r}: expected <user>/<kind>/<sha256>")
        path = self._path(*match.groups())
        data = self._decompress(path)
        if sha256(data).hexdigest() != match.group(3):
            raise DocumentError(f"{path}: changed since it was kept: expected sha256 {match.group(3)[:12]}")
        return data

    def sweep_daily(self, now: datetime, *, days: int, spared: Callable[[], Collection[str]] = tuple) -> int | None:
        """Delete what was last kept over `days` days ago, at most once in 24 hours; returns the number of deleted files, None where no
        sweep is due.

        `spared` returns the references that stay, however old; it is called only when a sweep is due.
        """
        mark = self._layout.root / _SWEEP_MARK
        with disk_errors(mark):
            if mark.exists() and now.timestamp() - mark.stat().st_mtime < _DAY_S:
                return None
        spared_references = spared()
        with disk_errors(mark):
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
            os.utime(mark, (now.timestamp(), now.timestamp()))
        return self.sweep(now - timedelta(days=days), spared=spared_references)

    def sweep(self, older_than: datetime, *, spared: Collection[str] = ()) -> int:
        """Delete what was last kept before `older_than`, except the references `spared`; returns the number of deleted files."""
        deleted, spared_paths = 0, {self._path(*match.groups()) for match in map(_REFERENCE.fullmatch, spared) if match}
        for user in user_ids(self._layout):
            folder = path_inside(self._layout.root, self._layout.vault(user))
            for path in folder.glob("[0-9a-f][0-9a-f]/*.zst") if folder.is_dir() else ():
                deleted += path not in spared_paths and _delete_if_older(path, older_than.timestamp())
        return deleted

    def _decompress(self, path: Path) -> bytes:
        data = _read_file(path)
        try:
            return self._zstd.decompressor.decompress(data, max_output_size=_MAX_CONTENT_BYTES)
        except zstandard.ZstdError as error:
            raise DocumentError(f"{path}: not zstd: {error}: expected what was kept there") from error

    def _path(self, user: str, kind: str, digest: str) -> Path:
        """The file of a reference. The folder of a user is cached: a replay needs hundreds of paths a second."""
        if user not in self._folders:
            self._folders[user] = str(self._layout.vault(user_id(user)))
        return path_inside(self._layout.root, Path(f"{self._folders[user]}/{digest[:2]}/{digest}.{kind}.zst"))


def _read_file(path: Path) -> bytes:
    """The stored bytes; raises DocumentError (`missing` where there are none), StoreError."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError as error:
        message = f"{path}: missing: expected what was kept there"
        raise DocumentError(message, missing=True, hint="its retention may be over") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _delete_if_older(path: Path, before: float) -> bool:
    """Delete a file that was kept last before a time; True where it did. Raises StoreError."""
    with disk_errors(path, "cannot delete"):
        try:
            if path.stat().st_mtime >= before:
                return False
            path.unlink()
        except FileNotFoundError:
            return False
    return True
