"""One server, kept up: started, waited for, started again when it dies, let sleep when nobody calls. Knows nothing of the others."""

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
    """How a server stands."""

    WAITS = "waits"
    """For another one on its GPU to be ready: the memory that is free is measured between starts."""
    STARTING = "starting"
    READY = "ready"
    SILENT = "silent"
    """It runs and does not answer."""
    ASLEEP = "asleep"
    RESTARTS = "restarts"
    GIVEN_UP = "given up"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class SupervisionTiming:
    """How patient a keeper is; seconds."""

    look_s: float = 3.0
    look_while_starting_s: float = 0.5
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    most_deaths: int = 5
    within_s: float = 600.0
    grace_s: float = 30.0
    silence_s: float = 120.0
    """Without an answer of /health: forty looks. SGLang itself needs up to 20 s to say under load that it is not well."""
    rewrite_s: float = 5.0
    """Seconds between two writes of the progress of a start."""


@dataclass(frozen=True, slots=True)
class SupervisorContext:
    """What a keeper works with. `turns`: a lock for each GPU of the service, held while a server starts on it."""

    folder: ServingFolder
    turns: tuple[asyncio.Lock, ...]
    command: Callable[[Service], tuple[str, ...]]
    """The whole command, made when it is needed: what is free on the GPU is known only then."""
    environment: Mapping[str, str]
    ending: asyncio.Event
    report: Callable[[str, ServerStatus], None]
    pace: SupervisionTiming


