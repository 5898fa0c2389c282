"""The lock of a turn, held while its phases run, but for the time in which a tool of it runs."""

import asyncio
from contextlib import ExitStack

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.errors import StoreError

_POLL_S = 0.05
_ATTEMPTS = 600
"""Half a minute: the others hold the lock for a short change, and what a tool found in minutes is worth the wait."""


class TurnLock:
    """The lock of one turn in one run of its phases."""

    def __init__(self, key: TurnKey, turns: TurnStore) -> None:
        self._key, self._turns, self._held = key, turns, ExitStack()

    def acquire(self) -> None:
        """Take the lock once no tool of the turn runs. Raises StoreError, UnknownTurnError."""
        self._held.enter_context(self._turns.phase_lock(self._key))

    def release(self) -> None:
        self._held.close()

    async def retake(self) -> None:
        """Take the lock again, without blocking the event loop meanwhile. Raises StoreError, UnknownTurnError."""
        for _ in range(_ATTEMPTS):
            try:
                self._held.enter_context(self._turns.lock(self._key, wait_s=0))
                return
            except StoreError:
                await asyncio.sleep(_POLL_S)
        self._held.enter_context(self._turns.lock(self._key))
