"""Sessions: which conversation a session is, its preamble, its turns. Knows nothing of what the turns say."""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.contracts.conversations import Message
from pandora_dagster.contracts.ids import SessionId, UserId, session_id
from pandora_dagster.errors import BadIdError, DocumentError, StoreError
from pandora_dagster.stores.files import disk_errors, encoded, inside, read_text, sha, write_all
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import held

_RECORD = "session.json"
_PREAMBLE = "preamble.jsonl"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class Session(BaseModel):
    """`users/<user>/sessions/<session_id>/session.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format_version: Literal[1] = 1
    id: str
    """The conversation's own id, any text."""
    user_id: str
    created_at: str
    turns: tuple[str, ...] = ()
    """Turn ids in the order of the conversation."""
    state: Literal["importing", "complete"] = "complete"
    messages_sha: str = ""
    """sha256 of the imported messages, "" for a live session."""
    preamble_sha: str = ""
    """sha256 of preamble.jsonl, "" where nothing stands before the first user message (DECISIONS 20)."""

    @property
    def session_id(self) -> SessionId:
        """The folder name, as turns name their session."""
        return session_folder(self.id)


def session_folder(conversation_id: str) -> SessionId:
    """The id itself where it can safely name a folder, else its letters and digits and a short hash."""
    try:
        return session_id(conversation_id)
    except BadIdError:
        slug = _UNSAFE.sub("-", conversation_id).strip("-_")[:60] or "session"
        digest = sha256(conversation_id.encode(errors="surrogatepass")).hexdigest()[:12]
        return session_id(f"{slug}-{digest}")


class Sessions:
    """The sessions under one store root."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._lock_seconds = lock_seconds

    def ensure(
        self,
        user: UserId,
        conversation_id: str,
        *,
        created_at: str,
        preamble: Sequence[Message] = (),
        messages_sha: str = "",
        state: Literal["importing", "complete"] = "complete",
    ) -> Session:
        """The session of this conversation, made where there is none; one that exists stays as it is."""
        folder = self._folder(user, conversation_id)
        with self._held(folder, conversation_id):
            if known := self.find(user, conversation_id):
                return known
            lines = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in preamble)
            new = Session(
                id=conversation_id,
                user_id=user,
                created_at=created_at,
                state=state,
                messages_sha=messages_sha,
                preamble_sha=sha(lines) if lines else "",
            )
            write_all(folder, {**({_PREAMBLE: encoded(_PREAMBLE, lines)} if lines else {}), **_file(new)})
        return new

    def record(self, user: UserId, conversation_id: str, *, turns: Sequence[str] = (), **changes: str) -> Session:
        """Add turns (those not yet named) and change `state` or `messages_sha`; raises StoreError for an unknown session."""
        folder = self._folder(user, conversation_id)
        with self._held(folder, conversation_id):
            known = self.find(user, conversation_id)
            if known is None:
                raise StoreError(f"{folder}: there is no session {conversation_id[:80]!r}: expected it to be made first")
            fields: dict[str, Any] = {**known.model_dump(), **_allowed(changes), "turns": tuple(dict.fromkeys([*known.turns, *turns]))}
            changed = Session.model_validate(fields)
            if changed != known:
                write_all(folder, _file(changed))
        return changed

    def find(self, user: UserId, conversation_id: str) -> Session | None:
        """The session of this conversation, None where there is none; raises DocumentError for a damaged one."""
        found = self._read(self._folder(user, conversation_id) / _RECORD)
        if found and found.id != conversation_id:
            raise DocumentError(
                f"{self._folder(user, conversation_id)}: it holds session {found.id[:80]!r}: expected {conversation_id[:80]!r}"
            )
        return found

    def list(self, user: UserId) -> tuple[Session, ...]:
        """All sessions of a user, oldest first."""
        folder = self._layout.user(user) / "sessions"
        if not folder.is_dir():
            return ()
        with disk_errors(folder, "cannot list"):
            paths = sorted(folder.iterdir())
        found = (self._read(inside(self._layout.root, path) / _RECORD) for path in paths if not path.name.startswith("."))
        return tuple(sorted((s for s in found if s), key=lambda s: (s.created_at, s.id)))

    def preamble(self, user: UserId, conversation_id: str) -> tuple[Message, ...]:
        """The messages before the first user message, value for value; raises DocumentError."""
        session = self.find(user, conversation_id)
        if session is None or not session.preamble_sha:
            return ()
        path = self._folder(user, conversation_id) / _PREAMBLE
        text = read_text(inside(self._layout.root, path))
        if sha(text) != session.preamble_sha:
            raise DocumentError(f"{path}: changed since it was imported: expected sha256 {session.preamble_sha[:12]} as in {_RECORD}")
        return tuple(cast(Message, json.loads(line)) for line in text.split("\n") if line)

    def _folder(self, user: UserId, conversation_id: str) -> Path:
        return inside(self._layout.root, self._layout.session(user, session_folder(conversation_id)))

    def _held(self, folder: Path, conversation_id: str):
        return held(folder / ".lock", what=f"session {conversation_id[:80]!r}", seconds=self._lock_seconds)

    def _read(self, path: Path) -> Session | None:
        try:
            return Session.model_validate_json(read_text(path))
        except DocumentError as error:
            if error.missing:
                return None
            raise
        except ValidationError as error:
            fault = error.errors()[0]
            raise DocumentError(f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}: expected a session record") from error


def _file(session: Session) -> Mapping[str, bytes]:
    return {_RECORD: encoded(_RECORD, session.model_dump_json(indent=1) + "\n")}


def _allowed(changes: Mapping[str, str]) -> Mapping[str, str]:
    if unknown := sorted(set(changes) - {"state", "messages_sha"}):
        raise TypeError(f"record: {', '.join(unknown)}: expected only state, messages_sha")
    return changes
