"""The FactStore port: one JSON file per ledger, its audit as JSON lines beside it.

`users/<user>/sessions/<id>/session_facts.json`, and while the user consents `users/<user>/profile.json`.
"""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, TypeVar

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.user_storage import LedgerChange
from pandora_dagster.contracts.user.user_memory import FactLedger, Profile, SessionFacts
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, sync, write_atomic
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.record_files import find_record
from pandora_dagster.stores.user.session_files import session_folder

L = TypeVar("L", bound=FactLedger)
_SESSION, _PROFILE = "session_facts", "profile"
_REMEDY = "mend it, or delete the file: the next turn begins a new one"


class FactFiles:
    """Ledgers under a store root, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def session(self, user: UserId, session: SessionId) -> SessionFacts:
        """The session's ledger, an empty one where there is none; raises DocumentError for a damaged one."""
        path = self._session(user, session)
        found = _read(path, SessionFacts)
        if found and (found.user_id, found.session_id) != (user, session):
            raise DocumentError(
                f"{path}: it holds {found.user_id[:80]}, session {found.session_id[:80]}: expected {user}, session {session}"
            )
        return found or SessionFacts(user_id=user, session_id=session)

    def change_session(self, user: UserId, session: SessionId, change: LedgerChange[SessionFacts]) -> SessionFacts:
        """The session's ledger after `change`; raises StoreError or DocumentError."""
        path = self._session(user, session)
        with self._held(path, f"the facts of session {session}"):
            return _changed(path, self.session(user, session), change)

    def profile(self, user: UserId) -> Profile | None:
        """The user's profile, None without consent; raises DocumentError for a damaged one."""
        path = self._profile(user)
        found = _read(path, Profile)
        if found and found.user_id != user:
            raise DocumentError(f"{path}: it holds {found.user_id[:80]}: expected {user}")
        return found

    def change_profile(self, user: UserId, change: LedgerChange[Profile]) -> Profile | None:
        """The profile after `change`, None without consent; raises StoreError or DocumentError."""
        path = self._profile(user)
        with self._held(path, f"the profile of {user}"):
            found = self.profile(user)
            return _changed(path, found, change) if found else None

    def consent(self, user: UserId, *, at: str, after_turn: int) -> Profile:
        """Begin an empty profile, or return the existing one; raises StoreError or DocumentError."""
        path = self._profile(user)
        with self._held(path, f"the profile of {user}"):
            found = self.profile(user)
            return found or _written(path, Profile(user_id=user, consented_at=at, after_turn=after_turn))

    def erase_profile(self, user: UserId, *, after_turn: int) -> int:
        """Empty the profile and its audit; consent stays. Returns the number of deleted facts."""
        path = self._profile(user)
        with self._held(path, f"the profile of {user}"):
            found = self.profile(user)
            if found is None:
                return 0
            _written(path, Profile(user_id=user, consented_at=found.consented_at, after_turn=after_turn, next_id=found.next_id))
            _delete(_audit(path))
        return len(found.facts)

    def withdraw(self, user: UserId) -> int:
        """Delete the profile and its audit, also a damaged one; returns the number of deleted facts."""
        path = self._profile(user)
        with self._held(path, f"the profile of {user}"):
            return _count_facts(path, Profile)

    def erase_sessions(self, user: UserId) -> int:
        """Delete the ledgers and audits of all sessions, also damaged ones; returns the number of deleted facts."""
        folder = path_inside(self._layout.root, self._layout.user(user) / "sessions")
        if not folder.is_dir():
            return 0
        count = 0
        with disk_errors(folder, "cannot list"):
            ledgers = sorted({p.with_name(f"{_SESSION}.json") for p in folder.glob(f"*/{_SESSION}*.json*")})
        for path in ledgers:
            with self._held(path_inside(self._layout.root, path), f"the facts in {path.parent.name}"):
                count += _count_facts(path, SessionFacts)
        return count

    def _held(self, path: Path, what: str) -> AbstractContextManager[None]:
        return file_lock(path.with_name(f".{path.name}.lock"), what=what, seconds=self._lock_seconds)

    def _session(self, user: UserId, session: SessionId) -> Path:
        return path_inside(self._layout.root, self._layout.session(user, session_folder(session)) / f"{_SESSION}.json")

    def _profile(self, user: UserId) -> Path:
        return path_inside(self._layout.root, self._layout.user(user) / f"{_PROFILE}.json")


def _audit(path: Path) -> Path:
    return path.with_name(f"{path.stem}_audit.jsonl")


def _read(path: Path, shape: type[L]) -> L | None:
    found = find_record(path, shape, expected="a ledger of facts", hint=_REMEDY)
    if found is None:
        return None
    ids = [f.id for f in found.facts]
    if len(set(ids)) < len(ids):
        raise DocumentError(f"{path}: facts: two with one id: expected each id once", hint=_REMEDY)
    return found


def _changed(path: Path, ledger: L, change: LedgerChange[L]) -> L:
    """Write the changed ledger after its audit; audit lines beyond the ledger's `changes` count as not written."""
    after, audit = change(ledger)
    if after == ledger:
        return ledger
    shape = type(after)
    checked = shape.model_validate(after.model_dump())
    if audit:
        _append(_audit(path), "".join(f"{line.model_dump_json()}\n" for line in audit))
    return _written(path, checked)


def _written(path: Path, ledger: L) -> L:
    write_atomic(path, encode_text(path.name, ledger.model_dump_json(indent=1) + "\n"))
    return ledger


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


def _count_facts(path: Path, shape: type[FactLedger]) -> int:
    try:
        found = _read(path, shape)
    except DocumentError:
        found = None
    _delete(path)
    _delete(_audit(path))
    return len(found.facts) if found else 0


def _delete(path: Path) -> None:
    with disk_errors(path, "cannot delete"):
        path.unlink(missing_ok=True)
