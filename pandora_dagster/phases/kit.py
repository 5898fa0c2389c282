"""What a phase may use: the ports, in one frozen bundle. `wiring` fills it; tests fill it with fakes."""

from collections.abc import Mapping
from dataclasses import dataclass

from pandora_dagster.contracts.ports import (
    Clock,
    Cookbook,
    CountsTokens,
    Executes,
    Interventions,
    MemoryStore,
    Tool,
    TurnIndex,
    TurnStore,
)


@dataclass(frozen=True, slots=True)
class Kit:
    """The ports a phase works with."""

    cookbook: Cookbook
    execution: Executes
    turns: TurnStore
    index: TurnIndex
    memory: MemoryStore
    interventions: Interventions
    counter: CountsTokens
    clock: Clock
    tools: Mapping[str, Tool]
    """Tools that exist, by name."""
    runtime: str
    """Name of the runtime in use: `extractive` or `sglang`."""
    policy: str = "assistant"
    """Which prompt blocks and windows apply (DECISIONS 27, 28)."""
