"""Batches of queries: a file of queries, the turns that they become, and their outcomes."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.strict_model import StrictModel

Line = Annotated[int, Field(ge=1)]


class BatchQuery(StrictModel):
    """One valid line of a file, and the key of its turn, which is allocated once."""

    line: Line
    query: str
    turn: str
    """The turn's key, `<user>:turn_000811`."""
    session: str
    mode: Literal["chat", "code"] = "chat"
    id: str = ""
    """The id in the line."""

    @property
    def key(self) -> TurnKey:
        return TurnKey.parse(self.turn)


class RejectedLine(StrictModel):
    """A line that is not a valid query, with the reason and its text."""

    line: Line
    reason: str
    text: str


class Batch(StrictModel):
    """All queries of a file with their turns. It is stored completely before the first turn begins."""

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """sha256 of the file: the same file is the same batch, whatever its name."""
    file: str
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    """The day on which it began, `2026-01-04` in the configured time zone."""
    queries: tuple[BatchQuery, ...] = ()
    rejected: tuple[RejectedLine, ...] = ()


def query_file_digest(data: bytes) -> str:
    """sha256 of a file of queries: equal for files with the same bytes."""
    return sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file in the inbox as one listing finds it."""

    name: str
    size: int
    modified_ns: int

    @property
    def fingerprint(self) -> str:
        """The same for two listings between which nothing is written."""
        return f"{self.size}:{self.modified_ns}"


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One line of a batch and the state of its turn."""

    line: int
    id: str
    turn: str
    """"" for a rejected line."""
    state: TurnState | Literal["rejected"]
    intervention: str = ""
    tokens: int = 0
    ms: float = 0.0
    """Milliseconds of its calls."""
    reason: str = ""
    """Why it was rejected, or the message of its halt."""

    @property
    def is_finished(self) -> bool:
        """Whether the turn has ended: with an answer, a clarifying question, or an intervention."""
        return self.state in ("rejected", TurnState.SAVED, TurnState.CLARIFY, TurnState.ARCHIVED, TurnState.ABANDONED) or bool(
            self.state == TurnState.HALTED and self.intervention
        )
