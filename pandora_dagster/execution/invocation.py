"""Step 5 of 000 section 15: one attempt at a model, within its time. Knows the runtime port; knows nothing of answers."""

from collections.abc import Callable

from pandora_dagster.contracts.calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.ports import ModelRuntime
from pandora_dagster.contracts.words import InterventionType
from pandora_dagster.errors import (
    BadAnswerError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RateLimitedError,
    RuntimeUnreachableError,
)
from pandora_dagster.execution.faults import CallFault

PERSON = "person"
"""Who answered, in the records of a call whose answer was given by hand."""


def manual_answer(text: str) -> ModelAnswer:
    """An answer given by hand, as whoever judges it takes one."""
    return ModelAnswer(text, "stop", Usage(), PERSON, PERSON, 0.0)


async def attempt_call(runtime: ModelRuntime, pack: PromptPack, *, timeout_ms: int, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
    """One answer; raises ModelError. The runtime keeps the time, from when the call has its place at the server; a late
    answer is a ModelTimeoutError whether or not it could be interrupted."""
    answer = await runtime.complete(pack, timeout_s=timeout_ms / 1_000, on_words=on_words)
    if answer.latency_ms > timeout_ms:
        raise ModelTimeoutError(f"{pack.layer.value}: the answer took {answer.latency_ms:.0f} ms: expected at most {timeout_ms}")
    return answer


def fault_of(error: ModelError) -> CallFault:
    """What a failed attempt means for the call. The model is told only of an answer that was its own."""
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
