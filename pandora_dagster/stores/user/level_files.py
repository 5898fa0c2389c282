"""The LevelStore port: `sessions/<id>/narrative.json` and `digest.json` of a user. Knows files, not how a level is made."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.summary_levels import LevelSubject, SessionNarrative, UserDigest
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, sync, write_atomic
from pandora_dagster.stores.disk.json_files import find_json_record
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.user.session_files import session_folder

_NARRATIVE, _DIGEST = "narrative.json", "digest.json"
_REMEDY = "delete the file: the next night makes it again from the turns"


class LevelFiles:
    """Levels under a store root, each written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds
        self._erasures = ErasureIntents(root)

    def narrative(self, user: UserId, session: SessionId) -> SessionNarrative | None:
        """The session's narrative, None where there is none; raises DocumentError for a damaged one or another's."""
        path = self._narrative(user, session)
        found = _narrative_in(path, user)
        if found and found.session_id != session:
            raise DocumentError(f"{path}: it is of session {found.session_id[:80]!r}: expected {session[:80]!r}", hint=_REMEDY)
        return found

    def narratives(self, user: UserId) -> Iterator[SessionNarrative]:
        """Each session's narrative, by folder; raises DocumentError for a damaged one."""
        for path in self._narratives(user):
            if found := _narrative_in(path, user):
                if session_folder(found.session_id) != path.parent.name:
                    raise DocumentError(f"{path}: it is of session {found.session_id[:80]!r}: expected that of its folder", hint=_REMEDY)
                yield found

    def sessions(self, user: UserId) -> tuple[str, ...]:
        """The sessions that have a narrative which can be read, by folder."""
        found: list[str] = []
        for path in self._narratives(user):
            with suppress(DocumentError):
                if narrative := _narrative_in(path, user):
                    found.append(narrative.session_id)
        return tuple(found)

    def save_narrative(self, narrative: SessionNarrative) -> None:
        path = self._narrative(UserId(narrative.user_id), SessionId(narrative.session_id))
        write_atomic(path, encode_text(_NARRATIVE, narrative.model_dump_json(indent=1) + "\n"))

    def remove_narrative(self, user: UserId, session: SessionId) -> None:
        _delete(self._narrative(user, session))

    def digest(self, user: UserId) -> UserDigest | None:
        """The person's digest, None where there is none; raises DocumentError for a damaged one or another's."""
        path = self._digest(user)
        found = find_json_record(path, UserDigest, expected="a digest", hint=_REMEDY)
        if found is None:
            return None
        if found.user_id != user or found.facts.user_id != user:
            raise DocumentError(f"{path}: it is of {found.user_id[:80]!r}: expected {user}", hint=_REMEDY)
        if len({link.session_id for link in found.narratives}) < len(found.narratives):
            raise DocumentError(f"{path}: narratives: a session twice: expected each once", hint=_REMEDY)
        return found

    def save_digest(self, digest: UserDigest) -> None:
        write_atomic(self._digest(UserId(digest.user_id)), encode_text(_DIGEST, digest.model_dump_json(indent=1) + "\n"))

    def remove_digest(self, user: UserId) -> None:
        _delete(self._digest(user))

    def erase(self, user: UserId) -> int:
        """Delete the user's narratives and digest, damaged ones too; returns how many files went. Raises StoreError."""
        paths = [path for path in (*self._narratives(user), self._digest(user)) if path.is_file()]
        for path in paths:
            _delete(path)
        return len(paths)

    @contextmanager
    def lock(self, subject: LevelSubject, *, wait_s: float | None = None) -> Generator[None]:
        """Held while one process makes this level; raises StoreError, also for a user who is gone or being erased."""
        if not self._layout.user(subject.user).is_dir():
            raise StoreError(f"user {subject.user}: has no folder: expected a user who has one")
        path = self._narrative(subject.user, SessionId(subject.session)) if subject.session else self._digest(subject.user)
        seconds = self._lock_seconds if wait_s is None else wait_s
        with file_lock(_lock_of(path), what=f"the {path.stem} of {subject}", seconds=seconds):
            self._erasures.refuse(subject.user)  # whose intent is on the disk before the lock is waited for
            yield

    def _narratives(self, user: UserId) -> list[Path]:
        folder = path_inside(self._layout.root, self._layout.user(user) / "sessions")
        if not folder.is_dir():
            return []
        with disk_errors(folder, "cannot list"):
            return [path_inside(self._layout.root, path) for path in sorted(folder.glob(f"*/{_NARRATIVE}"))]

    def _narrative(self, user: UserId, session: SessionId) -> Path:
        return path_inside(self._layout.root, self._layout.session(user, session_folder(session)) / _NARRATIVE)

    def _digest(self, user: UserId) -> Path:
        return path_inside(self._layout.root, self._layout.user(user) / _DIGEST)


def level_locks(layout: Layout, user: UserId) -> list[Path]:
    """The locks that were ever held for the levels of a user."""
    folder = layout.user(user)
    return [_lock_of(folder / _DIGEST), *sorted(folder.glob(f"sessions/*/{_lock_of(Path(_NARRATIVE))}"))]


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _narrative_in(path: Path, user: UserId) -> SessionNarrative | None:
    found = find_json_record(path, SessionNarrative, expected="the narrative of a session", hint=_REMEDY)
    if found is None:
        return None
    if found.user_id != user:
        raise DocumentError(f"{path}: it is of {found.user_id[:80]!r}: expected {user}", hint=_REMEDY)
    turns = [link.turn for link in found.links]
    if len(set(turns)) < len(turns):
        raise DocumentError(f"{path}: parts: a turn is linked twice: expected each once", hint=_REMEDY)
    return found


def _delete(path: Path) -> None:
    with disk_errors(path, "cannot delete"):
        if path.is_file():
            path.unlink(missing_ok=True)
            sync(path.parent)
