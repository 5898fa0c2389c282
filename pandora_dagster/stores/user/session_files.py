"""Records of imported conversations: one folder a session. Knows nothing of what the turns say."""

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.compression.summarization_rate import LimiterState
from pandora_dagster.contracts.ids import SessionId, UserId, session_id, user_id
from pandora_dagster.contracts.user.conversations import ConversationSummary, SessionRecord
from pandora_dagster.errors import BadIdError, DocumentError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, write_all, write_atomic
from pandora_dagster.stores.disk.json_files import find_json_record
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids

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


# Rolling summaries of sessions: one file a session. Knows nothing of how one is made.

_NAME = "conversation_summary.json"


class ConversationSummaryFiles:
    """The ConversationSummaries port over `users/<user>/sessions/<id>/conversation_summary.json`."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def find(self, user: UserId, session: SessionId) -> ConversationSummary | None:
        """The session's summary, None where there is none yet; raises DocumentError for a damaged one or another's."""
        path = self._folder(user, session) / _NAME
        found = find_json_record(path, ConversationSummary, expected="a conversation summary")
        if found is None:
            return None
        if (found.user_id, found.session_id) != (user, session):
            raise DocumentError(f"{path}: it is of session {found.session_id[:80]!r}: expected {session[:80]!r} of {user}")
        if list(found.turns) != sorted(set(found.turns)) or not set(found.linked) <= set(found.turns):
            raise DocumentError(f"{path}: turns: expected ascending numbers, and `linked` among them")
        return found

    def save(self, summary: ConversationSummary) -> ConversationSummary:
        """Write it, all or nothing, unless one that reaches further stands there (two processes of one session); returns what
        stands there now. Raises StoreError, DocumentError for a damaged one."""
        user, session = user_id(summary.user_id), session_id(summary.session_id)
        folder = self._folder(user, session)
        with file_lock(folder / ".summary.lock", what=f"the summary of session {session}", seconds=self._lock_seconds):
            known = self.find(user, session)
            if known and known.last > summary.last:
                return known
            write_atomic(folder / _NAME, encode_text(_NAME, summary.model_dump_json(indent=1) + "\n"))
        return summary

    def _folder(self, user: UserId, session: SessionId) -> Path:
        return path_inside(self._layout.root, self._layout.session(user, session_folder(session)))


# What a session's rate limiter must not forget (DECISIONS 7): one small file a session. Knows the file, not what is allowed.

_FILE = "limiter.json"
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


class _Record(BaseModel):
    """A LimiterState as it lies on the disk; times are wall-clock seconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)
    calls: tuple[_Seconds, ...]
    session_calls: _Count
    errors: _Count
    consecutive_errors: _Count
    backoff_until: _Seconds


class LimiterFiles:
    """Limiter states under `users/<user>/sessions/<id>/limiter.json`, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def load(self, user: UserId, session: SessionId) -> LimiterState | None:
        """What was saved last, None where nothing was; raises DocumentError for a damaged file: a limit is not forgotten in silence."""
        record = find_json_record(self._path(user, session), _Record, expected="a limiter's state", hint="delete it to start anew")
        return record and LimiterState(**{name: getattr(record, name) for name in _Record.model_fields})

    def save(self, user: UserId, session: SessionId, state: LimiterState) -> None:
        """Replace what was saved; raises StoreError."""
        path = self._path(user, session)
        write_atomic(path, encode_text(_FILE, _Record.model_validate(state).model_dump_json(indent=1) + "\n"))

    def update(self, user: UserId, session: SessionId, change: Callable[[LimiterState | None], LimiterState]) -> LimiterState:
        """Save what `change` makes of the saved state, while no other process does; returns it. Raises StoreError or DocumentError."""
        lock = self._path(user, session).with_name(f".{_FILE}.lock")
        with file_lock(lock, what=f"the limiter of session {session}", seconds=self._lock_seconds):
            state = change(self.load(user, session))
            self.save(user, session, state)
        return state

    def _path(self, user: UserId, session: SessionId) -> Path:
        return path_inside(self._layout.root, self._layout.session(user, session_folder(session)) / _FILE)
