"""The intervention record: a HALT that a user resolves (decision 14, docs/decisions/14-the-intervention-record.md)."""

from typing import Literal

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.strict_model import StrictModel

ResolutionKind = Literal["noted", "retry", "by_hand", "abandoned", "went_on", "approved", "refused"]


class Intervention(StrictModel):
    """Why a phase stopped, and how a user resolved it; stored as `<root>/interventions/<id>.json`."""

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
    """References to the prompt pack and the raw answer in the vault."""
    created_at: str
    state: Literal["open", "resolved"] = "open"
    resolution: str = ""
    how: ResolutionKind | Literal[""] = ""
    """How it was resolved: noted only; the phase run again; a manual answer; the turn abandoned; the turn continued by itself; the tool
    call that it asks about approved, or refused."""
    resolved_at: str = ""

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def resolution_notice(self) -> str:
        """How and when it was resolved, for a refusal message; "" while it is open, or only noted."""
        return f"intervention {self.id}: resolved already ({self.how}, {self.resolved_at})" if self.how not in ("", "noted") else ""
