"""What the Coordinator may call, and what comes back. Shapes only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.user.sources import Research, Visit


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool gave back. `text` is Markdown for section 4; `raw` the bundle for toolresults.md."""

    ok: bool
    text: str
    raw: str
    sources: tuple[Source, ...] = ()
    """Without labels; the caller numbers them."""
    research: tuple[Research, ...] = ()
    """What was researched; it is stored once the turn is saved, and later turns find it (004 section 3.5)."""
    visits: tuple[Visit, ...] = ()
    """Pages that were visited for it (004 section 3.6)."""


class Tool(Protocol):
    """What the Coordinator may call. Arguments are validated against `parameters` (JSON Schema) before `run`."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def writes(self) -> bool: ...
    async def run(self, arguments: Mapping[str, Any], *, user: UserId, turn: TurnKey) -> ToolOutcome: ...
