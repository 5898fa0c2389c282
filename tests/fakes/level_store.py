"""The LevelStore port in memory: each level is kept as its JSON, so that a test can damage one."""

from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from pydantic import ValidationError

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.summary_levels import LevelSubject, SessionNarrative, UserDigest
from pandora_dagster.errors import DocumentError, StoreError

Level = TypeVar("Level", SessionNarrative, UserDigest)


@dataclass
class MemoryLevelStore:
    """`LevelStore` over a dictionary: subject -> the JSON of its level."""

    lock_seconds: float = 10.0
    texts: dict[LevelSubject, str] = field(default_factory=dict[LevelSubject, str])
    _locks: defaultdict[LevelSubject, Lock] = field(default_factory=lambda: defaultdict(Lock))

    def narrative(self, user: UserId, session: SessionId) -> SessionNarrative | None:
        subject = LevelSubject(user, session)
        found = self._read(subject, SessionNarrative)
        if found and (found.user_id, found.session_id) != (user, session):
            raise DocumentError(f"narrative of {subject}: it is of {found.user_id}, {found.session_id}: expected that of its place")
        if found and len({link.turn for link in found.links}) < len(found.links):
            raise DocumentError(f"narrative of {subject}: a turn is linked twice: expected each once")
        return found

    def narratives(self, user: UserId) -> Iterator[SessionNarrative]:
        for session in self._sessions(user):
            if found := self.narrative(user, session):
                yield found

    def sessions(self, user: UserId) -> tuple[str, ...]:
        found: list[str] = []
        for session in self._sessions(user):
            with suppress(DocumentError):
                self.narrative(user, session)
                found.append(session)
        return tuple(found)

    def save_narrative(self, narrative: SessionNarrative) -> None:
        self.texts[LevelSubject(UserId(narrative.user_id), narrative.session_id)] = narrative.model_dump_json()

    def remove_narrative(self, user: UserId, session: SessionId) -> None:
        self.texts.pop(LevelSubject(user, session), None)

    def digest(self, user: UserId) -> UserDigest | None:
        found = self._read(LevelSubject(user), UserDigest)
        if found and {found.user_id, found.facts.user_id} != {user}:
            raise DocumentError(f"digest of {user}: it is of {found.user_id}: expected {user}")
        if found and len({link.session_id for link in found.narratives}) < len(found.narratives):
            raise DocumentError(f"digest of {user}: a session is linked twice: expected each once")
        return found

    def save_digest(self, digest: UserDigest) -> None:
        self.texts[LevelSubject(UserId(digest.user_id))] = digest.model_dump_json()

    def remove_digest(self, user: UserId) -> None:
        self.texts.pop(LevelSubject(user), None)

    def erase(self, user: UserId) -> int:
        own = [subject for subject in self.texts if subject.user == user]
        for subject in own:
            del self.texts[subject]
        return len(own)

    @contextmanager
    def lock(self, subject: LevelSubject, *, wait_s: float | None = None) -> Generator[None]:
        lock = self._locks[subject]
        if not lock.acquire(timeout=self.lock_seconds if wait_s is None else wait_s):
            raise StoreError(f"{subject}: another process makes this level: expected it to be free")
        try:
            yield
        finally:
            lock.release()

    def _sessions(self, user: UserId) -> list[SessionId]:
        return [SessionId(session) for session in sorted(s.session for s in self.texts if s.user == user and s.session)]

    def _read(self, subject: LevelSubject, kind: type[Level]) -> Level | None:
        if (text := self.texts.get(subject)) is None:
            return None
        try:
            return kind.model_validate_json(text)
        except ValidationError as error:
            raise DocumentError(f"level of {subject}: {error.error_count()} faults: expected a {kind.__name__}") from error