class ServerSupervisor:
    """Keeps `service` up until `care.ending` is set, or it is given up."""

    def __init__(self, service: Service, care: SupervisorContext) -> None:
        self._service, self._care = service, care
        self._deaths: deque[float] = deque()
        self._used = 0.0

    async def supervise(self) -> None:
        while not self._care.ending.is_set():
            if self._service.launch.cold and not await self._wait_for_call():
                break
            why = await self._run_once()
            if why is not None and not await self._back_off(why):
                return
        self._report(ServerState.STOPPED)

    async def _wait_for_call(self) -> bool:
        """Waits for a call that needs a cold server; False where the end comes first."""
        since = time.time()
        self._report(ServerState.ASLEEP, "starts at the first call")
        before = self._used or since - self._care.pace.look_s
        while self._care.folder.start_requested_at(self._service.name) <= before:
            if await self._ends_within(self._care.pace.look_while_starting_s):
                return False
        return True

    async def _back_off(self, why: str) -> bool:
        """Waits as long as its deaths ask for; False where there were too many."""
        pace, now = self._care.pace, time.monotonic()
        self._deaths.append(now)
        while now - self._deaths[0] > pace.within_s:
            self._deaths.popleft()
        if len(self._deaths) >= pace.most_deaths:
            last = "\n".join(self._care.folder.last_log_lines(self._service.name))
            self._report(ServerState.GIVEN_UP, f"{why}; {len(self._deaths)} times within {pace.within_s:g} s; its last words:\n{last}")
            return False
        pause = min(pace.longest_pause_s, pace.first_pause_s * 2 ** (len(self._deaths) - 1))
        self._report(ServerState.RESTARTS, f"{why}; again in {pause:g} s")
        await self._ends_within(pause)
        return True

    async def _run_once(self) -> str | None:
        """From start to end; why it died, None where it was meant to end."""
        async with AsyncExitStack() as held:
            if any(turn.locked() for turn in self._care.turns):
                self._report(ServerState.WAITS, "another server starts on its GPU")
            for turn in self._care.turns:
                await held.enter_async_context(turn)
            if self._care.ending.is_set():
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
                return why if why is not None or self._care.ending.is_set() else await self._watch(process)
            finally:
                await self._stop(process)

    async def _start(self) -> asyncio.subprocess.Process:
        care, name = self._care, self._service.name
        command = await asyncio.to_thread(care.command, self._service)
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", str(Path(process_guard.__file__))),
            *(str(care.folder.log(name)), str(_LOG_BYTES), str(care.folder.process(name)), str(care.pace.grace_s)),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=dict(care.environment),
            start_new_session=True,
        )

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Release the server and wait until none of its processes runs."""
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()
        await asyncio.to_thread(self._care.folder.end_leftover, self._service.name, self._care.pace.grace_s)  # of a leash that was killed

    async def _wait_until_ready(self, process: asyncio.subprocess.Process) -> str | None:
        began = time.monotonic()
        timeout = self._service.launch.start_s
        while time.monotonic() - began < timeout:
            self._report(ServerState.STARTING, f"{time.monotonic() - began:.0f} s")
            if await self._exits_within(process, self._care.pace.look_while_starting_s):
                return self._exit_reason(process)
            if await is_ready(self._service.server):
                self._report(ServerState.READY, f"started in {time.monotonic() - began:.0f} s")
                return None
        return f"was not ready after {timeout:g} s"

    async def _watch(self, process: asyncio.subprocess.Process) -> str | None:
        self._used = time.time()
        silent_since: float | None = None
        while not await self._exits_within(process, self._care.pace.look_s):
            if await is_ready(self._service.server):
                if silent_since is not None:
                    self._report(ServerState.READY, "answers again")
                silent_since = None
            elif silent_since is None:
                silent_since = time.monotonic()
                self._report(ServerState.SILENT, "its /health does not answer")
            elif time.monotonic() - silent_since >= self._care.pace.silence_s:
                return f"its /health did not answer for {self._care.pace.silence_s:g} s"
            if self._service.launch.cold and await self._idle():
                return None
        return self._exit_reason(process)

    def _exit_reason(self, process: asyncio.subprocess.Process) -> str | None:
        if self._care.ending.is_set():
            return None
        return f"ended with exit code {process.returncode}"

    async def _idle(self) -> bool:
        """Whether nobody needed it for `idle_s`; a server that does not report its load counts as busy."""
        if await active_requests(self._service.server) != 0:
            self._used = time.time()
        self._used = max(self._used, self._care.folder.start_requested_at(self._service.name))
        return time.time() - self._used > self._service.launch.idle_s

    async def _exits_within(self, process: asyncio.subprocess.Process, within_s: float) -> bool:
        """Whether the server or everything ends within this time."""
        waits: set[asyncio.Task[object]] = {asyncio.create_task(process.wait()), asyncio.create_task(self._care.ending.wait())}
        done, still = await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        for waiting in still:
            waiting.cancel()
        await asyncio.gather(*still, return_exceptions=True)
        return bool(done)

    async def _ends_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._care.ending.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self, state: ServerState, says: str = "") -> None:
        self._care.report(self._service.name, ServerStatus(state=state.value, says=says))


# All servers of a store, kept up together until the end is asked for. Knows which share a GPU; each one's care is its keeper's.

_REMEDY = "PANDORA_SGLANG_PYTHON must name the Python of an environment that has SGLang, the launch block a model it can load."

OnChange = Callable[[Mapping[str, ServerStatus]], None]


class ServingSupervisor:
    """Keeps `services` up. `command` makes each one's command when it starts; `on_change` receives the states of all.

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
        on_change: OnChange = lambda standings: None,
        pace: SupervisionTiming | None = None,
    ) -> None:
        self._services, self._folder = tuple(services), folder
        self._command, self._environ, self._on_change = command, environ, on_change
        self._gpus = gpus
        self._pace = pace or SupervisionTiming()
        self._written_at = 0.0
        self._standings = {service.name: ServerStatus(state=ServerState.WAITS) for service in services}

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; when it returns, nothing that it started runs.

        Raises StoreError where this store is served already, ConfigurationError where a port is taken or every server is given up.
        """
        with ExitStack() as held:
            held.callback(self._folder.lock().release)
            self._folder.end_orphans(self._pace.grace_s, on_orphan=self._found_orphan)
            taken = [service for service in self._services if is_port_taken(service.server)]
            if taken:
                faults = [f"{s.name}: port {s.server.port} of {s.server.base_url} is in use by something else" for s in taken]
                raise ConfigurationError("\n".join(faults), hint="End what listens there, or change base_url in the runtime file.")
            held.callback(self._folder.clear)
            asyncio.run(self._serve())
        if all(standing.state == ServerState.GIVEN_UP for standing in self._standings.values()):
            message = f"{', '.join(self._standings)}: given up: expected a server that stays up"
            raise ConfigurationError(message, hint=f"{_REMEDY} Whole logs: {self._folder.path}.")

    async def _serve(self) -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, ending.set)
        turns = {gpu: asyncio.Lock() for gpu in self._gpus}
        self._folder.write_statuses(self._standings)
        async with asyncio.TaskGroup() as group:
            for service in self._services:
                group.create_task(ServerSupervisor(service, self._supervisor_context(service, turns, ending)).supervise())

    def _supervisor_context(self, service: Service, turns: Mapping[int, asyncio.Lock], ending: asyncio.Event) -> SupervisorContext:
        return SupervisorContext(
            self._folder,
            tuple(turns[gpu] for gpu in sorted(service.gpus) if gpu in turns),
            self._command,
            environment(service, self._environ),
            ending,
            self._report,
            self._pace,
        )

    def _report(self, name: str, standing: ServerStatus) -> None:
        before = self._standings[name]
        if before == standing:
            return
        self._standings[name] = standing
        now = time.monotonic()
        if before.state != standing.state or now - self._written_at >= self._pace.rewrite_s:
            self._written_at = now
            with suppress(StoreError):  # a full disk ends no server
                self._folder.write_statuses(self._standings)
        self._on_change(dict(self._standings))

    def _found_orphan(self, name: str) -> None:
        if name in self._standings:
            self._standings[name] = ServerStatus(state=ServerState.WAITS, says="one of an earlier pandora serve is ended first")
            self._on_change(dict(self._standings))
