"""Supervision of model servers: start, health, restart after a crash, stop of a cold server that is idle."""

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
from pandora_dagster.runtime.serving.launch_command import Service, environment
from pandora_dagster.runtime.serving.server_health import active_requests, is_port_taken, is_ready
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder

_LOG_BYTES = 16 * 1024 * 1024


class ServerState(StrEnum):
    """The state of a server."""

    WAITS = "waits"
    """It waits until another server on its GPU is ready: free memory is measured between starts."""
    STARTING = "starting"
    READY = "ready"
    SILENT = "silent"
    """It runs but does not answer."""
    ASLEEP = "asleep"
    RESTARTS = "restarts"
    GIVEN_UP = "given up"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class SupervisionTiming:
    """Intervals and limits of supervision, in seconds."""

    look_s: float = 3.0
    look_while_starting_s: float = 0.5
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    most_deaths: int = 5
    within_s: float = 600.0
    grace_s: float = 30.0
    silence_s: float = 120.0
    """Time without an answer of /health before a restart: forty checks. Under load SGLang needs up to 20 s to report itself unhealthy."""
    rewrite_s: float = 5.0
    """Seconds between two writes of the progress of a start."""


class ServerSupervisor:
    """Keeps `service` running until `ending` is set, or it has failed too often.

    `gpu_locks`: one for each GPU of the service, held while a server starts on it.
    """

    def __init__(self, service: Service, serving: "ServingSupervisor", gpu_locks: Sequence[asyncio.Lock], ending: asyncio.Event) -> None:
        self._service, self._serving, self._gpu_locks, self._ending = service, serving, gpu_locks, ending
        self._folder, self._pace = serving.folder, serving.pace
        self._deaths: deque[float] = deque()
        self._used = 0.0

    async def supervise(self) -> None:
        while not self._ending.is_set():
            if self._service.launch.cold and not await self._wait_for_call():
                break
            why = await self._run_once()
            if why is not None and not await self._back_off(why):
                return
        self._report(ServerState.STOPPED)

    async def _wait_for_call(self) -> bool:
        """Wait for a call that needs a cold server; False if the end comes first."""
        since = time.time()
        self._report(ServerState.ASLEEP, "starts at the first call")
        before = self._used or since - self._pace.look_s
        while self._folder.start_requested_at(self._service.name) <= before:
            if await self._ends_within(self._pace.look_while_starting_s):
                return False
        return True

    async def _back_off(self, why: str) -> bool:
        """Wait before a restart, longer after each crash; False after too many crashes."""
        pace, now = self._pace, time.monotonic()
        self._deaths.append(now)
        while now - self._deaths[0] > pace.within_s:
            self._deaths.popleft()
        if len(self._deaths) >= pace.most_deaths:
            last = "\n".join(self._folder.last_log_lines(self._service.name))
            self._report(ServerState.GIVEN_UP, f"{why}; {len(self._deaths)} times within {pace.within_s:g} s; the end of its log:\n{last}")
            return False
        pause = min(pace.longest_pause_s, pace.first_pause_s * 2 ** (len(self._deaths) - 1))
        self._report(ServerState.RESTARTS, f"{why}; again in {pause:g} s")
        await self._ends_within(pause)
        return True

    async def _run_once(self) -> str | None:
        """Run the server once; returns the reason of a crash, None for an intended end."""
        async with AsyncExitStack() as held:
            if any(gpu_lock.locked() for gpu_lock in self._gpu_locks):
                self._report(ServerState.WAITS, "another server starts on its GPU")
            for gpu_lock in self._gpu_locks:
                await held.enter_async_context(gpu_lock)
            if self._ending.is_set():
                return None
            if await asyncio.to_thread(is_port_taken, self._service.server):
                return f"port {self._service.server.port} is in use by something else"
            try:
                process = await self._start()
            except OSError as fault:
                return f"could not be started: {fault.strerror or fault}"
            try:
                why = await self._wait_until_ready(process)
                await held.aclose()
                return why if why is not None or self._ending.is_set() else await self._watch(process)
            finally:
                await self._stop(process)

    async def _start(self) -> asyncio.subprocess.Process:
        folder, name = self._folder, self._service.name
        command = await asyncio.to_thread(self._serving.command, self._service)
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", str(Path(process_guard.__file__))),
            *(str(folder.log(name)), str(_LOG_BYTES), str(folder.process(name)), str(self._pace.grace_s)),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=environment(self._service, self._serving.environ),
            start_new_session=True,
        )

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Release the server and wait until none of its processes runs."""
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()
        await asyncio.to_thread(self._folder.end_leftover, self._service.name, self._pace.grace_s)  # after a guard that was killed

    async def _wait_until_ready(self, process: asyncio.subprocess.Process) -> str | None:
        began = time.monotonic()
        timeout = self._service.launch.start_s
        while time.monotonic() - began < timeout:
            self._report(ServerState.STARTING, f"{time.monotonic() - began:.0f} s")
            if await self._exits_within(process, self._pace.look_while_starting_s):
                return self._exit_reason(process)
            if await is_ready(self._service.server):
                self._report(ServerState.READY, f"started in {time.monotonic() - began:.0f} s")
                return None
        return f"was not ready after {timeout:g} s"

    async def _watch(self, process: asyncio.subprocess.Process) -> str | None:
        self._used = time.time()
        silent_since: float | None = None
        while not await self._exits_within(process, self._pace.look_s):
            if await is_ready(self._service.server):
                if silent_since is not None:
                    self._report(ServerState.READY, "answers again")
                silent_since = None
            elif silent_since is None:
                silent_since = time.monotonic()
                self._report(ServerState.SILENT, "its /health does not answer")
            elif time.monotonic() - silent_since >= self._pace.silence_s:
                return f"its /health did not answer for {self._pace.silence_s:g} s"
            if self._service.launch.cold and await self._idle():
                return None
        return self._exit_reason(process)

    def _exit_reason(self, process: asyncio.subprocess.Process) -> str | None:
        if self._ending.is_set():
            return None
        return f"ended with exit code {process.returncode}"

    async def _idle(self) -> bool:
        """Whether no call needed it for `idle_s`; a server that does not report its load counts as busy."""
        if await active_requests(self._service.server) != 0:
            self._used = time.time()
        self._used = max(self._used, self._folder.start_requested_at(self._service.name))
        return time.time() - self._used > self._service.launch.idle_s

    async def _exits_within(self, process: asyncio.subprocess.Process, within_s: float) -> bool:
        """Whether the server or the whole supervision ends within this time."""
        waits: set[asyncio.Task[object]] = {asyncio.create_task(process.wait()), asyncio.create_task(self._ending.wait())}
        done, still = await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        for waiting in still:
            waiting.cancel()
        await asyncio.gather(*still, return_exceptions=True)
        return bool(done)

    async def _ends_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self, state: ServerState, says: str = "") -> None:
        self._serving.report(self._service.name, ServerStatus(state=state.value, says=says))


# All servers of a store until the end is requested. Servers that share a GPU start one after the other.

_REMEDY = "PANDORA_SGLANG_PYTHON must name the Python of an environment that has SGLang, the launch block a model it can load."

OnChange = Callable[[Mapping[str, ServerStatus]], None]


class ServingSupervisor:
    """Keeps `services` running; `on_change` receives the states of all.

    `command` makes each one's command when it starts, since the free memory of the GPU is known only then.

    On each of `gpus` one server starts at a time.
    """

    def __init__(
        self,
        services: Sequence[Service],
        folder: ServingFolder,
        *,
        command: Callable[[Service], tuple[str, ...]],
        environ: Mapping[str, str],
        gpus: Collection[int] = (),
        on_change: OnChange = lambda statuses: None,
        pace: SupervisionTiming | None = None,
    ) -> None:
        self._services, self._gpus, self._on_change = tuple(services), gpus, on_change
        self.folder, self.command, self.environ, self.pace = folder, command, environ, pace or SupervisionTiming()
        self._written_at = 0.0
        self._statuses = {service.name: ServerStatus(state=ServerState.WAITS) for service in services}

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; when it returns, no process that it started runs.

        Raises StoreError where this store is served already, ConfigurationError where a port is taken or every server is given up.
        """
        with ExitStack() as held:
            held.callback(self.folder.lock().release)
            self.folder.end_orphans(self.pace.grace_s, on_orphan=self._found_orphan)
            taken = [service for service in self._services if is_port_taken(service.server)]
            if taken:
                faults = [f"{s.name}: port {s.server.port} of {s.server.base_url} is in use by something else" for s in taken]
                raise ConfigurationError("\n".join(faults), hint="End what listens there, or change base_url in the runtime file.")
            held.callback(self.folder.clear)
            asyncio.run(self._serve())
        if all(status.state == ServerState.GIVEN_UP for status in self._statuses.values()):
            message = f"{', '.join(self._statuses)}: given up: expected a server that stays up"
            raise ConfigurationError(message, hint=f"{_REMEDY} Whole logs: {self.folder.path}.")

    async def _serve(self) -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, ending.set)
        gpu_locks = {gpu: asyncio.Lock() for gpu in self._gpus}
        self.folder.write_statuses(self._statuses)
        async with asyncio.TaskGroup() as group:
            for service in self._services:
                of_service = [gpu_locks[gpu] for gpu in sorted(service.gpus) if gpu in gpu_locks]
                group.create_task(ServerSupervisor(service, self, of_service, ending).supervise())

    def report(self, name: str, status: ServerStatus) -> None:
        """Take in the status of one server; progress within a state is written now and then."""
        before = self._statuses[name]
        if before == status:
            return
        self._statuses[name] = status
        now = time.monotonic()
        if before.state != status.state or now - self._written_at >= self.pace.rewrite_s:
            self._written_at = now
            with suppress(StoreError):  # a full disk ends no server
                self.folder.write_statuses(self._statuses)
        self._on_change(dict(self._statuses))

    def _found_orphan(self, name: str) -> None:
        if name in self._statuses:
            self._statuses[name] = ServerStatus(
                state=ServerState.WAITS, says="a server that an earlier pandora serve left is stopped first"
            )
            self._on_change(dict(self._statuses))
