"""The LevelStore port: `sessions/<id>/narrative.json` and `digest.json` of a user."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.summary_levels import LevelSubject, SessionNarrative, UserDigest
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.record_files import RecordFiles
from pandora_dagster.stores.user.session_files import session_folder

_HINT = "delete the file: the next archival run makes it again from the turns"


class LevelFiles:
    """Levels below one store root, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout, self._erasures = Layout(root), ErasureIntents(root)
        narrative, digest = "users/{user}/sessions/{session}/narrative.json", "users/{user}/digest.json"
        expected = "the narrative of a session"
        self._narratives = RecordFiles(root, narrative, SessionNarrative, expected=expected, hint=_HINT, lock_seconds=lock_seconds)
        self._digests = RecordFiles(root, digest, UserDigest, expected="a digest", hint=_HINT, lock_seconds=lock_seconds)

    def narrative(self, user: UserId, session: SessionId) -> SessionNarrative | None:
        """The session's narrative, None where there is none; raises DocumentError for a damaged one or another session's."""
        folder = session_folder(session)
        found = self._narrative(user, folder)
        if found and found.session_id != session:
            raise self._narratives.damaged(f"it is of session {found.session_id[:80]!r}: expected {session[:80]!r}", user, folder)
        return found

    def narratives(self, user: UserId) -> Iterator[SessionNarrative]:
        """Each session's narrative, by folder; raises DocumentError for a damaged one."""
        for _, folder in self._narratives.list_keys(user):
            if found := self._narrative(user, folder):
                if session_folder(found.session_id) != folder:
                    raise self._narratives.damaged(f"it is of session {found.session_id[:80]!r}: expected that of its folder", user, folder)
                yield found

    def sessions(self, user: UserId) -> tuple[str, ...]:
        """The sessions that have a readable narrative, by folder."""
        found: list[str] = []
        for _, folder in self._narratives.list_keys(user):
            with suppress(DocumentError):
                if narrative := self._narrative(user, folder):
                    found.append(narrative.session_id)
        return tuple(found)

    def save_narrative(self, narrative: SessionNarrative) -> None:
        self._narratives.put(narrative, narrative.user_id, session_folder(narrative.session_id))

    def remove_narrative(self, user: UserId, session: SessionId) -> None:
        self._narratives.delete(user, session_folder(session))

    def digest(self, user: UserId) -> UserDigest | None:
        """The user's digest, None where there is none; raises DocumentError for a damaged one or another user's."""
        found = self._digests.find(user)
        if found is None:
            return None
        if found.user_id != user or found.facts.user_id != user:
            raise self._digests.damaged(f"it is of {found.user_id[:80]!r}: expected {user}", user)
        if len({link.session_id for link in found.narratives}) < len(found.narratives):
            raise self._digests.damaged("narratives: a session twice: expected each once", user)
        return found

    def save_digest(self, digest: UserDigest) -> None:
        self._digests.put(digest, digest.user_id)

    def remove_digest(self, user: UserId) -> None:
        self._digests.delete(user)

    def erase(self, user: UserId) -> int:
        """Delete the user's narratives and digest, also damaged ones; returns how many files. Raises StoreError."""
        return self._narratives.erase(user) + self._digests.erase(user)

    @contextmanager
    def lock(self, subject: LevelSubject, *, wait_s: float | None = None) -> Generator[None]:
        """Hold the lock of one level; raises StoreError, also for a user who is gone or being erased."""
        if not self._layout.user(subject.user).is_dir():
            raise StoreError(f"user {subject.user}: has no folder: expected a user who has one")
        if subject.session:
            session = session_folder(SessionId(subject.session))
            lease = self._narratives.lock(subject.user, session, what=f"the narrative of {subject}", wait_s=wait_s)
        else:
            lease = self._digests.lock(subject.user, what=f"the digest of {subject}", wait_s=wait_s)
        with lease:
            self._erasures.refuse(subject.user)  # an erasure writes its intent before it waits for this lock
            yield

    def _narrative(self, user: UserId, folder: str) -> SessionNarrative | None:
        found = self._narratives.find(user, folder)
        if found is None:
            return None
        if found.user_id != user:
            raise self._narratives.damaged(f"it is of {found.user_id[:80]!r}: expected {user}", user, folder)
        turns = [link.turn for link in found.links]
        if len(set(turns)) < len(turns):
            raise self._narratives.damaged("parts: a turn is linked twice: expected each once", user, folder)
        return found


def level_locks(layout: Layout, user: UserId) -> list[Path]:
    """The lock files of a user's levels, also those of levels that are gone."""
    folder = layout.user(user)
    return [folder / ".digest.json.lock", *sorted(folder.glob("sessions/*/.narrative.json.lock"))]
