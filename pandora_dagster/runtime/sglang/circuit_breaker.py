"""Circuit breaker of one address: open after repeated failures, half open for a single call. Knows times and counts."""

from collections.abc import Callable
from dataclasses import dataclass, field

FAILURES_TO_OPEN = 5
"""In a row, with no answer between them."""
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class CircuitBreaker:
    """One address's circuit breaker. Closed: calls go. Open: none goes until the pause is over. Then one goes, and decides."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    failures: int = 0
    """Since the last answer."""
    last: str = ""
    """The message of the last failure."""
    _until: float | None = None
    _pause_s: float = field(default_factory=lambda: FIRST_PAUSE_S)
    _probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether calls are kept away, a probe under way or not."""
        return self._until is not None

    @property
    def wait_s(self) -> float:
        """Seconds until a call may be tried; 0.0 where one may go now, or will be decided by the probe under way."""
        return 0.0 if self._until is None or self._probing else max(0.0, self._until - self.clock())

    def allows(self) -> bool:
        """Whether a call may go now."""
        return not self._probing and self.wait_s == 0.0

    def record_start(self) -> None:
        """A call that was allowed goes; where the circuit was open it is the probe."""
        self._probing = self._until is not None

    def record_success(self) -> None:
        """The server answered, even with an error: it is reachable."""
        self.failures, self.last, self._until, self._pause_s, self._probing = 0, "", None, FIRST_PAUSE_S, False

    def record_failure(self, what: str) -> None:
        """The server could not be reached; a failed probe doubles the pause."""
        self.failures, self.last = self.failures + 1, what
        if self._probing:
            self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        if self._probing or (self._until is None and self.failures >= FAILURES_TO_OPEN):
            self._until = self.clock() + self._pause_s
        self._probing = False

    def record_timeout(self, what: str) -> None:
        """A call got no answer in its time: a loaded server does that, and so does one that hangs; of a probe it is a failure."""
        if self._probing:
            self.record_failure(what)

    def record_undecided(self) -> None:
        """A call was given up without having learned anything about the server."""
        self._probing = False
