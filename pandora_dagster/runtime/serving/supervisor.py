"""All servers of a store, kept up together until the end is asked for. Knows which share a GPU; each one's care is its keeper's."""

import asyncio
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress

from pandora_dagster.errors import ConfigurationError, StoreError
from pandora_dagster.runtime.serving.asking import is_port_taken
from pandora_dagster.runtime.serving.folder import ServingFolder, ServerStatus
from pandora_dagster.runtime.serving.keeper import SupervisorContext, ServerSupervisor, SupervisionTiming, ServerState
from pandora_dagster.runtime.serving.launch import Service, environment

_REMEDY = "PANDORA_SGLANG_PYTHON must name the Python of an environment that has SGLang, the launch block a model it can load."

OnChange = Callable[[Mapping[str, ServerStatus]], None]


class ServingSupervisor:
    """Keeps `services` up. `command` makes each one's command when it starts; `on_change` is told how all stand.

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
        self._told_at = 0.0
        self._standings = {service.name: ServerStatus(state=ServerState.WAITS) for service in services}

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; when it returns, nothing that it started runs.

        Raises StoreError where this store is served already, ConfigurationError where a port is taken or every server is given up.
        """
        with ExitStack() as held:
            held.callback(self._folder.lock().release)
            self._folder.end_orphans(self._pace.grace_s, tell=self._found_orphan)
            taken = [service for service in self._services if is_port_taken(service.server)]
            if taken:
                told = [f"{s.name}: port {s.server.port} of {s.server.base_url} is in use by something else" for s in taken]
                raise ConfigurationError("\n".join(told), hint="End what listens there, or change base_url in the runtime file.")
            held.callback(self._folder.clear)
            asyncio.run(self._serve())
        if all(standing.state == ServerState.GIVEN_UP for standing in self._standings.values()):
            told = f"{', '.join(self._standings)}: given up: expected a server that stays up"
            raise ConfigurationError(told, hint=f"{_REMEDY} Whole logs: {self._folder.path}.")

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
        if before.state != standing.state or now - self._told_at >= self._pace.retold_s:
            self._told_at = now
            with suppress(StoreError):  # a full disk ends no server
                self._folder.write_statuses(self._standings)
        self._on_change(dict(self._standings))

    def _found_orphan(self, name: str) -> None:
        if name in self._standings:
            self._standings[name] = ServerStatus(state=ServerState.WAITS, says="one of an earlier pandora serve is ended first")
            self._on_change(dict(self._standings))
