"""What a HALT leaves behind for a person to judge (DECISIONS 14)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from pandora_dagster.contracts.words import InterventionType

Resolved = Literal["noted", "retry", "by_hand", "abandoned"]


class Intervention(BaseModel):
    """`<root>/interventions/<id>.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    type: InterventionType
    message: str
    hint: str = ""
    user_id: str = ""
    session_id: str = ""
    turn_id: str = ""
    revision: int = 0
    phase: str = ""
    recipe: str = ""
    recipe_version: str = ""
    call_id: str = ""
    pack_ref: str = ""
    answer_ref: str = ""
    created_at: str
    state: Literal["open", "resolved"] = "open"
    resolution: str = ""
    how: Literal["", "noted", "retry", "by_hand", "abandoned"] = ""
    """What was done: only noted; the phase run again; its answer given by hand; the turn ended."""
    resolved_at: str = ""
