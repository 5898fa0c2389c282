"""The FactStore port: one JSON file for each ledger of facts, with its audit as JSON lines beside it.

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
_SESSION_LEDGER = "session_facts"
_HINT = "correct it, or delete the file: the next turn starts a new one"


class FactFiles:
    """Ledgers under a store root, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._sessions = _LedgerFiles(root, f"users/{{user}}/sessions/{{session}}/{_SESSION_LEDGER}.json", SessionFacts, lock_seconds)
        self._profiles = _LedgerFiles(root, "users/{user}/profile.json", Profile, lock_seconds)

    def session(self, user: UserId, session: SessionId) -> SessionFacts:
        """The session's ledger, an empty one where there is none; raises DocumentError for a damaged one."""
        key = user, session_folder(session)
        ledger = self._sessions.find(*key)
        if ledger and (ledger.user_id, ledger.session_id) != (user, session):
            owner = f"{ledger.user_id[:80]}, session {ledger.session_id[:80]}"
            raise self._sessions.files.damaged(f"it holds {owner}: expected {user}, session {session}", *key)
        return ledger or SessionFacts(user_id=user, session_id=session)

    def change_session(self, user: UserId, session: SessionId, change: LedgerChange[SessionFacts]) -> SessionFacts:
        """The session's ledger after `change`; raises StoreError or DocumentError."""
        key = user, session_folder(session)
        with self._sessions.files.lock(*key, what=f"the facts of session {session}"):
            return self._sessions.change(self.session(user, session), change, *key)

    def profile(self, user: UserId) -> Profile | None:
        """The user's profile, None without consent; raises DocumentError for a damaged one."""
        profile = self._profiles.find(user)
        if profile and profile.user_id != user:
            raise self._profiles.files.damaged(f"it holds {profile.user_id[:80]}: expected {user}", user)
        return profile

    def change_profile(self, user: UserId, change: LedgerChange[Profile]) -> Profile | None:
        """The profile after `change`, None without consent; raises StoreError or DocumentError."""
        with self._locked_profile(user):
            profile = self.profile(user)
            return self._profiles.change(profile, change, user) if profile else None

    def consent(self, user: UserId, *, at: str, after_turn: int) -> Profile:
        """Begin an empty profile, or return the existing one; raises StoreError or DocumentError."""
        with self._locked_profile(user):
            profile = self.profile(user)
            return profile or self._profiles.files.put(Profile(user_id=user, consented_at=at, after_turn=after_turn), user)

    def erase_profile(self, user: UserId, *, after_turn: int) -> int:
        """Delete the facts of the profile and its audit; consent stays. Returns the number of deleted facts."""
        with self._locked_profile(user):
            profile = self.profile(user)
            if profile is None:
                return 0
            empty = Profile(user_id=user, consented_at=profile.consented_at, after_turn=after_turn, next_id=profile.next_id)
            self._profiles.files.put(empty, user)
            self._profiles.delete_audit(user)
        return len(profile.facts)

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
        """The names of session folders with a ledger, or after a crash with an audit alone."""
        folder = path_inside(self._layout.root, self._layout.user(user) / "sessions")
        with disk_errors(folder, "cannot list"):
            yield from (path.parent.name for path in folder.glob(f"*/{_SESSION_LEDGER}*.json*"))

    def _locked_profile(self, user: UserId) -> AbstractContextManager[Lease]:
        return self._profiles.files.lock(user, what=f"the profile of {user}")


class _LedgerFiles(Generic[L]):
    """Ledgers of one type, each with its audit, such as `profile.json` and `profile_audit.jsonl`."""

    def __init__(self, root: Path, pattern: str, ledger_type: type[L], lock_seconds: float) -> None:
        self.files = RecordFiles(root, pattern, ledger_type, expected="a ledger of facts", hint=_HINT, lock_seconds=lock_seconds)

    def find(self, *key: str) -> L | None:
        """The ledger, None where there is none; raises DocumentError for a damaged one."""
        ledger = self.files.find(*key)
        ids = [fact.id for fact in ledger.facts] if ledger else []
        if len(set(ids)) < len(ids):
            raise self.files.damaged("facts: two with one id: expected each id once", *key)
        return ledger

    def change(self, ledger: L, change: LedgerChange[L], *key: str) -> L:
        """Write the changed ledger after its audit; audit lines beyond the ledger's `changes` count as not written."""
        changed, audit = change(ledger)
        if changed == ledger:
            return ledger
        validated = type(changed).model_validate(changed.model_dump())
        if audit:
            _append_lines(self._audit_path(*key), "".join(f"{line.model_dump_json()}\n" for line in audit))
        return self.files.put(validated, *key)

    def delete(self, *key: str) -> int:
        """Delete a ledger, also a damaged one, and its audit; returns the number of its facts."""
        try:
            ledger = self.find(*key)
        except DocumentError:
            ledger = None
        self.files.delete(*key)
        self.delete_audit(*key)
        return len(ledger.facts) if ledger else 0

    def delete_audit(self, *key: str) -> None:
        path = self._audit_path(*key)
        with disk_errors(path, "cannot delete"):
            path.unlink(missing_ok=True)

    def _audit_path(self, *key: str) -> Path:
        path = Path(self.files.locate(*key))
        return path.with_name(f"{path.stem}_audit.jsonl")


def _append_lines(path: Path, text: str) -> None:
    """Append to a file and wait until the bytes are on the disk; raises StoreError."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a+b") as file:
            file.write(_missing_line_end(file) + encode_text(path.name, text))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync(path.parent)


def _missing_line_end(file: BinaryIO) -> bytes:
    """A line end for a file whose last line a crash cut off; no bytes for any other."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"
