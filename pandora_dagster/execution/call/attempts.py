"""Attempts of a call: one attempt at a model, and the retry policy, which alone decides whether and when a call is tried again.

| fault | how often | pause |
|---|---|---|
| an answer that failed a gate | the recipe's `max_retries` | none: the model is asked again, with the error |
| a time-out | the same | none |
| 429 | the same | doubling |
| unreachable: refused, reset, 5xx | UNREACHABLE_RETRIES, counted separately | doubling |
| either of them with `Retry-After` | the same | at least as long as the server asks |
| refused request, no free slot, an endpoint whose circuit is open | never | |

The deadline of a call is `timeout_ms * (max_retries + 1)`: the last attempt gets the remaining time, and a pause that would exceed the
deadline ends the call at once. Waiting for a slot at the server does not count.
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

BY_HAND = "person"
"""Runtime and model in the record of a call that a user answered."""


def manual_answer(text: str) -> ModelAnswer:
    """An answer that a user gave, in the form that the gates expect."""
    return ModelAnswer(text, "stop", Usage(), BY_HAND, BY_HAND, 0.0)


async def attempt_call(
    runtime: ModelRuntime, pack: PromptPack, *, timeout_ms: int, on_words: Callable[[str], None] | None = None
) -> ModelAnswer:
    """One answer; raises ModelError.

    The runtime measures the time from when the call has its slot at the server. An answer that comes late although it should have been
    interrupted raises ModelTimeoutError too.
    """
    answer = await runtime.complete(pack, timeout_s=timeout_ms / 1_000, on_words=on_words)
    if answer.latency_ms > timeout_ms:
        raise ModelTimeoutError(f"{pack.layer.value}: the answer took {answer.latency_ms:.0f} ms: expected at most {timeout_ms}")
    return answer


def fault_of(error: ModelError) -> CallFault:
    """The fault of a failed attempt; only faults of the answer itself have feedback for the model."""
    if isinstance(error, ModelTimeoutError):
        return CallFault(InterventionType.TIMEOUT, str(error), retryable=True, hint=error.hint)
    if isinstance(error, ModelRejectedError):
        return CallFault(InterventionType.CONFIG_ERROR, f"the endpoint refused the request: {error}", hint=error.hint)
    if isinstance(error, BadAnswerError):
        return CallFault(InterventionType.SCHEMA_VIOLATION, str(error), retryable=True, feedback=str(error), hint=error.hint)
    is_unreachable = isinstance(error, RuntimeUnreachableError) and not isinstance(error, RateLimitedError)
    return CallFault(
        InterventionType.RUNTIME_UNREACHABLE,
        str(error),
        retryable=error.retryable,
        needs_pause=True,
        requested_pause_s=error.retry_after_s,
        is_unreachable=is_unreachable,
        hint=error.hint,
    )


UNREACHABLE_RETRIES = 4
FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0


@dataclass(slots=True)
class RetryBudget:
    """The remaining retries and time of one call, over all layers that it is tried on."""

    call_id: str
    gates: QualityGates
    answer_retries: int = 0
    """Retries that count against the recipe's `max_retries`."""
    unreachable_retries: int = 0
    """Retries because the endpoint was unreachable."""
    spent_s: float = 0.0
    """Time at servers and in pauses."""
    timeout_factor: float = 1.0
    """By how much longer than its recipe's `timeout_ms` an attempt may take."""

    @property
    def timeout_ms(self) -> int:
        """Time for one attempt."""
        return round(self.gates.timeout_ms * self.timeout_factor)

    @property
    def deadline_s(self) -> float:
        """Time for the call as a whole."""
        return self.timeout_ms / 1_000 * (self.gates.max_retries + 1)

    @property
    def attempt_ms(self) -> int:
        """Time for an attempt that begins now; 0 where none is left."""
        return self._attempt_ms_after(0.0)

    @property
    def retries(self) -> int:
        return self.answer_retries + self.unreachable_retries

    def pause_before_next(self, fault: CallFault) -> float | None:
        """Seconds to wait before the next attempt, which is counted here; None where there is no next attempt."""
        used, allowed = (
            (self.unreachable_retries, UNREACHABLE_RETRIES) if fault.is_unreachable else (self.answer_retries, self.gates.max_retries)
        )
        pause = max(fault.requested_pause_s, pause_s(self.call_id, self.retries + 1) if fault.needs_pause else 0.0)
        if not fault.retryable or used >= allowed or not self._attempt_ms_after(pause):
            return None
        if fault.is_unreachable:
            self.unreachable_retries += 1
        else:
            self.answer_retries += 1
        self.spent_s += pause
        return pause

    def _attempt_ms_after(self, pause: float) -> int:
        remaining_ms = round((self.deadline_s - self.spent_s - pause) * 1_000)
        return max(0, min(self.timeout_ms, remaining_ms))


def pause_s(call_id: str, retry: int) -> float:
    """Seconds before retry number `retry` (from 1): doubling, bounded, and varied by the id of the call, so that calls do not coincide."""
    spread = int.from_bytes(sha256(f"{call_id}:{retry}".encode()).digest()[:2]) / 0xFFFF
    return min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** (retry - 1)) * (0.5 + spread / 2)
