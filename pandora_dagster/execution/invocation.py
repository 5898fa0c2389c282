"""Step 5 of 000 section 15: one attempt at a model, within its time. Knows the runtime port; knows nothing of answers."""

import asyncio
from datetime import timedelta
from hashlib import sha256

from pandora_dagster.contracts.calls import ModelAnswer, PromptPack
from pandora_dagster.contracts.ports import Clock, ModelRuntime
from pandora_dagster.contracts.words import InterventionType
from pandora_dagster.errors import ModelError, ModelRejectedError, ModelTimeoutError
from pandora_dagster.execution.faults import Fault

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0


async def invoke(runtime: ModelRuntime, pack: PromptPack, *, timeout_ms: int, clock: Clock) -> ModelAnswer:
    """One answer; raises ModelError. A late answer is a ModelTimeoutError, whether or not the runtime could be interrupted."""
    started, limit = clock(), timedelta(milliseconds=timeout_ms)
    try:
        async with asyncio.timeout(limit.total_seconds()):
            answer = await runtime.complete(pack, timeout_s=limit.total_seconds())
    except TimeoutError as error:
        raise ModelTimeoutError(f"{pack.layer.value}: no answer within {timeout_ms} ms") from error
    if clock() - started > limit:
        raise ModelTimeoutError(f"{pack.layer.value}: the answer came after more than {timeout_ms} ms")
    return answer


def fault_of(error: ModelError) -> Fault:
    """What a failed attempt means for the call. The model did not see it, so it is told nothing."""
    if isinstance(error, ModelTimeoutError):
        return Fault(InterventionType.TIMEOUT, str(error), retryable=True, hint=error.hint)
    if isinstance(error, ModelRejectedError):
        return Fault(InterventionType.CONFIG_ERROR, f"the endpoint refused the request: {error}", hint=error.hint)
    return Fault(InterventionType.RUNTIME_UNREACHABLE, str(error), retryable=error.retryable, wait=True, hint=error.hint)


def pause_s(call_id: str, retry: int) -> float:
    """Seconds before retry number `retry` (from 1): doubling, bounded, spread between calls by their ids."""
    spread = int.from_bytes(sha256(f"{call_id}:{retry}".encode()).digest()[:2]) / 0xFFFF
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (retry - 1)) * (0.5 + spread / 2)
