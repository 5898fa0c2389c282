"""The FactStore port: one JSON file per ledger, its audit as JSON lines beside it.

`users/<user>/sessions/<id>/session_facts.json`, and while the user consents `users/<user>/profile.json`.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.object_storage import Lease
from pandora_dagster.contracts.ports.user_storage import LedgerChange
from pandora_dagster.contracts.user.user_memory import FactLedger, Profile, SessionFacts
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, sync
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.record_files import RecordFiles
from pandora_dagster.stores.user.session_files import session_folder

L = TypeVar("L", bound=FactLedger)
_SESSION = "session_facts"
_REMEDY = "correct it, or delete the file: the next turn starts a new one"


class FactFiles:
    """Ledgers under a store root, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._sessions = _LedgerFiles(root, f"users/{{user}}/sessions/{{session}}/{_SESSION}.json", SessionFacts, lock_seconds)
        self._profiles = _LedgerFiles(root, "users/{user}/profile.json", Profile, lock_seconds)

    def session(self, user: UserId, session: SessionId) -> SessionFacts:
        """The session's ledger, an empty one where there is none; raises DocumentError for a damaged one."""
        key = user, session_folder(session)
        found = self._sessions.find(*key)
        if found and (found.user_id, found.session_id) != (user, session):
            where = f"{found.user_id[:80]}, session {found.session_id[:80]}"
            raise self._sessions.files.damaged(f"it holds {where}: expected {user}, session {session}", *key)
        return found or SessionFacts(user_id=user, session_id=session)

    def change_session(self, user: UserId, session: SessionId, change: LedgerChange[SessionFacts]) -> SessionFacts:
        """The session's ledger after `change`; raises StoreError or DocumentError."""
        key = user, session_folder(session)
        with self._sessions.files.lock(*key, what=f"the facts of session {session}"):
            return self._sessions.change(self.session(user, session), change, *key)

    def profile(self, user: UserId) -> Profile | None:
        """The user's profile, None without consent; raises DocumentError for a damaged one."""
        found = self._profiles.find(user)
        if found and found.user_id != user:
            raise self._profiles.files.damaged(f"it holds {found.user_id[:80]}: expected {user}", user)
        return found

    def change_profile(self, user: UserId, change: LedgerChange[Profile]) -> Profile | None:
        """The profile after `change`, None without consent; raises StoreError or DocumentError."""
        with self._locked_profile(user):
            found = self.profile(user)
            return self._profiles.change(found, change, user) if found else None

    def consent(self, user: UserId, *, at: str, after_turn: int) -> Profile:
        """Begin an empty profile, or return the existing one; raises StoreError or DocumentError."""
        with self._locked_profile(user):
            found = self.profile(user)
            return found or self._profiles.files.put(Profile(user_id=user, consented_at=at, after_turn=after_turn), user)

    def erase_profile(self, user: UserId, *, after_turn: int) -> int:
        """Empty the profile and its audit; consent stays. Returns the number of deleted facts."""
        with self._locked_profile(user):
            found = self.profile(user)
            if found is None:
                return 0
            empty = Profile(user_id=user, consented_at=found.consented_at, after_turn=after_turn, next_id=found.next_id)
            self._profiles.files.put(empty, user)
            self._profiles.delete_audit(user)
        return len(found.facts)

    def withdraw(self, user: UserId) -> int:
        """Delete the profile and its audit, also a damaged one; returns the number of deleted facts."""
        with self._locked_profile(user):
            return self._profiles.delete(user)

    def erase_sessions(self, user: UserId) -> int:
        """Delete the ledgers and audits of all sessions, also damaged ones; returns the number of deleted facts."""
        count = 0
        for session in sorted(set(self._session_folders(user))):
            with self._sessions.files.lock(user, session, what=f"the facts in {session}"):
                count += self._sessions.delete(user, session)
        return count

    def _session_folders(self, user: UserId) -> Iterator[str]:
        """The folders with a ledger, or with an audit alone after a crash."""
        folder = path_inside(self._layout.root, self._layout.user(user) / "sessions")
        with disk_errors(folder, "cannot list"):
            yield from (path.parent.name for path in folder.glob(f"*/{_SESSION}*.json*"))

    def _locked_profile(self, user: UserId) -> AbstractContextManager[Lease]:
        return self._profiles.files.lock(user, what=f"the profile of {user}")


class _LedgerFiles(Generic[L]):
    """Ledgers of one kind, each with its audit: `profile.json` and `profile_audit.jsonl`."""

    def __init__(self, root: Path, pattern: str, shape: type[L], lock_seconds: float) -> None:
        self.files = RecordFiles(root, pattern, shape, expected="a ledger of facts", hint=_REMEDY, lock_seconds=lock_seconds)

    def find(self, *key: str) -> L | None:
        found = self.files.find(*key)
        ids = [fact.id for fact in found.facts] if found else []
        if len(set(ids)) < len(ids):
            raise self.files.damaged("facts: two with one id: expected each id once", *key)
        return found

    def change(self, ledger: L, change: LedgerChange[L], *key: str) -> L:
        """Write the changed ledger after its audit; audit lines beyond the ledger's `changes` count as not written."""
        after, audit = change(ledger)
        if after == ledger:
            return ledger
        checked = type(after).model_validate(after.model_dump())
        if audit:
            _append(self._audit(*key), "".join(f"{line.model_dump_json()}\n" for line in audit))
        return self.files.put(checked, *key)

    def delete(self, *key: str) -> int:
        """Delete a ledger, also a damaged one, and its audit; returns the number of its facts."""
        try:
            found = self.find(*key)
        except DocumentError:
            found = None
        self.files.delete(*key)
        self.delete_audit(*key)
        return len(found.facts) if found else 0

    def delete_audit(self, *key: str) -> None:
        path = self._audit(*key)
        with disk_errors(path, "cannot delete"):
            path.unlink(missing_ok=True)

    def _audit(self, *key: str) -> Path:
        path = Path(self.files.locate(*key))
        return path.with_name(f"{path.stem}_audit.jsonl")


def _append(path: Path, text: str) -> None:
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a+b") as file:
            file.write(_after_cut_off(file) + encode_text(path.name, text))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync(path.parent)


def _after_cut_off(file: BinaryIO) -> bytes:
    """A line end where a crash left half a line."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"
