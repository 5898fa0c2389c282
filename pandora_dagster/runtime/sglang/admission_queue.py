"""Queue of the calls to one server: slots, priorities, the limits of layers, and as many calls at once as the server takes.

Knows one server's addresses and the calls that wait for them, on one event loop; sends nothing. `concurrency_limit` decides how many slots
there are. A call that a full server refused keeps its place in the queue.
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

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_WINDOW_S = 60.0
_LAST_TRY = 0.9
"""Share of a call's remaining wait (`patience_s`): a server that asks for a longer pause is tried once more by then."""


@dataclass(slots=True)
class AddressSlots:
    """One address: how many calls are under way there, and how many may be."""

    server: Server
    breaker: CircuitBreaker
    concurrency: ConcurrencyLimit
    running: int = 0

    def free(self, priority: Priority) -> int:
        """Places for a call of this priority: for one that somebody waits for there are a few more."""
        places = self.concurrency.capacity + (0 if priority is Priority.BATCH else self.concurrency.reserve)
        return places - self.running


@dataclass(slots=True)
class _LayerUsage:
    """What a layer has under way, and when its last calls began."""

    running: int = 0
    begun: deque[float] = field(default_factory=deque[float])


@dataclass(slots=True)
class Ticket:
    """One call's claim to a place. `slot` is where it has one."""

    endpoint: Endpoint
    priority: Priority
    order: int
    deadline: float
    given: asyncio.Future[AddressSlots]
    slot: AddressSlots | None = None
    not_before: float = 0.0
    begun: int = 0
    """Its number among the calls that got a place."""
    refusals: int = 0
    last: str = ""
    """The last error of a full server."""


