"""Supervision of model servers: start, health checks, restart after a crash, stop of a cold server that is idle.

A `ServerSupervisor` runs one server behind a process guard; the `ServingSupervisor` runs one of these for each server of a store, and
writes their states to the serving folder.
"""

import asyncio
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pandora_dagster.errors import ConfigurationError, StoreError
from pandora_dagster.runtime.serving import process_guard
from pandora_dagster.runtime.serving.launch_command import Service, server_environment
from pandora_dagster.runtime.serving.server_health import active_requests, is_port_taken, is_ready
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder

_MAX_LOG_BYTES = 16 * 1024 * 1024


class ServerState(StrEnum):
    """The state of a server."""

    WAITS = "waits"
    """It waits until another server on its GPU is ready: free memory is measured between starts."""
    STARTING = "starting"
    READY = "ready"
    SILENT = "silent"
    """It runs but does not answer."""
    ASLEEP = "asleep"
    """A cold server that no call needs."""
    RESTARTS = "restarts"
    GIVEN_UP = "given up"
    """It crashed too often and is not started again."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class SupervisionTiming:
    """Intervals and limits of supervision; `*_s` in seconds."""

    check_interval_s: float = 3.0
    start_check_interval_s: float = 0.5
    first_restart_delay_s: float = 1.0
    max_restart_delay_s: float = 60.0
    max_crashes: int = 5
    """After so many crashes within `crash_window_s` the server is not started again."""
    crash_window_s: float = 600.0
    grace_s: float = 30.0
    """Time between SIGTERM and SIGKILL when a server is ended."""
    max_silence_s: float = 120.0
    """Time without an answer of /health before a restart; under load SGLang needs up to 20 s to report itself unhealthy."""
    status_interval_s: float = 5.0
    """Time between two writes of `serving.json` within one state."""


class ServerSupervisor:
    """Keeps `service` running until `stop_requested` is set, or until it has crashed too often.

    `gpu_locks`: one for each GPU of the service, held while a server starts on it.
    """

    def __init__(
        self, service: Service, serving: "ServingSupervisor", gpu_locks: Sequence[asyncio.Lock], stop_requested: asyncio.Event
    ) -> None:
        self._service, self._serving, self._gpu_locks, self._stop_requested = service, serving, gpu_locks, stop_requested
        self._folder, self._timing = serving.folder, serving.timing
        self._crash_times: deque[float] = deque()
        self._last_used_at = 0.0

    async def supervise(self) -> None:
        """Run the server again and again until the stop is requested; a cold server only after a call that needs it."""
        while not self._stop_requested.is_set():
            if self._service.launch.cold and not await self._wait_for_call():
                break
            crash_reason = await self._run_once()
            if crash_reason is not None and not await self._back_off(crash_reason):
                return
        self._report(ServerState.STOPPED)

    async def _wait_for_call(self) -> bool:
        """Wait for a call that needs a cold server; False if the stop is requested first."""
        waits_since = time.time()
        self._report(ServerState.ASLEEP, "starts at the first call")
        last_served = self._last_used_at or waits_since - self._timing.check_interval_s
        while self._folder.start_requested_at(self._service.name) <= last_served:
            if await self._stops_within(self._timing.start_check_interval_s):
                return False
        return True

    async def _back_off(self, crash_reason: str) -> bool:
        """Wait before a restart, longer after each crash; False after too many crashes."""
        timing, now = self._timing, time.monotonic()
        self._crash_times.append(now)
        while now - self._crash_times[0] > timing.crash_window_s:
            self._crash_times.popleft()
        if len(self._crash_times) >= timing.max_crashes:
            log_tail = "\n".join(self._folder.last_log_lines(self._service.name))
            self._report(
                ServerState.GIVEN_UP,
                f"{crash_reason}; {len(self._crash_times)} times within {timing.crash_window_s:g} s; the end of its log:\n{log_tail}",
            )
            return False
        pause = min(timing.max_restart_delay_s, timing.first_restart_delay_s * 2 ** (len(self._crash_times) - 1))
        self._report(ServerState.RESTARTS, f"{crash_reason}; again in {pause:g} s")
        await self._stops_within(pause)
        return True

    async def _run_once(self) -> str | None:
        """Run the server once; return the reason of a crash, None for an intended end."""
        async with AsyncExitStack() as held_locks:
            if any(gpu_lock.locked() for gpu_lock in self._gpu_locks):
                self._report(ServerState.WAITS, "another server starts on its GPU")
            for gpu_lock in self._gpu_locks:
                await held_locks.enter_async_context(gpu_lock)
            if self._stop_requested.is_set():
                return None
            if await asyncio.to_thread(is_port_taken, self._service.server):
                return f"port {self._service.server.port} is in use by something else"
            try:
                process = await self._start()
            except OSError as error:
                return f"could not be started: {error.strerror or error}"
            try:
                crash_reason = await self._wait_until_ready(process)
                await held_locks.aclose()
                return crash_reason if crash_reason is not None or self._stop_requested.is_set() else await self._watch_until_exit(process)
            finally:
                await self._stop(process)

    async def _start(self) -> asyncio.subprocess.Process:
        """Start the server behind a process guard, whose standard input is the pipe that keeps it alive."""
        folder, name = self._folder, self._service.name
        command = await asyncio.to_thread(self._serving.command, self._service)
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", str(Path(process_guard.__file__))),
            *(str(folder.log(name)), str(_MAX_LOG_BYTES), str(folder.process(name)), str(self._timing.grace_s)),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=server_environment(self._service, self._serving.environ),
            start_new_session=True,
        )

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Close the pipe to the guard, which ends the server, and wait until none of its processes runs."""
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()
        await asyncio.to_thread(self._folder.end_leftover, self._service.name, self._timing.grace_s)  # where the guard was killed

    async def _wait_until_ready(self, process: asyncio.subprocess.Process) -> str | None:
        """Wait until /health answers; return why the start failed, None when the server is ready or the stop was requested."""
        started_at = time.monotonic()
        timeout = self._service.launch.start_s
        while time.monotonic() - started_at < timeout:
            self._report(ServerState.STARTING, f"{time.monotonic() - started_at:.0f} s")
            if await self._exits_within(process, self._timing.start_check_interval_s):
                return self._exit_reason(process)
            if await is_ready(self._service.server):
                self._report(ServerState.READY, f"started in {time.monotonic() - started_at:.0f} s")
                return None
        return f"was not ready after {timeout:g} s"

    async def _watch_until_exit(self, process: asyncio.subprocess.Process) -> str | None:
        """Check a ready server until it exits, is silent too long, or is cold and idle; return the reason of a crash."""
        self._last_used_at = time.time()
        silent_since: float | None = None
        while not await self._exits_within(process, self._timing.check_interval_s):
            if await is_ready(self._service.server):
                if silent_since is not None:
                    self._report(ServerState.READY, "answers again")
                silent_since = None
            elif silent_since is None:
                silent_since = time.monotonic()
                self._report(ServerState.SILENT, "its /health does not answer")
            elif time.monotonic() - silent_since >= self._timing.max_silence_s:
                return f"its /health did not answer for {self._timing.max_silence_s:g} s"
            if self._service.launch.cold and await self._is_idle():
                return None
        return self._exit_reason(process)

    def _exit_reason(self, process: asyncio.subprocess.Process) -> str | None:
        if self._stop_requested.is_set():
            return None
        return f"ended with exit code {process.returncode}"

    async def _is_idle(self) -> bool:
        """Whether no call needed the server for `idle_s`; one that does not report its load counts as busy."""
        if await active_requests(self._service.server) != 0:
            self._last_used_at = time.time()
        self._last_used_at = max(self._last_used_at, self._folder.start_requested_at(self._service.name))
        return time.time() - self._last_used_at > self._service.launch.idle_s

    async def _exits_within(self, process: asyncio.subprocess.Process, timeout_s: float) -> bool:
        """Whether the server exits, or the stop is requested, within this time."""
        waiting: set[asyncio.Task[object]] = {asyncio.create_task(process.wait()), asyncio.create_task(self._stop_requested.wait())}
        finished, pending = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return bool(finished)

    async def _stops_within(self, seconds: float) -> bool:
        """Whether the stop is requested within this time."""
        try:
            await asyncio.wait_for(self._stop_requested.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self, state: ServerState, details: str = "") -> None:
        self._serving.report(self._service.name, ServerStatus(state=state.value, says=details))


