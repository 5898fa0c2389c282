"""The files of sessions: the record of an imported conversation, places to continue, the rolling summary, the state of the rate limiter."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256
from typing import Annotated

from pydantic import ConfigDict, Field

from pandora_dagster.compression.summarization_rate import LimiterState
from pandora_dagster.contracts.ids import SessionId, UserId, session_id, user_id
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.user.conversations import Continuation, ConversationSummary, SessionRecord
from pandora_dagster.errors import BadIdError, DocumentError
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot

_SESSION_FOLDER = "users/{user}/sessions/{session}"
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_SLUG_CHARACTERS = 60


def session_folder(conversation_id: str) -> SessionId:
    """The folder name of a session: its id where that is a valid session id, else its letters and digits with a short hash."""
    try:
        return session_id(conversation_id)
    except BadIdError:
        slug = _UNSAFE_CHARACTERS.sub("-", conversation_id).strip("-_")[:_MAX_SLUG_CHARACTERS] or "session"
        digest = sha256(conversation_id.encode(errors="surrogatepass")).hexdigest()[:12]
        return session_id(f"{slug}-{digest}")


class SessionFiles:
    """The Sessions port over `users/<user>/sessions/<id>/session.json`; a record holds its preamble (decision 20)."""

    def __init__(self, storage: StorageRoot, *, lock_seconds: float = 10.0) -> None:
        pattern, lock = f"{_SESSION_FOLDER}/session.json", "users/{user}/sessions/.lock"
        self._files = RecordFiles(storage, pattern, SessionRecord, expected="a session record", lock=lock, lock_seconds=lock_seconds)

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None:
        """The record of this conversation, None where there is none; raises DocumentError for a damaged one."""
        key = user, session_folder(session)
        record = self._files.find(*key)
        if record and record.session_id != session:
            raise self._files.damaged(f"it holds session {record.session_id[:80]!r}: expected {session[:80]!r}", *key)
        return record

    def begin(self, record: SessionRecord) -> SessionRecord:
        """Write the record unless there is one; returns the stored one. Raises StoreError or DocumentError."""
        user, session = UserId(record.user_id), SessionId(record.session_id)
        with self._files.lock(user, session_folder(session), what=f"sessions of {user}"):
            stored = self.find(user, session)
            if stored is None:
                self.save(record)
        return stored or record

    def save(self, record: SessionRecord) -> None:
        """Write a record; raises StoreError.

        The record of a complete import does not wait for the disk: if it is lost, the import is resumed and finds every turn stored.
        """
        self._files.put(record, record.user_id, session_folder(record.session_id), durable=record.state != "complete")

    def records(self, user: UserId | None = None, *, on_fault: Callable[[DocumentError], None] | None = None) -> Iterator[SessionRecord]:
        """The records, by user and first turn; a damaged one goes to `on_fault`, or is raised."""
        records = self._files.all(*([user] if user else []), on_fault=on_fault)
        yield from sorted(records, key=lambda record: (record.user_id, record.first_turn, record.created_at, record.session_id))


class ContinuationFiles:
    """The Continuations port over `users/<user>/continuations/<first digits>/<hash>.<session>.json`; deleting a file claims it."""

    def __init__(self, storage: StorageRoot) -> None:
        pattern, names = "users/{user}/continuations/{part}/{conversation}.{session}.json", {"conversation": "[0-9a-f]+"}
        self._files = RecordFiles(storage, pattern, Continuation, expected="a continuation", names=names)

    def offer(self, user: UserId, conversation_hash: str, continuation: Continuation) -> None:
        """Store a place to continue; raises StoreError. It does not wait for the disk: where it is lost, the client gets a new session."""
        self._files.put(
            continuation, user, conversation_hash[:2], conversation_hash, session_folder(continuation.session_id), durable=False
        )

    def claim(self, user: UserId, conversation_hash: str) -> Iterator[Continuation]:
        """The offered places, each to one claimant; raises StoreError."""
        for key in list(self._files.list_keys(user, conversation_hash[:2], conversation_hash)):
            try:
                continuation = self._files.find(*key)
            except DocumentError:
                continuation = None
            if self._files.delete(*key) and continuation:
                yield continuation

    def expire(self, user: UserId, before: datetime) -> int:
        """Delete the places offered before this time, which no request claimed; returns their number. Raises StoreError."""
        return self._files.delete_older(before, user)


class ConversationSummaryFiles:
    """The ConversationSummaries port over `users/<user>/sessions/<id>/conversation_summary.json`."""

    def __init__(self, storage: StorageRoot, *, lock_seconds: float = 10.0) -> None:
        pattern, lock = f"{_SESSION_FOLDER}/conversation_summary.json", f"{_SESSION_FOLDER}/.summary.lock"
        self._files = RecordFiles(
            storage, pattern, ConversationSummary, expected="a conversation summary", lock=lock, lock_seconds=lock_seconds
        )

    def find(self, user: UserId, session: SessionId) -> ConversationSummary | None:
        """The session's summary, None where there is none yet; raises DocumentError for a damaged one or another session's."""
        key = user, session_folder(session)
        summary = self._files.find(*key)
        if summary is None:
            return None
        if (summary.user_id, summary.session_id) != (user, session):
            raise self._files.damaged(f"it is of session {summary.session_id[:80]!r}: expected {session[:80]!r} of {user}", *key)
        if list(summary.turns) != sorted(set(summary.turns)) or not set(summary.linked) <= set(summary.turns):
            raise self._files.damaged("turns: expected ascending numbers, and `linked` among them", *key)
        return summary

    def save(self, summary: ConversationSummary) -> ConversationSummary:
        """Write a summary, unless the stored one covers a later turn (by another process); returns the stored one.

        Raises StoreError, DocumentError for a damaged one.
        """
        user, session = user_id(summary.user_id), session_id(summary.session_id)
        with self._files.lock(user, session, what=f"the summary of session {session}"):
            stored = self.find(user, session)
            if stored and stored.last_turn > summary.last_turn:
                return stored
            return self._files.put(summary, user, session)


_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


class _LimiterRecord(StrictModel):
    """A LimiterState as it is stored (decision 7); times are wall-clock seconds since 1970."""

    model_config = ConfigDict(from_attributes=True)
    calls: tuple[_Seconds, ...]
    session_calls: _Count
    errors: _Count
    consecutive_errors: _Count
    backoff_until: _Seconds


class LimiterFiles:
    """States of the rate limiter over `users/<user>/sessions/<id>/limiter.json`."""

    def __init__(self, storage: StorageRoot, *, lock_seconds: float = 10.0) -> None:
        pattern, hint = f"{_SESSION_FOLDER}/limiter.json", "delete it: the limits then start at zero"
        self._files = RecordFiles(storage, pattern, _LimiterRecord, expected="a limiter's state", hint=hint, lock_seconds=lock_seconds)

    def load(self, user: UserId, session: SessionId) -> LimiterState | None:
        """The saved state, None where there is none; raises DocumentError for a damaged file: a limit is not lifted silently."""
        record = self._files.find(user, session_folder(session))
        return record and LimiterState(**{name: getattr(record, name) for name in _LimiterRecord.model_fields})

    def save(self, user: UserId, session: SessionId, state: LimiterState) -> None:
        """Replace the saved state; raises StoreError."""
        self._files.put(_LimiterRecord.model_validate(state), user, session_folder(session))

    def update(self, user: UserId, session: SessionId, change: Callable[[LimiterState | None], LimiterState]) -> LimiterState:
        """Save what `change` returns for the saved state, under the session's lock; returns it. Raises StoreError or DocumentError."""
        with self._files.lock(user, session_folder(session), what=f"the limiter of session {session}"):
            state = change(self.load(user, session))
            self.save(user, session, state)
        return state
