"""Sums over call records: by layer, recipe, day and the like, and over all compressions."""

from dataclasses import dataclass
from typing import Literal

from pandora_dagster.contracts.model_calls import token_alarm

SumBy = Literal["layer", "recipe", "day", "phase", "model", "user", "turn"]


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Sums over calls. `used_tokens`, `output_tokens` and `cached_tokens` are the servers' counts over all attempts, or the planned numbers
    where a server did not count; other tokens are planned numbers. `latency_ms` includes `queue_ms`."""

    calls: int
    failed: int
    prompt_tokens: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    retries: int
    latency_ms: float
    used_tokens: int = 0
    cached_tokens: int = 0
    queue_ms: float = 0.0
    cost: float = 0.0

    @property
    def alarm(self) -> str:
        """A warning where the calls are those of one turn and used more tokens than expected; else ""."""
        return token_alarm(self.used_tokens)


@dataclass(frozen=True, slots=True)
class CompressionTotals:
    """The metrics of 000 section 27 over all stored records: the histograms by their number, sum and largest value."""

    invocations: int = 0
    halted: int = 0
    tokens_saved: int = 0
    most_tokens_saved: int = 0
    latency_ms: float = 0.0
    longest_latency_ms: float = 0.0
    overflow_warnings: int = 0
