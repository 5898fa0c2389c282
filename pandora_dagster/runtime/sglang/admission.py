"""Admission of a call to its server: waits for a slot, sends the call, releases the slot, records what the outcome says about the server.

Knows queues, breakers and what a failure means for them; knows no recipe. While calls wait, the server's own queue is polled: its length
says whether there is room for more. A call that a full server refused is sent again here, because only the queue of its slots keeps the
order; every other retry belongs to the executor.
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
_MAX_PROBE_BACKOFF = 16
"""A look takes a server 20 ms of its processor's time: where places stay as they are, each comes after twice the time of the last."""


class NullMeters:
    """Meters of a runtime without metrics."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...


@dataclass(frozen=True, slots=True)
class AdmittedReply:
    """An answer, the address that gave it, and the times in milliseconds."""

    reply: Reply
    server: Server
    queued_ms: float
    latency_ms: float


LoadProbe = Callable[[Endpoint], Awaitable[ServerLoad | None]]
"""The load of one address; None where it does not report it. Never raises."""


async def _no_load(_: Endpoint) -> None:
    """Of a server without metrics."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Breakers hold for the process, gates for an event loop: what waits there belongs to it."""

    meters: Metrics = field(default_factory=NullMeters)
    look: LoadProbe = _no_load
    clock: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = random.random
    _breakers: dict[str, CircuitBreaker] = field(default_factory=dict[str, CircuitBreaker])
    _gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Server, AdmissionQueue]] = field(
        default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Server, AdmissionQueue]]
    )
    _looking: dict[AdmissionQueue, asyncio.Task[None]] = field(default_factory=dict[AdmissionQueue, asyncio.Task[None]])

    async def admit(self, endpoint: Endpoint, priority: Priority, send: Callable[[Endpoint], Awaitable[Reply]]) -> AdmittedReply:
        """The answer that `send` gets from one of the endpoint's addresses; raises ModelError with the time it waited for its place.

        `send` raises EndpointFullError only before a listener has received a word of an answer.
        """
        gate, came = self._queue(endpoint.server), self.clock()
        ticket = gate.issue_ticket(endpoint, priority)
        began = came
        try:
            while True:
                if gate.full:
                    self._start_load_probe(gate, endpoint)
                slot = await gate.enter(ticket)
                began = self.clock()
                self._report_gauges(gate, slot)
                if (reply := await self._try_send(gate, ticket, slot, send)) is not None:
                    break
        except ModelError as error:
            error.queued_ms = ((self.clock() if ticket.begun == 0 or isinstance(error, EndpointFullError) else began) - came) * 1_000
            raise
        return AdmittedReply(reply, slot.server, (began - came) * 1_000, (self.clock() - began) * 1_000)

    def capacity(self, servers: Iterable[Server]) -> int:
        """Calls that these servers take at once, all together, as the running loop has learned; one to try a server that was away."""
        addresses = [slot for server in dict.fromkeys(servers) for slot in self._queue(server).addresses]
        return sum(int(s.breaker.allows()) if s.breaker.is_open else s.concurrency.capacity for s in addresses)

    def close(self) -> None:
        """Ends what looks at servers for the running loop."""
        loop = asyncio.get_running_loop()
        for gate in [gate for gate, task in self._looking.items() if task.get_loop() is loop]:
            self._looking.pop(gate).cancel()

    def available_address(self, server: Server) -> Server | None:
        """The first of the server's addresses whose circuit is not open, for what needs no place; None where all are open."""
        known = ((one, self._breakers.get(one.base_url)) for one in server.addresses)
        return next((one for one, breaker in known if breaker is None or breaker.allows()), None)

    async def _try_send(
        self, gate: AdmissionQueue, ticket: Ticket, slot: AddressSlots, send: Callable[[Endpoint], Awaitable[Reply]]
    ) -> Reply | None:
        """One try; None where the server was full and the call has to claim a place again."""
        breaker, url = slot.breaker, slot.server.base_url
        try:
            reply = await send(replace(ticket.endpoint, server=slot.server))
        except EndpointFullError as full:
            self.meters.count("pandora_server_full_total", server=url)
            breaker.record_success()
            gate.record_refusal(ticket, full)
            return None
        except ModelError as error:
            self._record_failure(breaker, error, url)
            raise
        except BaseException:
            breaker.record_undecided()
            raise
        else:
            breaker.record_success()
            gate.record_answer(ticket)
            return reply
        finally:
            gate.leave(ticket)
            self._report_gauges(gate, slot)

    def _start_load_probe(self, gate: AdmissionQueue, endpoint: Endpoint) -> None:
        """Sees to it that somebody looks at the addresses as long as calls wait for a place."""
        task = self._looking.get(gate)
        if task is None or task.done():
            self._looking[gate] = asyncio.get_running_loop().create_task(self._probe_while_waiting(gate, endpoint))

    async def _probe_while_waiting(self, gate: AdmissionQueue, endpoint: Endpoint) -> None:
        times, known = 1, gate.capacity
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S * times)
            if not gate.waiting:
                return
            times = min(2 * times, _MAX_PROBE_BACKOFF) if gate.capacity == known else 1
            known = gate.capacity
            for slot in gate.addresses:
                if not slot.breaker.is_open and (load := await self.look(replace(endpoint, server=slot.server))):
                    gate.record_load(slot, load)

    def _record_failure(self, breaker: CircuitBreaker, error: ModelError, url: str) -> None:
        """A refusal of the request is an answer of the server; a call that ran out of time says nothing of it, unless it was the probe."""
        if type(error) is RuntimeUnreachableError:
            self.meters.count("pandora_server_unreachable_total", server=url)
            breaker.record_failure(str(error))
        elif isinstance(error, ModelTimeoutError):
            breaker.record_timeout(str(error))
        else:
            breaker.record_success()

    def _queue(self, server: Server) -> AdmissionQueue:
        gates = self._gates.setdefault(asyncio.get_running_loop(), {})
        if server not in gates:
            for one in server.addresses:
                self._breakers.setdefault(one.base_url, CircuitBreaker(self.clock))
            gates[server] = AdmissionQueue(server, self._breakers, clock=self.clock, spread=self.spread)
        return gates[server]

    def _report_gauges(self, gate: AdmissionQueue, slot: AddressSlots) -> None:
        url = slot.server.base_url
        self.meters.gauge("pandora_server_places", slot.concurrency.capacity, server=url)
        self.meters.gauge("pandora_server_running", slot.running, server=url)
        self.meters.gauge("pandora_server_waiting", gate.waiting, server=url)
        self.meters.gauge("pandora_server_left_alone", float(slot.breaker.is_open), server=url)
