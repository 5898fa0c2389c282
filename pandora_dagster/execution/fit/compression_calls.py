"""The model calls of one compression: concurrent, bounded in number, and stopped when the model is down."""

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.model_calls import CallRequest, CallResult
from pandora_dagster.execution.call_faults import CallFault, CallFaultError

MAX_CALLS = 48
"""A text of more pieces is compressed without a model."""
MAX_CONCURRENT_CALLS = 4
FRAME_TOKENS = 60
"""Tokens of the frames around document, query and variables."""
_RUNTIME_DOWN = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.TIMEOUT, InterventionType.CONFIG_ERROR})
"""Faults that the next piece would meet too: the compression stops, and its caller halts."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PieceTexts:
    """A text joined from its pieces, and the numbers of pieces that the model and the structural selection shortened."""

    text: str
    by_model: int
    by_structure: int
    unchecked: tuple[str, ...] = ()
    """Rewritten statements whose meaning was not judged."""


class AttemptExecutor(Protocol):
    """The executor as compressions use it: a failed call is returned as a fault."""

    async def attempt(self, request: CallRequest) -> CallResult | CallFault: ...


class CompressionCalls:
    """The calls of one compression. `deferred`: why the rate limit of the session deferred a call; no call is made after that."""

    def __init__(self, executor: AttemptExecutor) -> None:
        self._executor = executor
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
        self._down_fault: CallFault | None = None
        self.deferred = ""

    async def ask(self, request: CallRequest) -> CallResult | None:
        """The answer of one call; None after a fault of this call alone. Raises CallFaultError where the model is down."""
        async with self._slots:
            if self.deferred:
                return None
            outcome = self._down_fault or await self._executor.attempt(request)
            if not isinstance(outcome, CallFault):
                return outcome
            if outcome.deferred:
                self.deferred = self.deferred or outcome.message
            elif outcome.type in _RUNTIME_DOWN:
                self._down_fault = outcome
                raise CallFaultError(outcome)
        return None


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results in order; the first error cancels the others and is raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
