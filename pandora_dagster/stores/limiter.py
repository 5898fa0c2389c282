"""What a session's rate limiter must not forget (DECISIONS 7): one small file a session. Knows the file, not what is allowed."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.compression.rate import LimiterState
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.stores.files import encode_text, path_inside, write_atomic
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import file_lock
from pandora_dagster.stores.model_files import find_json_record
from pandora_dagster.stores.sessions import session_folder

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
