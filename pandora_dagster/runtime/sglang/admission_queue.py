"""Queue of the calls to one server on one event loop: which call gets a slot at which of its addresses, and when. Sends nothing.

A call takes a ticket (`issue_ticket`), waits for a slot (`enter`), is sent by `admission`, and returns the slot (`leave`). Tickets wait by
priority, then by arrival. One is admitted where an address has a free slot, its circuit is not open, and the limits of the call's layer
(`max_at_once`, `per_minute`) allow it. `concurrency_limit` decides how many slots an address has. A call that a full server refused
enters again with the same ticket and so keeps its place in the queue.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pandora_dagster.contracts.enums import ModelLayer, Priority
from pandora_dagster.errors import EndpointDownError, EndpointFullError
from pandora_dagster.runtime.sglang.circuit_breaker import CircuitBreaker
from pandora_dagster.runtime.sglang.concurrency_limit import ConcurrencyLimit, ServerLoad
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Server

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.05, 2.0
"""Pauses of a call that a full server refused; each is twice as long as the one before."""
_RATE_WINDOW_S = 60.0
"""The window of `per_minute`."""
_LAST_ATTEMPT_SHARE = 0.9
"""Share of a call's remaining wait (`patience_s`): a server that asks for a longer pause is tried once more by then."""


@dataclass(slots=True)
class AddressSlots:
    """The slots of one address: calls under way there, and the limit of them."""

    server: Server
    breaker: CircuitBreaker
    concurrency: ConcurrencyLimit
    running: int = 0

    def free_slots(self, priority: Priority) -> int:
        """Free slots for a call of this priority; the reserve is for calls other than batch calls."""
        return self.concurrency.capacity + (0 if priority is Priority.BATCH else self.concurrency.reserve) - self.running


@dataclass(slots=True)
class _LayerUsage:
    """The calls of a layer: how many are under way, and when those of the last minute began."""

    running: int = 0
    start_times: deque[float] = field(default_factory=deque[float])


@dataclass(slots=True)
class Ticket:
    """One call in the queue: what it may wait for, and since it was admitted the address where it has a slot."""

    endpoint: Endpoint
    priority: Priority
    arrival: int
    """Its number among the tickets."""
    deadline: float
    """Seconds of the queue's clock, like `not_before`."""
    admitted: asyncio.Future[AddressSlots]
    address: AddressSlots | None = None
    not_before: float = 0.0
    call_number: int = 0
    """Its number among the admitted calls; 0 before it is admitted."""
    refusals: int = 0
    last_refusal: str = ""
    """The last error of a full server."""


