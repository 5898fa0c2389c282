"""How many concurrent calls one server address gets, learned from its refusals and from the length of its own queue. Pure.

The limit starts at 16 and grows by one with every answer that comes while all slots are in use, until the server is saturated: it refuses
a call, or its persistent queue is long enough that it is never idle (one waiting request for eight running ones). The persistent queue is
the shortest that the last three polls saw: requests also wait for a moment while the server reads the prompts of others, or compiles a
kernel, and that queue empties by itself. After saturation the limit grows by one for as many answers as there are slots. A poll bounds the
growth until the next poll: twice the slots before saturation, an eighth more after it, none while the queue is long enough. Where the
persistent queue is over twice as long, the limit shrinks by the excess. Example: limit 64, load 20 running, never fewer than 44 queued: 2
should wait, so the limit falls to 64 - (44 - 2) = 22.
"""

import re
from dataclasses import dataclass, replace

INITIAL_CAPACITY = 16
MAX_CAPACITY = 256
"""Where the runtime file names no `max_connections`, and the server reports its queue."""
_REFUSAL_BACKOFF = 0.9
"""A refusal lowers the limit to this share of the calls that were under way."""
_MIN_ARRIVED_SHARE = 0.5
"""Share of our calls that the server must have received, running or queued, before a short queue means that it could take more."""
_RUNNING_PER_QUEUED = 8
"""One request waits for so many running ones: when one ends the server starts the next at once, and a live turn has few before it."""
_QUEUE_POLLS = 3
"""Polls in a row whose shortest queue persists."""
_GROWTH_DIVISOR, _RESERVE_DIVISOR = 8, 8
"""Fractions of the slots: the growth until the next poll after saturation, and the slots beyond them for interactive calls."""


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """The requests of all clients at a server at one moment: those that run, and those that wait in its own queue."""

    running: int
    queued: int

    @property
    def target_queue_length(self) -> int:
        """Requests that should wait, so that the server is never idle."""
        return max(1, self.running // _RUNNING_PER_QUEUED)


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """The limit of one address; each event returns the next value. `limit` is in calls and may be a fraction: `capacity` is whole."""

    max_limit: int
    """Upper bound of `limit` for good."""
    limit_until_next_poll: int
    """Upper bound of `limit` until the load is read again; a server that does not report its queue keeps the initial one."""
    limit: float
    saturation_seen: bool = False
    """Whether the server refused a call, or had a persistent queue that was long enough."""
    queue_lengths: tuple[int, ...] = ()
    """The server's queue at the last polls since the limit shrank, oldest first; at most `_QUEUE_POLLS`."""
    is_queue_too_long: bool = False
    """Whether the last poll saw a queue that shrinks the limit if it persists."""
    newest_call_at_refusal: int = 0
    """Number of the newest call at the last reduction by a refusal; refusals of calls up to it belong to the same overload."""
    accepted_calls: int = 0
    """Calls under way at that reduction, less the refused ones: what the server took."""

    @classmethod
    def initial(cls, bound: int | None) -> "ConcurrencyLimit":
        """`bound`: `max_connections` of the runtime file; None starts with what is safe for a server without metrics."""
        return cls(bound or MAX_CAPACITY, bound or INITIAL_CAPACITY, min(bound or MAX_CAPACITY, INITIAL_CAPACITY))

    @property
    def capacity(self) -> int:
        """Calls that may be under way."""
        return int(self.limit)

    @property
    def is_settled(self) -> bool:
        """Whether the next poll can change little: the server was saturated or has all the slots it may get, and its queue is short."""
        return (self.saturation_seen or self.capacity >= self.max_limit) and not self.is_queue_too_long

    @property
    def reserve(self) -> int:
        """Slots beyond the limit for interactive calls, so that none of them waits for batch calls to end."""
        return min(self.max_limit - self.capacity, max(1, self.capacity // _RESERVE_DIVISOR))

    def after_answer(self, in_use: int) -> "ConcurrencyLimit":
        """The next limit after an answer while `in_use` of our calls were under way: it grows only where all slots were in use."""
        if in_use < self.capacity or self.limit >= self.limit_until_next_poll:
            return self
        return replace(self, limit=min(self.limit_until_next_poll, self.limit + (1 / self.limit if self.saturation_seen else 1)))

    def after_load(self, load: ServerLoad, in_use: int) -> "ConcurrencyLimit":
        """The next limit after the load was read while `in_use` of our calls were under way.

        It falls by the persistent queue beyond the target. It does not grow where most of our calls have not reached the server, because
        they are still being sent or their answers read: more calls would not bring it more work.
        """
        target = load.target_queue_length
        polled = replace(
            self,
            queue_lengths=(*self.queue_lengths, load.queued)[-_QUEUE_POLLS:],
            is_queue_too_long=load.queued > 2 * target,
        )
        persistent = polled._persistent_queue
        if persistent > 2 * target:
            limit = min(self.limit, max(1.0, in_use - (persistent - target)))
            return replace(polled, limit=limit, limit_until_next_poll=int(limit), saturation_seen=True, queue_lengths=())
        saturated = self.saturation_seen or persistent >= target
        if load.queued >= target or load.running + load.queued < in_use * _MIN_ARRIVED_SHARE:
            return replace(polled, limit_until_next_poll=self.capacity, saturation_seen=saturated)
        growth = max(1, self.capacity // _GROWTH_DIVISOR) if saturated else self.capacity
        return replace(polled, limit_until_next_poll=min(self.max_limit, self.capacity + growth), saturation_seen=saturated)

    @property
    def _persistent_queue(self) -> int:
        """The shortest queue of the last polls; 0 while there were too few of them."""
        return min(self.queue_lengths) if len(self.queue_lengths) == _QUEUE_POLLS else 0

    def after_refusal(self, call_number: int, newest_call: int, in_use: int) -> "ConcurrencyLimit":
        """The next limit after a full server refused `call_number`, one of the `in_use` calls under way; `newest_call`: the last number."""
        reduced = self
        if call_number > self.newest_call_at_refusal:
            limit = min(self.limit, in_use * _REFUSAL_BACKOFF)
            reduced = replace(self, newest_call_at_refusal=newest_call, accepted_calls=in_use, limit=limit)
        accepted_calls = reduced.accepted_calls - 1
        return replace(reduced, accepted_calls=accepted_calls, limit=max(1.0, min(reduced.limit, accepted_calls)), saturation_seen=True)


# The load that a server reports: the text of `/metrics` as a `ServerLoad`.

_LOAD_LINE = re.compile(rb"^sglang:(num_running_reqs|num_queue_reqs)(?:\{([^}]*)\})? (\S+)\s*$", re.MULTILINE)
_PRIORITY_LABEL = re.compile(rb'priority="[^"]')
"""Of a server with priorities, each priority has a line of its own beside the total, whose label is empty."""


def parse_load(body: bytes) -> ServerLoad | None:
    """Running and queued requests, summed over the server's ranks; None where the page lacks one of the two."""
    sums: dict[bytes, int] = {}
    for name, labels, value in _LOAD_LINE.findall(body):
        if not _PRIORITY_LABEL.search(labels):
            try:
                sums[name] = sums.get(name, 0) + max(0, int(float(value)))
            except (ValueError, OverflowError):
                return None
    if len(sums) < 2:
        return None
    return ServerLoad(sums[b"num_running_reqs"], sums[b"num_queue_reqs"])
