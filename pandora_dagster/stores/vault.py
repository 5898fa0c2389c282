"""Prompt packs and raw answers as they were, for whoever must judge a halt (DECISIONS 14). Knows nothing of what they mean.

Content-addressed per user, compressed, credentials taken out first; kept for as long as the settings say, or not at all.
"""

import os
import re
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import zstandard

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.directory import users
from pandora_dagster.stores.files import MAX_DOCUMENT_BYTES, disk_errors, inside, write_whole
from pandora_dagster.stores.layout import Layout
from pandora_dagster.text.credentials import redacted

_REF = re.compile(r"([^/]+)/([a-z][a-z_]{0,20})/([0-9a-f]{64})")
_SWEPT = ".vault_swept"
"""A file whose time says when the vault was swept last."""
_DAY_S = 86_400
_KIND = re.compile(r"[a-z][a-z_]{0,20}")


class VaultFiles:
    """The Vault port over `users/<user>/vault/`. `enabled=False` keeps nothing and still reads what was kept."""

    def __init__(self, root: Path, *, enabled: bool = True) -> None:
        self._layout = Layout(root)
        self._enabled = enabled

    def keep(self, user: str, kind: str, text: str) -> str:
        """Keep `text` without its credentials; the reference `<user>/<kind>/<sha256>`, "" where switched off."""
        if not self._enabled:
            return ""
        if not _KIND.fullmatch(kind):
            raise ValueError(f"kind {kind!r}: expected a lower-case word such as pack or answer")
        data = redacted(text).encode(errors="replace")
        digest = sha256(data).hexdigest()
        path = self._path(user, kind, digest)
        if path.exists():
            with disk_errors(path):
                os.utime(path)
        else:
            # Kept for looking back, not for correctness: waiting for the disk would slow every call.
            write_whole(path, zstandard.ZstdCompressor(level=3).compress(data), durable=False)
        return f"{user}/{kind}/{digest}"

    def read(self, ref: str) -> str:
        """What was kept under `ref`; raises DocumentError (`missing` where its retention is over)."""
        found = _REF.fullmatch(ref)
        if not found:
            raise DocumentError(f"reference {ref[:120]!r}: expected <user>/<kind>/<sha256>")
        path = self._path(*found.groups())
        data = _unpacked(path)
        if sha256(data).hexdigest() != found.group(3):
            raise DocumentError(f"{path}: changed since it was kept: expected sha256 {found.group(3)[:12]}")
        return data.decode()

    def sweep_daily(self, now: datetime, *, days: int) -> int:
        """Delete what was last kept over `days` days ago, at most once in 24 hours; returns the number of deleted files."""
        mark = self._layout.root / _SWEPT
        with disk_errors(mark):
            if mark.exists() and now.timestamp() - mark.stat().st_mtime < _DAY_S:
                return 0
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
            os.utime(mark, (now.timestamp(), now.timestamp()))
        return self.sweep(now - timedelta(days=days))

    def sweep(self, older_than: datetime) -> int:
        """Delete what was last kept before `older_than`; returns the number of deleted files."""
        deleted = 0
        for user in users(self._layout):
            folder = inside(self._layout.root, self._layout.vault(user))
            for path in folder.glob("[0-9a-f][0-9a-f]/*.zst") if folder.is_dir() else ():
                deleted += _deleted(path, older_than.timestamp())
        return deleted

    def _path(self, user: str, kind: str, digest: str) -> Path:
        return inside(self._layout.root, self._layout.vault(user_id(user)) / digest[:2] / f"{digest}.{kind}.zst")


def _unpacked(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        message = f"{path}: missing: expected what was kept there"
        raise DocumentError(message, missing=True, hint="its retention may be over") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=4 * MAX_DOCUMENT_BYTES)
    except zstandard.ZstdError as error:
        raise DocumentError(f"{path}: not zstd: {error}: expected what was kept there") from error


def _deleted(path: Path, before: float) -> bool:
    with disk_errors(path, "cannot delete"):
        try:
            if path.stat().st_mtime >= before:
                return False
            path.unlink()
        except FileNotFoundError:
            return False
    return True
