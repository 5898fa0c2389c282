"""Number of calls that one address should have at once, learned from its refusals and from the length of its own queue. Pure.

It begins small and grows with every answer while all slots are in use, until the server shows how many it takes: by refusing one, or by
letting as many wait as it needs in order never to be idle. From then on it grows by one for as many answers as there are slots. Until the
next poll it may grow to twice the slots at first, by an eighth later.
"""

import re
from dataclasses import dataclass, replace

INITIAL_CAPACITY = 16
MAX_CAPACITY = 256
"""Where the runtime file names no bound, and the server reports its queue."""
_FEWER = 0.9
"""What is kept of the places that a refusal has shown."""
_ARRIVED = 0.5
_AHEAD = 8
"""One waits for so many that run: when one ends the server goes on with the next at once, and a live turn has few before it."""


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """What a server works on at one moment, whoever sent it: requests that run, requests that wait in its own queue."""

    running: int
    queued: int

    @property
    def target_queue_length(self) -> int:
        """How many should wait, so that it is never without work."""
        return max(1, self.running // _AHEAD)


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """What is known of one address; each thing that happens gives the next. `limit` is in calls, and whole where they are counted."""

    most: int
    """Never more."""
    upto: int
    """Never more before the next look; without an end for a server that does not report its queue."""
    limit: float
    full: bool = False
    """Whether it has shown how many it takes."""
    lowered_at: int = 0
    """The number of the newest call when it refused last; what older calls meet is the same news."""
    taken: int = 0
    """How many calls were under way then without those that were refused: what the server takes."""

    @classmethod
    def initial(cls, bound: int | None) -> "ConcurrencyLimit":
        """`bound`: the runtime file's `max_connections`, where it names one; where not, what is safe with a server without metrics."""
        return cls(bound or MAX_CAPACITY, bound or INITIAL_CAPACITY, min(bound or MAX_CAPACITY, INITIAL_CAPACITY))

    @property
    def capacity(self) -> int:
        """Calls that may be under way."""
        return int(self.limit)

    @property
    def reserve(self) -> int:
        """Slots beyond the limit for interactive calls, so that none of them waits for batch calls to end."""
        return min(self.most - self.capacity, max(1, self.capacity // _AHEAD))

    def after_answer(self, in_use: int) -> "ConcurrencyLimit":
        """A call was answered: there may be room for one more where all places were in use."""
        if in_use < self.capacity or self.limit >= self.upto:
            return self
        return replace(self, limit=min(self.upto, self.limit + (1 / self.limit if self.full else 1)))

    def after_load(self, load: ServerLoad, in_use: int) -> "ConcurrencyLimit":
        """The load was read while `in_use` of our calls were under way: the limit falls by the calls queued beyond the target.

        Where most of them have not come to it (they are being written, or read) more of them would not bring it more work.
        """
        if load.queued > 2 * load.target_queue_length:
            limit = min(self.limit, max(1.0, in_use - (load.queued - load.target_queue_length)))
            return replace(self, limit=limit, upto=int(limit), full=True)
        if load.queued >= load.target_queue_length or load.running + load.queued < in_use * _ARRIVED:
            return replace(self, upto=self.capacity, full=self.full or load.queued >= load.target_queue_length)
        further = max(1, self.capacity // 8) if self.full else self.capacity
        return replace(self, upto=min(self.most, self.capacity + further))

    def after_refusal(self, number: int, newest: int, in_use: int) -> "ConcurrencyLimit":
        """The server was too full for call `number`, one of the `in_use` under way; `newest`: of the calls begun so far."""
        known = self
        if number > self.lowered_at:
            known = replace(self, lowered_at=newest, taken=in_use, limit=min(self.limit, in_use * _FEWER))
        taken = known.taken - 1
        return replace(known, taken=taken, limit=max(1.0, min(known.limit, taken)), full=True)


# The load that a server reports: the text of `/metrics` is read into a `ServerLoad`.

_LINE = re.compile(rb"^sglang:(num_running_reqs|num_queue_reqs)(?:\{([^}]*)\})? (\S+)\s*$", re.MULTILINE)
_OF_ONE_PRIORITY = re.compile(rb'priority="[^"]')
"""With priorities on, each has a line of its own beside the total, whose label is empty."""


def parse_load(body: bytes) -> ServerLoad | None:
    """The sums over a server's ranks; None where the page does not have both."""
    sums: dict[bytes, int] = {}
    for name, labels, value in _LINE.findall(body):
        if not _OF_ONE_PRIORITY.search(labels):
            try:
                sums[name] = sums.get(name, 0) + max(0, int(float(value)))
            except (ValueError, OverflowError):
                return None
    if len(sums) < 2:
        return None
    return ServerLoad(sums[b"num_running_reqs"], sums[b"num_queue_reqs"])