class AdmissionQueue:
    """The places of one server, on one event loop. `clock`: the loop's monotonic seconds; `spread`: 0 to 1, by chance."""

    def __init__(
        self, server: Server, breakers: Mapping[str, CircuitBreaker], *, clock: Callable[[], float], spread: Callable[[], float]
    ) -> None:
        beginning = ConcurrencyLimit.initial(server.max_connections)
        self.addresses = tuple(AddressSlots(one, breakers[one.base_url], beginning) for one in server.addresses)
        self._server, self._clock, self._spread = server, clock, spread
        self._waiting: list[Ticket] = []
        self._uses: dict[ModelLayer, _LayerUsage] = {}
        self._orders, self._begun = itertools.count(), 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def capacity(self) -> int:
        """Calls that may be under way at all of its addresses."""
        return sum(slot.concurrency.capacity for slot in self.addresses)

    @property
    def full(self) -> bool:
        """Whether all places are in use."""
        return all(slot.free(Priority.BATCH) <= 0 for slot in self.addresses)

    def issue_ticket(self, endpoint: Endpoint, priority: Priority) -> Ticket:
        """A claim for one call, which may wait as long as the server's `patience_s`."""
        deadline = self._clock() + self._server.patience_s
        return Ticket(endpoint, priority, next(self._orders), deadline, asyncio.get_running_loop().create_future())

    async def enter(self, ticket: Ticket) -> AddressSlots:
        """Waits for a slot. Raises EndpointDownError where the circuit of every address is open, EndpointFullError after `patience_s`."""
        ticket.given = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        self._waiting.sort(key=lambda waits: (-waits.priority, waits.order))
        self._admit()
        try:
            async with asyncio.timeout(max(0.0, ticket.deadline - self._clock())):
                return await ticket.given
        except TimeoutError:
            self.leave(ticket)
            raise self._queue_timeout(ticket) from None
        except BaseException:
            self.leave(ticket)
            raise

    def leave(self, ticket: Ticket) -> None:
        """Gives the place, or the claim to one, back."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        elif ticket.slot is not None:
            ticket.slot.running -= 1
            self._uses[ticket.endpoint.layer].running -= 1
            ticket.slot = None
        self._admit()

    def record_answer(self, ticket: Ticket) -> None:
        """The server took the call: there may be room for one more where all places were in use."""
        if (slot := ticket.slot) is not None:
            slot.concurrency = slot.concurrency.after_answer(slot.running)

    def record_refusal(self, ticket: Ticket, error: EndpointFullError) -> None:
        """The server is full: lower its limit and queue the call again after a pause. Raises the error after `patience_s`."""
        if (slot := ticket.slot) is not None:
            slot.concurrency = slot.concurrency.after_refusal(ticket.begun, self._begun, slot.running)
        pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**ticket.refusals) * (0.5 + self._spread() / 2)
        asked = min(error.retry_after_s, _LAST_TRY * (ticket.deadline - self._clock()))
        ticket.refusals, ticket.not_before = ticket.refusals + 1, self._clock() + max(pause, asked)
        ticket.last = str(error)
        self.leave(ticket)
        if ticket.not_before >= ticket.deadline:
            raise self._queue_timeout(ticket)

    def record_load(self, slot: AddressSlots, load: ServerLoad) -> None:
        """An address was looked at: there may be more places, or fewer."""
        slot.concurrency = slot.concurrency.after_load(load, slot.running)
        self._admit()

    def _admit(self) -> None:
        """Gives places to those who may have them, in order; one that may not go yet holds up no other."""
        now = self._clock()
        for ticket in tuple(self._waiting):
            if ticket.not_before <= now and self._layer_wait(ticket.endpoint, now) == 0.0 and (slot := self._free_address(ticket.priority)):
                self._grant(ticket, slot, now)
        if self._waiting and all(s.breaker.wait_s > 0 for s in self.addresses):
            for ticket in self._waiting:
                if not ticket.given.done():
                    ticket.given.set_exception(endpoint_down(ticket.endpoint, self.addresses))
            self._waiting.clear()
        self._schedule_admission(now)

    def _grant(self, ticket: Ticket, slot: AddressSlots, now: float) -> None:
        self._waiting.remove(ticket)
        if ticket.given.done():
            return
        use = self._uses.setdefault(ticket.endpoint.layer, _LayerUsage())
        use.running += 1
        if ticket.endpoint.per_minute is not None:
            use.begun.append(now)
        self._begun += 1
        slot.running += 1
        slot.breaker.record_start()
        ticket.slot, ticket.begun = slot, self._begun
        ticket.given.set_result(slot)

    def _free_address(self, priority: Priority) -> AddressSlots | None:
        """The address with the fewest calls for its places, of those that may be called."""
        free = [s for s in self.addresses if s.free(priority) > 0 and s.breaker.allows()]
        return min(free, key=lambda s: s.running / s.concurrency.limit, default=None)

    def _layer_wait(self, endpoint: Endpoint, now: float) -> float:
        """Seconds until the layer's own limits let a call through; infinite where another call has to end first."""
        use = self._uses.get(endpoint.layer)
        if use is None:
            return 0.0
        if endpoint.max_at_once is not None and use.running >= endpoint.max_at_once:
            return float("inf")
        while use.begun and use.begun[0] <= now - _WINDOW_S:
            use.begun.popleft()
        if endpoint.per_minute is None or len(use.begun) < endpoint.per_minute:
            return 0.0
        return use.begun[len(use.begun) - endpoint.per_minute] + _WINDOW_S - now

    def _schedule_admission(self, now: float) -> None:
        """A timer for the first moment at which time alone lets somebody in."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        waits = [max(t.not_before - now, self._layer_wait(t.endpoint, now)) for t in self._waiting]
        waits += [s.breaker.wait_s for s in self.addresses]
        if due := [wait for wait in waits if 0 < wait < float("inf")]:
            self._timer = asyncio.get_running_loop().call_later(min(due), self._admit)

    def _queue_timeout(self, ticket: Ticket) -> EndpointFullError:
        detail = f"; it said: {error_detail(ticket.last)}" if ticket.last else ""
        return EndpointFullError(
            f"{ticket.endpoint}: no free slot within {self._server.patience_s:g} s{detail}: expected one",
            hint="Send fewer concurrent calls, or raise patience_s in runtime.yaml.",
        )


def endpoint_down(endpoint: Endpoint, addresses: Sequence[AddressSlots]) -> EndpointDownError:
    """The sentence for an endpoint whose circuits are all open."""
    soonest = min(addresses, key=lambda s: s.breaker.wait_s).breaker
    where = "" if len(addresses) == 1 else f", and at its {len(addresses) - 1} other addresses too"
    return EndpointDownError(
        f"{endpoint}: {soonest.failures} calls in a row failed, the last one so: {error_detail(soonest.last)}{where}; "
        f"circuit open for {soonest.wait_s:.0f} more s: expected a reachable SGLang server",
        hint="Start the server, or correct base_url in runtime.yaml; then go on with pandora resume.",
    )


def error_detail(message: str) -> str:
    """What an error's sentence says between where it was and what was expected."""
    return message.partition("/v1: ")[2].partition(": expected")[0]
