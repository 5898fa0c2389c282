"""The start of a cold server for a call: `pandora serve` is asked to start it, and the call waits until it is ready."""

import asyncio

from pandora_dagster.errors import RuntimeUnreachableError, StoreError
from pandora_dagster.runtime.serving.server_health import is_ready
from pandora_dagster.runtime.serving.server_supervisor import ServerState
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.endpoints import Endpoint


class OnDemandStart:
    """The `ServerStarter` of `runtime.sglang.sglang_runtime`, which communicates through the store's serving folder."""

    def __init__(self, folder: ServingFolder, *, poll_s: float = 0.3) -> None:
        self._folder, self._poll_s = folder, poll_s

    async def ensure_started(self, endpoint: Endpoint) -> None:
        """Wait until the endpoint's server is ready, at most its `start_s`; raises RuntimeUnreachableError."""
        launch = endpoint.server.launch
        if launch is None or not launch.cold:
            return
        self._request_start(endpoint)  # also where it is ready: the time of the last call keeps an idle server running
        if await is_ready(endpoint.server):
            return
        try:
            async with asyncio.timeout(launch.start_s):
                await self._wait_until_ready(endpoint)
        except TimeoutError:
            raise RuntimeUnreachableError(
                f"{endpoint}: was not ready {launch.start_s:g} s after the call that needed it: expected it to start",
                hint=f"See {self._folder.log(endpoint.name)}, or raise start_s in its launch block.",
            ) from None

    async def _wait_until_ready(self, endpoint: Endpoint) -> None:
        while True:
            self._check_statuses(endpoint, self._folder.statuses())
            await asyncio.sleep(self._poll_s)
            if await is_ready(endpoint.server):
                return
            self._request_start(endpoint)  # requested again, since a start may have failed in between

    def _check_statuses(self, endpoint: Endpoint, statuses: dict[str, ServerStatus] | None) -> None:
        """Raise RuntimeUnreachableError where no `pandora serve` runs for the server, or starts it no more."""
        if statuses is None or endpoint.name not in statuses:
            raise RuntimeUnreachableError(
                f"{endpoint}: is started by the first call, and no pandora serve runs for it over {self._folder.path.parent}: expected one",
                hint="Start pandora serve over this store.",
            )
        status = statuses[endpoint.name]
        if status.state == ServerState.GIVEN_UP:
            raise RuntimeUnreachableError(
                f"{endpoint}: could not be started ({status.says.partition(';')[0]}): expected it to run",
                hint=f"See {self._folder.log(endpoint.name)}; then start pandora serve again.",
            )

    def _request_start(self, endpoint: Endpoint) -> None:
        try:
            self._folder.request_start(endpoint.name)
        except StoreError as fault:
            raise RuntimeUnreachableError(f"{endpoint}: {fault}", hint="Make the store writable.") from None
