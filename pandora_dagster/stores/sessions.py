"""Records of imported conversations: one folder a session. Knows nothing of what the turns say."""

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.conversations import SessionRecord
from pandora_dagster.contracts.ids import SessionId, UserId, session_id
from pandora_dagster.errors import BadIdError, DocumentError
from pandora_dagster.stores.directory import user_ids
from pandora_dagster.stores.files import disk_errors, encode_text, path_inside, write_all
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import file_lock
from pandora_dagster.stores.model_files import find_json_record

_RECORD = "session.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def session_folder(conversation_id: str) -> SessionId:
    """The id itself where it can safely name a folder, else its letters and digits and a short hash."""
    try:
        return session_id(conversation_id)
    except BadIdError:
        slug = _UNSAFE.sub("-", conversation_id).strip("-_")[:60] or "session"
        digest = sha256(conversation_id.encode(errors="surrogatepass")).hexdigest()[:12]
        return session_id(f"{slug}-{digest}")


class SessionFiles:
    """The Sessions port over `users/<user>/sessions/<id>/session.json`; a record holds its preamble (DECISIONS 20)."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None:
        """The record of this conversation, None where there is none; raises DocumentError for a damaged one."""
        path = self._folder(user, session) / _RECORD
        found = self._read(path)
        if found and found.session_id != session:
            raise DocumentError(f"{path}: it holds session {found.session_id[:80]!r}: expected {session[:80]!r}")
        return found

    def begin(self, record: SessionRecord) -> SessionRecord:
        """Write the record unless one stands there; returns what stands there now. Raises StoreError or DocumentError."""
        user, session = UserId(record.user_id), SessionId(record.session_id)
        lock = self._layout.user(user) / "sessions" / ".lock"
        with file_lock(path_inside(self._layout.root, lock), what=f"sessions of {user}", seconds=self._lock_seconds):
            known = self.find(user, session)
            if known is None:
                self.save(record)
        return known or record

    def save(self, record: SessionRecord) -> None:
        """Write a record, all or nothing; raises StoreError. One that calls its import complete need not outlive a power
        failure: without it the import is taken up again and finds everything in place."""
        folder = self._folder(UserId(record.user_id), SessionId(record.session_id))
        write_all(folder, {_RECORD: encode_text(_RECORD, record.model_dump_json(indent=1) + "\n")}, durable=record.state != "complete")

    def records(self, user: UserId | None = None) -> Iterator[SessionRecord]:
        """By user, then by first turn; raises DocumentError for a damaged one."""
        for owner in (user,) if user else user_ids(self._layout):
            found = (self._read(path) for path in self._paths(owner))
            yield from sorted((r for r in found if r), key=lambda r: (r.first_turn, r.created_at, r.session_id))

    def _paths(self, user: UserId) -> list[Path]:
        folder = self._layout.user(user) / "sessions"
        if not folder.is_dir():
            return []
        with disk_errors(folder, "cannot list"):
            return [path_inside(self._layout.root, path) / _RECORD for path in sorted(folder.iterdir()) if not path.name.startswith(".")]

    def _folder(self, user: UserId, session: SessionId) -> Path:
        return path_inside(self._layout.root, self._layout.session(user, session_folder(session)))

    def _read(self, path: Path) -> SessionRecord | None:
        return find_json_record(path, SessionRecord, expected="a session record")
