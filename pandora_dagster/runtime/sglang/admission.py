"""Admission of a call to its server: waits for a slot, sends the call, releases the slot, records what the outcome says about the server.

While calls wait, the server's own queue is polled: its length shows whether the server takes more calls. A call that a full server
refused is sent again here, because only the admission queue keeps the order; every other retry belongs to the executor.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.errors import EndpointFullError, ModelError, ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.admission_queue import AddressSlots, AdmissionQueue, Ticket
from pandora_dagster.runtime.sglang.circuit_breaker import CircuitBreaker
from pandora_dagster.runtime.sglang.completion_replies import Reply
from pandora_dagster.runtime.sglang.concurrency_limit import ServerLoad
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Server

_POLL_INTERVAL_S = 0.5
_MAX_POLL_BACKOFF = 16
"""Longest interval of polls in units of `_POLL_INTERVAL_S`: a poll costs a server 20 ms of processor time, so the interval doubles while
nothing suggests that the server takes more calls, and the number of slots stays the same."""


class NullMeters:
    """The Metrics port of a runtime without metrics."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


@dataclass(frozen=True, slots=True)
class AdmittedReply:
    """A reply, the address that sent it, and the times in milliseconds."""

    reply: Reply
    server: Server
    queued_ms: float
    latency_ms: float


LoadProbe = Callable[[Endpoint], Awaitable[ServerLoad | None]]
"""The load of one address; None where it does not report it. Never raises."""


async def _no_load(_: Endpoint) -> None:
    """The load of a server without metrics: unknown."""


@dataclass(frozen=True, slots=True)
class Admission:
    """One circuit breaker for each address and process; one admission queue for each server and event loop, to which the waiting calls
    belong. `read_load` polls one address; `spread`: a random number from 0 to 1."""

    meters: Metrics = field(default_factory=NullMeters)
    read_load: LoadProbe = _no_load
    clock: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = random.random
    _breakers: dict[str, CircuitBreaker] = field(default_factory=dict[str, CircuitBreaker])
    _queues: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Server, AdmissionQueue]] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Server, AdmissionQueue]]
    )
    _polls: dict[AdmissionQueue, asyncio.Task[None]] = field(default_factory=dict[AdmissionQueue, asyncio.Task[None]])

    async def admit(self, endpoint: Endpoint, priority: Priority, send: Callable[[Endpoint], Awaitable[Reply]]) -> AdmittedReply:
        """The reply that `send` gets from one of the endpoint's addresses; raises ModelError with the time that the call waited for a slot.

        `send` raises EndpointFullError only before a listener has received a word of an answer.
        """
        queue, arrived_at = self._queue_of(endpoint.server), self.clock()
        ticket = queue.issue_ticket(endpoint, priority)
        admitted_at = arrived_at
        try:
            while True:
                if queue.is_full:
                    self._start_polling(queue, endpoint)
                address = await queue.enter(ticket)
                admitted_at = self.clock()
                self._report_gauges(queue, address)
                if (reply := await self._try_send(queue, ticket, address, send)) is not None:
                    break
        except ModelError as error:
            was_sent = ticket.call_number > 0 and not isinstance(error, EndpointFullError)
            error.queued_ms = ((admitted_at if was_sent else self.clock()) - arrived_at) * 1_000
            raise
        return AdmittedReply(reply, address.server, (admitted_at - arrived_at) * 1_000, (self.clock() - admitted_at) * 1_000)

    def capacity(self, servers: Iterable[Server]) -> int:
        """Concurrent calls that these servers take together, as the running loop has learned; one trial call where a circuit is open."""
        addresses = [address for server in dict.fromkeys(servers) for address in self._queue_of(server).addresses]
        return sum(int(address.breaker.allows()) if address.breaker.is_open else address.concurrency.capacity for address in addresses)

    def close(self) -> None:
        """Stop the running loop's polls."""
        loop = asyncio.get_running_loop()
        for queue in [queue for queue, task in self._polls.items() if task.get_loop() is loop]:
            self._polls.pop(queue).cancel()

    def available_address(self, server: Server) -> Server | None:
        """The first of the server's addresses whose circuit is not open, for requests without a slot; None where all are open."""
        addresses = ((address, self._breakers.get(address.base_url)) for address in server.addresses)
        return next((address for address, breaker in addresses if breaker is None or breaker.allows()), None)

    async def _try_send(
        self, queue: AdmissionQueue, ticket: Ticket, address: AddressSlots, send: Callable[[Endpoint], Awaitable[Reply]]
    ) -> Reply | None:
        """One attempt; None where the server was full and the call has to enter the queue again."""
        breaker, url = address.breaker, address.server.base_url
        try:
            reply = await send(replace(ticket.endpoint, server=address.server))
        except EndpointFullError as refusal:
            self.meters.count("pandora_server_full_total", server=url)
            breaker.record_success()
            queue.record_refusal(ticket, refusal)
            return None
        except ModelError as error:
            self._record_failure(breaker, error, url)
            raise
        except BaseException:
            breaker.record_undecided()
            raise
        else:
            breaker.record_success()
            queue.record_answer(ticket)
            return reply
        finally:
            queue.leave(ticket)
            self._report_gauges(queue, address)

    def _start_polling(self, queue: AdmissionQueue, endpoint: Endpoint) -> None:
        """Start polling the addresses of a queue, unless that runs already; it ends when no call waits."""
        task = self._polls.get(queue)
        if task is None or task.done():
            self._polls[queue] = asyncio.get_running_loop().create_task(self._poll_while_waiting(queue, endpoint))

    async def _poll_while_waiting(self, queue: AdmissionQueue, endpoint: Endpoint) -> None:
        backoff, last_capacity = 1, queue.capacity
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S * backoff)
            if not queue.length:
                return
            backoff = min(2 * backoff, _MAX_POLL_BACKOFF) if queue.is_settled and queue.capacity == last_capacity else 1
            last_capacity = queue.capacity
            for address in queue.addresses:
                if not address.breaker.is_open and (load := await self.read_load(replace(endpoint, server=address.server))):
                    queue.record_load(address, load)

    def _record_failure(self, breaker: CircuitBreaker, error: ModelError, url: str) -> None:
        """Record what a failed call shows of the server: a refused request is an answer; a timeout counts for the trial call alone."""
        if type(error) is RuntimeUnreachableError:
            self.meters.count("pandora_server_unreachable_total", server=url)
            breaker.record_failure(str(error))
        elif isinstance(error, ModelTimeoutError):
            breaker.record_timeout(str(error))
        else:
            breaker.record_success()

    def _queue_of(self, server: Server) -> AdmissionQueue:
        queues = self._queues.setdefault(asyncio.get_running_loop(), {})
        if server not in queues:
            for address in server.addresses:
                self._breakers.setdefault(address.base_url, CircuitBreaker(self.clock))
            queues[server] = AdmissionQueue(server, self._breakers, clock=self.clock, spread=self.spread)
        return queues[server]

    def _report_gauges(self, queue: AdmissionQueue, address: AddressSlots) -> None:
        url = address.server.base_url
        self.meters.gauge("pandora_server_places", address.concurrency.capacity, server=url)
        self.meters.gauge("pandora_server_running", address.running, server=url)
        self.meters.gauge("pandora_server_waiting", queue.length, server=url)
        self.meters.gauge("pandora_server_left_alone", float(address.breaker.is_open), server=url)
