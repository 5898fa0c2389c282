"""Whether and when a call is tried again: the one place that decides it. Knows classes of faults, counts and times; waits for nothing.

| fault | how often | pause |
|---|---|---|
| an answer that failed a gate, a time-out | the recipe's `max_retries` | none: the model is asked again, with the error |
| 429 | the same | doubling |
| unreachable: refused, reset, 5xx | AWAY_RETRIES, beside them | doubling |
| either of them with `Retry-After` | the same | at least as long as the server asks |
| refused request, no free place, an endpoint whose circuit is open | never | |

All of it within the time that the recipe gives to a call and its retries: the last attempt gets what is left of it, and a pause after which
nothing would be left ends the call at once. Waiting for a place at the server is not part of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.recipe_schema import QualityGates
from pandora_dagster.errors import (
    BadAnswerError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RateLimitedError,
    RuntimeUnreachableError,
)
from pandora_dagster.execution.call_faults import CallFault

# Step 5 of 000 section 15: one attempt at a model, within its time.

BY_HAND = "person"
"""Runtime and model in the record of a call whose answer a user gave."""


def manual_answer(text: str) -> ModelAnswer:
    """An answer given by hand, in the form that its gates expect."""
    return ModelAnswer(text, "stop", Usage(), BY_HAND, BY_HAND, 0.0)


async def attempt_call(
    runtime: ModelRuntime, pack: PromptPack, *, timeout_ms: int, on_words: Callable[[str], None] | None = None
) -> ModelAnswer:
    """One answer; raises ModelError. The runtime keeps the time, from when the call has its place at the server; a late
    answer is a ModelTimeoutError whether or not it could be interrupted."""
    answer = await runtime.complete(pack, timeout_s=timeout_ms / 1_000, on_words=on_words)
    if answer.latency_ms > timeout_ms:
        raise ModelTimeoutError(f"{pack.layer.value}: the answer took {answer.latency_ms:.0f} ms: expected at most {timeout_ms}")
    return answer


def fault_of(error: ModelError) -> CallFault:
    """The fault that a failed attempt is for the call. Only a fault of its own answer is fed back to the model."""
    if isinstance(error, ModelTimeoutError):
        return CallFault(InterventionType.TIMEOUT, str(error), retryable=True, hint=error.hint)
    if isinstance(error, ModelRejectedError):
        return CallFault(InterventionType.CONFIG_ERROR, f"the endpoint refused the request: {error}", hint=error.hint)
    if isinstance(error, BadAnswerError):
        return CallFault(InterventionType.SCHEMA_VIOLATION, str(error), retryable=True, feedback=str(error), hint=error.hint)
    away = isinstance(error, RuntimeUnreachableError) and not isinstance(error, RateLimitedError)
    return CallFault(
        InterventionType.RUNTIME_UNREACHABLE,
        str(error),
        retryable=error.retryable,
        wait=True,
        wait_s=error.retry_after_s,
        away=away,
        hint=error.hint,
    )


UNREACHABLE_RETRIES = 4
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0


@dataclass(slots=True)
class RetryBudget:
    """What is left of one call's attempts, over all layers that it is tried on."""

    call_id: str
    gates: QualityGates
    answers: int = 0
    """Retries of the recipe's own."""
    away: int = 0
    """Retries because the endpoint was unreachable."""
    spent_s: float = 0.0
    """At servers and in pauses."""

    @property
    def deadline_s(self) -> float:
        """Seconds for the call as a whole."""
        return self.gates.timeout_ms / 1_000 * (self.gates.max_retries + 1)

    @property
    def attempt_ms(self) -> int:
        """Milliseconds for an attempt that begins now; 0 where no time is left for one."""
        return self._attempt_ms_after(0.0)

    @property
    def retries(self) -> int:
        return self.answers + self.away

    def pause_before_next(self, fault: CallFault) -> float | None:
        """Seconds to wait before the next attempt, which counts from now on; None where there is none."""
        used, allowed = (self.away, UNREACHABLE_RETRIES) if fault.away else (self.answers, self.gates.max_retries)
        pause = max(fault.wait_s, pause_s(self.call_id, self.retries + 1) if fault.wait else 0.0)
        if not fault.retryable or used >= allowed or not self._attempt_ms_after(pause):
            return None
        if fault.away:
            self.away += 1
        else:
            self.answers += 1
        self.spent_s += pause
        return pause

    def _attempt_ms_after(self, pause: float) -> int:
        left_ms = round((self.deadline_s - self.spent_s - pause) * 1_000)
        return max(0, min(self.gates.timeout_ms, left_ms))


def pause_s(call_id: str, retry: int) -> float:
    """Seconds before retry number `retry` (from 1): doubling, bounded, spread between calls by their ids."""
    spread = int.from_bytes(sha256(f"{call_id}:{retry}".encode()).digest()[:2]) / 0xFFFF
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (retry - 1)) * (0.5 + spread / 2)