class AdmissionQueue:
    """The queue of one server. `clock`: the loop's monotonic seconds; `spread`: a random number from 0 to 1, for the pauses."""

    def __init__(
        self, server: Server, breakers: Mapping[str, CircuitBreaker], *, clock: Callable[[], float], spread: Callable[[], float]
    ) -> None:
        initial = ConcurrencyLimit.initial(server.max_connections)
        self.addresses = tuple(AddressSlots(address, breakers[address.base_url], initial) for address in server.addresses)
        self._server, self._clock, self._spread = server, clock, spread
        self._waiting: list[Ticket] = []
        self._usage: dict[ModelLayer, _LayerUsage] = {}
        self._arrivals, self._admitted_calls = itertools.count(), 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def length(self) -> int:
        """Calls that wait for a slot."""
        return len(self._waiting)

    @property
    def capacity(self) -> int:
        """Calls that may be under way at all of its addresses."""
        return sum(address.concurrency.capacity for address in self.addresses)

    @property
    def is_settled(self) -> bool:
        """Whether the limits of all addresses are settled."""
        return all(address.concurrency.is_settled for address in self.addresses)

    @property
    def is_full(self) -> bool:
        """Whether all slots for batch calls are in use."""
        return all(address.free_slots(Priority.BATCH) <= 0 for address in self.addresses)

    def issue_ticket(self, endpoint: Endpoint, priority: Priority) -> Ticket:
        """The ticket of one call, which may wait as long as the server's `patience_s`."""
        deadline = self._clock() + self._server.patience_s
        return Ticket(endpoint, priority, next(self._arrivals), deadline, asyncio.get_running_loop().create_future())

    async def enter(self, ticket: Ticket) -> AddressSlots:
        """Waits for a slot and returns its address.

        Raises EndpointDownError where the circuit of every address is open, EndpointFullError after `patience_s`.
        """
        ticket.admitted = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        self._waiting.sort(key=lambda waiting: (-waiting.priority, waiting.arrival))
        self._admit()
        try:
            async with asyncio.timeout(max(0.0, ticket.deadline - self._clock())):
                return await ticket.admitted
        except TimeoutError:
            self.leave(ticket)
            raise self._queue_timeout(ticket) from None
        except BaseException:
            self.leave(ticket)
            raise

    def leave(self, ticket: Ticket) -> None:
        """Returns the slot of a call, or takes it out of the queue."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        elif ticket.address is not None:
            ticket.address.running -= 1
            self._usage[ticket.endpoint.layer].running -= 1
            ticket.address = None
        self._admit()

    def record_answer(self, ticket: Ticket) -> None:
        """Adjust the limit of the address: the server answered the call."""
        if (address := ticket.address) is not None:
            address.concurrency = address.concurrency.after_answer(address.running)

    def record_refusal(self, ticket: Ticket, error: EndpointFullError) -> None:
        """Lower the limit of a full address, and set the pause after which the call may enter again.

        Raises EndpointFullError where that would be after `patience_s`.
        """
        if (address := ticket.address) is not None:
            address.concurrency = address.concurrency.after_refusal(ticket.call_number, self._admitted_calls, address.running)
        pause = min(_MAX_PAUSE_S, _FIRST_PAUSE_S * 2**ticket.refusals) * (0.5 + self._spread() / 2)
        requested_pause = min(error.retry_after_s, _LAST_ATTEMPT_SHARE * (ticket.deadline - self._clock()))
        ticket.refusals, ticket.not_before = ticket.refusals + 1, self._clock() + max(pause, requested_pause)
        ticket.last_refusal = str(error)
        self.leave(ticket)
        if ticket.not_before >= ticket.deadline:
            raise self._queue_timeout(ticket)

    def record_load(self, address: AddressSlots, load: ServerLoad) -> None:
        """Adjust the limit of an address to the load that it reported."""
        address.concurrency = address.concurrency.after_load(load, address.running)
        self._admit()

    def _admit(self) -> None:
        """Admit every waiting call that may start now, in order; one that may not does not delay the others."""
        now = self._clock()
        for ticket in tuple(self._waiting):
            if ticket.not_before > now or self._layer_wait(ticket.endpoint, now) > 0:
                continue
            if address := self._free_address(ticket.priority):
                self._grant(ticket, address, now)
        if self._waiting and all(address.breaker.wait_s > 0 for address in self.addresses):
            for ticket in self._waiting:
                if not ticket.admitted.done():
                    ticket.admitted.set_exception(endpoint_down(ticket.endpoint, self.addresses))
            self._waiting.clear()
        self._schedule_admission(now)

    def _grant(self, ticket: Ticket, address: AddressSlots, now: float) -> None:
        """Give a slot of `address` to a waiting call, unless the call was cancelled."""
        self._waiting.remove(ticket)
        if ticket.admitted.done():
            return
        usage = self._usage.setdefault(ticket.endpoint.layer, _LayerUsage())
        usage.running += 1
        if ticket.endpoint.per_minute is not None:
            usage.start_times.append(now)
        self._admitted_calls += 1
        address.running += 1
        address.breaker.record_start()
        ticket.address, ticket.call_number = address, self._admitted_calls
        ticket.admitted.set_result(address)

    def _free_address(self, priority: Priority) -> AddressSlots | None:
        """The address with the smallest share of its slots in use, of those that may be called."""
        free = [address for address in self.addresses if address.free_slots(priority) > 0 and address.breaker.allows()]
        return min(free, key=lambda address: address.running / address.concurrency.limit, default=None)

    def _layer_wait(self, endpoint: Endpoint, now: float) -> float:
        """Seconds until the layer's own limits let a call through; infinite where another call has to end first."""
        usage = self._usage.get(endpoint.layer)
        if usage is None:
            return 0.0
        if endpoint.max_at_once is not None and usage.running >= endpoint.max_at_once:
            return float("inf")
        while usage.start_times and usage.start_times[0] <= now - _RATE_WINDOW_S:
            usage.start_times.popleft()
        if endpoint.per_minute is None or len(usage.start_times) < endpoint.per_minute:
            return 0.0
        return usage.start_times[len(usage.start_times) - endpoint.per_minute] + _RATE_WINDOW_S - now

    def _schedule_admission(self, now: float) -> None:
        """Start a timer for the first moment at which a waiting call may start without another call's end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        waits_s = [max(ticket.not_before - now, self._layer_wait(ticket.endpoint, now)) for ticket in self._waiting]
        waits_s += [address.breaker.wait_s for address in self.addresses]
        if finite := [wait_s for wait_s in waits_s if 0 < wait_s < float("inf")]:
            self._timer = asyncio.get_running_loop().call_later(min(finite), self._admit)

    def _queue_timeout(self, ticket: Ticket) -> EndpointFullError:
        detail = f"; last reply: {error_detail(ticket.last_refusal)}" if ticket.last_refusal else ""
        return EndpointFullError(
            f"{ticket.endpoint}: no free slot within {self._server.patience_s:g} s{detail}: expected one",
            hint="Send fewer concurrent calls, or raise patience_s in runtime.yaml.",
        )


def endpoint_down(endpoint: Endpoint, addresses: Sequence[AddressSlots]) -> EndpointDownError:
    """The error of an endpoint whose circuits are all open."""
    soonest = min(addresses, key=lambda address: address.breaker.wait_s).breaker
    others = "" if len(addresses) == 1 else f", and at its {len(addresses) - 1} other addresses too"
    return EndpointDownError(
        f"{endpoint}: {soonest.failures} calls in a row failed, the last one with: {error_detail(soonest.last_error)}{others}; "
        f"circuit open for {soonest.wait_s:.0f} more s: expected a reachable model server",
        hint="Start the server, or correct base_url in runtime.yaml; then go on with pandora resume.",
    )


def error_detail(message: str) -> str:
    """The middle part of an error `ENDPOINT: WHAT: expected ...`."""
    return message.partition("/v1: ")[2].partition(": expected")[0]