# All servers of a store. Servers that share a GPU start one after the other.

_GIVEN_UP_HINT = "PANDORA_SGLANG_PYTHON must name the Python of an environment that has SGLang, the launch block a model it can load."

StatusListener = Callable[[Mapping[str, ServerStatus]], None]


class ServingSupervisor:
    """Keeps `services` running; `on_change` receives the statuses of all servers at each change.

    `command` returns the command of a service when it starts: only then the free memory of its GPU is known. On each of `gpus` one server
    starts at a time.
    """

    def __init__(
        self,
        services: Sequence[Service],
        folder: ServingFolder,
        *,
        command: Callable[[Service], tuple[str, ...]],
        environ: Mapping[str, str],
        gpus: Collection[int] = (),
        on_change: StatusListener = lambda statuses: None,
        timing: SupervisionTiming | None = None,
    ) -> None:
        self._services, self._gpus, self._on_change = tuple(services), gpus, on_change
        self.folder, self.command, self.environ, self.timing = folder, command, environ, timing or SupervisionTiming()
        self._written_at = 0.0
        self._statuses = {service.name: ServerStatus(state=ServerState.WAITS) for service in services}

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; when it returns, no process that it started runs.

        Raises StoreError where this store is served already, ConfigurationError where a port is taken or every server is given up.
        """
        with ExitStack() as cleanup:
            cleanup.callback(self.folder.lock().release)
            self.folder.end_orphans(self.timing.grace_s, on_orphan=self._report_orphan)
            blocked = [service for service in self._services if is_port_taken(service.server)]
            if blocked:
                faults = [f"{s.name}: port {s.server.port} of {s.server.base_url} is in use by something else" for s in blocked]
                raise ConfigurationError("\n".join(faults), hint="End what listens there, or change base_url in the runtime file.")
            cleanup.callback(self.folder.clear)
            asyncio.run(self._serve())
        if all(status.state == ServerState.GIVEN_UP for status in self._statuses.values()):
            message = f"{', '.join(self._statuses)}: given up: expected a server that stays up"
            raise ConfigurationError(message, hint=f"{_GIVEN_UP_HINT} Whole logs: {self.folder.path}.")

    async def _serve(self) -> None:
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(signal_number, stop_requested.set)
        gpu_locks = {gpu: asyncio.Lock() for gpu in self._gpus}
        self.folder.write_statuses(self._statuses)
        async with asyncio.TaskGroup() as group:
            for service in self._services:
                service_locks = [gpu_locks[gpu] for gpu in sorted(service.gpus) if gpu in gpu_locks]
                group.create_task(ServerSupervisor(service, self, service_locks, stop_requested).supervise())

    def report(self, name: str, status: ServerStatus) -> None:
        """Record the status of one server; within one state it is written to disk every `status_interval_s` at most."""
        previous = self._statuses[name]
        if previous == status:
            return
        self._statuses[name] = status
        now = time.monotonic()
        if previous.state != status.state or now - self._written_at >= self.timing.status_interval_s:
            self._written_at = now
            with suppress(StoreError):  # a full disk must not end a server
                self.folder.write_statuses(self._statuses)
        self._on_change(dict(self._statuses))

    def _report_orphan(self, name: str) -> None:
        if name in self._statuses:
            self._statuses[name] = ServerStatus(
                state=ServerState.WAITS, says="a server that an earlier pandora serve left is stopped first"
            )
            self._on_change(dict(self._statuses))
