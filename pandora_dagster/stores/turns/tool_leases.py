"""Leases of tools that run without their turn's lock: a lock file for each, held by the process that waits for the result.

planned -> running            the intent is committed and the lease taken, both under the turn's lock, which is then released
running -> done               the lock is taken again, the turn is as it was left: the result goes into the next commit
running -> dropped            the turn changed or is gone: the result is written nowhere
running -> interrupted        the process died, or the deadline passed: the next run of the phase runs the tool again
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.object_storage import Lease, Locks
from pandora_dagster.contracts.turns import Manifest, ToolLease
from pandora_dagster.errors import StoreError
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.stores.disk.layout import Layout

_POLL_S = 0.05
_MAX_LEASES = 100
"""Leases of one turn at most. More than one is held only where a process was frozen beyond its tool's deadline."""


@dataclass(frozen=True, slots=True)
class ToolLeases:
    """The leases of one store. They are taken and asked about under the turn's lock."""

    layout: Layout
    locks: Locks
    clock: Clock

    @contextmanager
    def hold(self, key: TurnKey) -> Generator[ToolLease]:
        """Hold the first free lease of a turn. Raises StoreError."""
        with ExitStack() as held:
            number = next((n for n in range(_MAX_LEASES) if self._take(held, key, n)), None)
            if number is None:
                raise StoreError(f"turn {key}: {_MAX_LEASES} of its tools run: expected one", hint="end their processes")
            yield ToolLease(number, f"process {os.getpid()}")
            # Not where the block raised: the turn's lock may not be held, and another process may be taking this lease.
            with suppress(OSError):
                self._path(key, number).unlink(missing_ok=True)

    @contextmanager
    def wait_for_end(
        self, lock: Callable[[], AbstractContextManager[object]], manifest: Callable[[], Manifest], *, wait_s: float
    ) -> Generator[None]:
        """Hold a turn's `lock` once no tool of the turn runs; raises StoreError where one runs for longer than `wait_s`."""
        deadline = time.monotonic() + wait_s
        while True:
            with lock():
                present = manifest()
                if not self.is_running(present):
                    yield
                    return
            if time.monotonic() > deadline:
                run = present.tool_run
                what = f"its tool {run.tool} runs in {run.holder} until {run.until}" if run else "its tool runs"
                raise StoreError(
                    f"turn {present.key}: {what}: expected it to have ended", hint="wait until it is done, or end that process"
                )
            time.sleep(_POLL_S)

    def is_running(self, manifest: Manifest) -> bool:
        """Whether the tool that a turn has begun runs: its holder lives, and its deadline has not passed."""
        run = manifest.tool_run
        if run is None or format_timestamp(self.clock().replace(microsecond=0)) > run.until:
            return False
        with ExitStack() as held:
            return not self._take(held, manifest.key, run.lease)

    def _take(self, held: ExitStack, key: TurnKey, number: int) -> bool:
        """Take a lease; False where another holds it. Raises StoreError where the disk refuses."""
        try:
            held.enter_context(self._lease(key, number))
        except StoreError as error:
            if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, TimeoutError):
                raise
            return False
        return True

    def _lease(self, key: TurnKey, number: int) -> AbstractContextManager[Lease]:
        name = self._path(key, number).relative_to(self.layout.root).as_posix()
        return self.locks.lease(name, what=f"a tool of turn {key}", wait_s=0)

    def _path(self, key: TurnKey, number: int) -> Path:
        return self.layout.tool_runs(key.user) / f"{key.turn_id}.{number}.lock"
