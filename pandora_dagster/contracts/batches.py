"""Many queries at once: a file of them, the turns that they become, and how those ended. Shapes only."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey

_STRICT = ConfigDict(frozen=True, extra="forbid")
Line = Annotated[int, Field(ge=1)]


class BatchQuery(BaseModel):
    """One good line of a file, and the turn that is its own: given once, whatever crashes."""

    model_config = _STRICT
    line: Line
    query: str
    turn: str
    """The turn's key, `<user>:turn_000811`."""
    session: str
    mode: Literal["chat", "code"] = "chat"
    id: str = ""
    """The line's own name for it."""

    @property
    def key(self) -> TurnKey:
        return TurnKey.parse(self.turn)


class RejectedLine(BaseModel):
    """A line that is no query, why, and what stood there."""

    model_config = _STRICT
    line: Line
    reason: str
    text: str


class Batch(BaseModel):
    """All queries of a file with their turns. It is written whole, before the first of them begins."""

    model_config = _STRICT
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """sha256 of the file: the same file is the same batch, whatever its name."""
    file: str
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    """On which it began, `2026-01-04` in the configured time zone."""
    queries: tuple[BatchQuery, ...] = ()
    rejected: tuple[RejectedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One line of a batch and how its turn stands."""

    line: int
    id: str
    turn: str
    """"" for a rejected line."""
    state: TurnState | Literal["rejected"]
    intervention: str = ""
    tokens: int = 0
    ms: float = 0.0
    """That its calls took."""
    reason: str = ""
    """Why it was rejected, or what it halted with."""

    @property
    def is_finished(self) -> bool:
        """Whether there is an end to it: an answer, a question back, or an intervention that says why there is none."""
        return self.state in ("rejected", TurnState.SAVED, TurnState.CLARIFY, TurnState.ARCHIVED, TurnState.ABANDONED) or bool(
            self.state == TurnState.HALTED and self.intervention
        )
