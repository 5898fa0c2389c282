"""The LevelStore port: a user's narratives in `sessions/<id>/narrative.json`, and the digest in `digest.json`."""

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
    """Narratives and digests below one store root, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout, self._erasures = Layout(root), ErasureIntents(root)
        narrative, digest = "users/{user}/sessions/{session}/narrative.json", "users/{user}/digest.json"
        expected = "the narrative of a session"
        self._narratives = RecordFiles(root, narrative, SessionNarrative, expected=expected, hint=_HINT, lock_seconds=lock_seconds)
        self._digests = RecordFiles(root, digest, UserDigest, expected="a digest", hint=_HINT, lock_seconds=lock_seconds)

    def narrative(self, user: UserId, session: SessionId) -> SessionNarrative | None:
        """The session's narrative, None where there is none; raises DocumentError for a damaged one or another session's."""
        folder = session_folder(session)
        narrative = self._read_narrative(user, folder)
        if narrative and narrative.session_id != session:
            raise self._narratives.damaged(f"it is of session {narrative.session_id[:80]!r}: expected {session[:80]!r}", user, folder)
        return narrative

    def narratives(self, user: UserId) -> Iterator[SessionNarrative]:
        """Each session's narrative, in the order of their folders; raises DocumentError for a damaged one."""
        for _, folder in self._narratives.list_keys(user):
            if narrative := self._read_narrative(user, folder):
                if session_folder(narrative.session_id) != folder:
                    raise self._narratives.damaged(
                        f"it is of session {narrative.session_id[:80]!r}: expected that of its folder", user, folder
                    )
                yield narrative

    def sessions(self, user: UserId) -> tuple[str, ...]:
        """The sessions that have a readable narrative, in the order of their folders."""
        session_ids: list[str] = []
        for _, folder in self._narratives.list_keys(user):
            with suppress(DocumentError):
                if narrative := self._read_narrative(user, folder):
                    session_ids.append(narrative.session_id)
        return tuple(session_ids)

    def save_narrative(self, narrative: SessionNarrative) -> None:
        self._narratives.put(narrative, narrative.user_id, session_folder(narrative.session_id))

    def remove_narrative(self, user: UserId, session: SessionId) -> None:
        self._narratives.delete(user, session_folder(session))

    def digest(self, user: UserId) -> UserDigest | None:
        """The user's digest, None where there is none; raises DocumentError for a damaged one or another user's."""
        digest = self._digests.find(user)
        if digest is None:
            return None
        if digest.user_id != user or digest.facts.user_id != user:
            raise self._digests.damaged(f"it is of {digest.user_id[:80]!r}: expected {user}", user)
        if len({link.session_id for link in digest.narratives}) < len(digest.narratives):
            raise self._digests.damaged("narratives: a session twice: expected each once", user)
        return digest

    def save_digest(self, digest: UserDigest) -> None:
        self._digests.put(digest, digest.user_id)

    def remove_digest(self, user: UserId) -> None:
        self._digests.delete(user)

    def erase(self, user: UserId) -> int:
        """Delete the user's narratives and digest, also damaged ones; returns the number of files. Raises StoreError."""
        return self._narratives.erase(user) + self._digests.erase(user)

    @contextmanager
    def lock(self, subject: LevelSubject, *, wait_s: float | None = None) -> Generator[None]:
        """Hold the lock of one level; raises StoreError, also for a user who is deleted or being erased."""
        if not self._layout.user(subject.user).is_dir():
            raise StoreError(f"user {subject.user}: has no folder: expected a user who has one")
        if subject.session:
            session = session_folder(SessionId(subject.session))
            lease = self._narratives.lock(subject.user, session, what=f"the narrative of {subject}", wait_s=wait_s)
        else:
            lease = self._digests.lock(subject.user, what=f"the digest of {subject}", wait_s=wait_s)
        with lease:
            self._erasures.refuse_erased_user(subject.user)  # an erasure writes its intent before it waits for this lock
            yield

    def _read_narrative(self, user: UserId, folder: str) -> SessionNarrative | None:
        """The narrative in a session folder, checked against the user and itself; raises DocumentError."""
        narrative = self._narratives.find(user, folder)
        if narrative is None:
            return None
        if narrative.user_id != user:
            raise self._narratives.damaged(f"it is of {narrative.user_id[:80]!r}: expected {user}", user, folder)
        turns = [link.turn for link in narrative.links]
        if len(set(turns)) < len(turns):
            raise self._narratives.damaged("parts: a turn is linked twice: expected each once", user, folder)
        return narrative


def level_locks(layout: Layout, user: UserId) -> list[Path]:
    """The lock files of a user's levels, also those of deleted levels."""
    folder = layout.user(user)
    return [folder / ".digest.json.lock", *sorted(folder.glob("sessions/*/.narrative.json.lock"))]
