"""Ids that become paths: users, sessions, turns, with their patterns."""

import re
from dataclasses import dataclass
from typing import NewType

from pandora_dagster.errors import BadIdError

UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,99}")
_TURN_PATTERN = re.compile(r"turn_([0-9]{6,9})")
MAX_TURN_NUMBER = 999_999_999


def _require_folder_name(label: str, text: str) -> str:
    """`text`, if it can safely name a folder; raises BadIdError, which begins with `label`."""
    if not _NAME_PATTERN.fullmatch(text) or ".." in text or text.endswith("."):
        raise BadIdError(
            f"{label} {text[:60]!r}: expected 1 to 100 letters, digits, '_', '-', '@', '+' or single dots, beginning with a letter or digit"
        )
    return text


def user_id(text: str) -> UserId:
    """Return `text` as a user id; raises BadIdError where it could not safely name a folder."""
    return UserId(_require_folder_name("user id", text))


def session_id(text: str) -> SessionId:
    """Return `text` as a session id; raises BadIdError where it could not safely name a folder."""
    return SessionId(_require_folder_name("session id", text))


@dataclass(frozen=True, slots=True, order=True)
class TurnKey:
    """One turn of one user. `str()` gives the partition key `<user>:turn_000811` (decision 15,
    docs/decisions/15-sessions-and-turn-ids.md)."""

    user: UserId
    number: int

    @property
    def turn_id(self) -> str:
        """The folder name, e.g. `turn_000811`."""
        return f"turn_{self.number:06d}"

    def __str__(self) -> str:
        return f"{self.user}:{self.turn_id}"

    @classmethod
    def parse(cls, text: str) -> "TurnKey":
        """Read `<user>:turn_000811`; raises BadIdError."""
        user, colon, turn = text.rpartition(":")
        if not colon:
            raise BadIdError(f"turn {text[:80]!r}: expected <user>:turn_000811")
        return cls(user_id(user), turn_number(turn))


def turn_number(turn_id: str) -> int:
    """The number in `turn_000811`; raises BadIdError."""
    match = _TURN_PATTERN.fullmatch(turn_id)
    if not match or not 0 < int(match.group(1)) <= MAX_TURN_NUMBER:
        raise BadIdError(f"turn id {turn_id[:60]!r}: expected turn_ and a number of at least six digits, e.g. turn_000811")
    return int(match.group(1))
