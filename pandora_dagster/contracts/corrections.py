"""What a person said was wrong about a turn (000 section 5.5). Shapes only."""

from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.contracts.ids import TurnKey, UserId


class Correction(BaseModel):
    """`users/<user>/corrections/<id>.json`: it stands when its turn is archived, and goes with its user."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    user_id: str
    turn_id: str
    revision: int = 0
    phase: str
    """The phase that the person found wrong."""
    recipe: str
    recipe_version: str
    call_id: str = ""
    """The recipe's newest call of the turn; "" where its record is gone."""
    said: Annotated[str, Field(min_length=1)]
    """What it should have been, or what was wrong."""
    at: str


class Corrections(Protocol):
    def add(self, key: TurnKey, *, revision: int, phase: str, recipe: str, recipe_version: str, said: str, call_id: str = "") -> Correction:
        """On the disk when this returns, credentials taken out.

        Raises StoreError, also while its user is erased, UnknownTurnError for a turn that is gone.
        """
        ...

    def of_user(self, user: UserId) -> tuple[Correction, ...]:
        """Oldest first; raises DocumentError naming a damaged file."""
        ...
