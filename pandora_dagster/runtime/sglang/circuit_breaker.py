"""Circuit breaker of one address: open after five failures in a row, half open for a single trial call after a pause."""

from collections.abc import Callable
from dataclasses import dataclass, field

FAILURES_TO_OPEN = 5
"""Failures in a row, with no answer between them."""
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class CircuitBreaker:
    """Closed: calls are allowed. Open: none until the pause is over; then one trial call, whose outcome closes or opens the circuit."""

    clock: Callable[[], float]
    """Monotonic seconds."""
    failures: int = 0
    """Since the last answer."""
    last_error: str = ""
    """The message of the last failure."""
    _open_until: float | None = None
    _pause_s: float = field(default_factory=lambda: FIRST_PAUSE_S)
    _trial_running: bool = False

    @property
    def is_open(self) -> bool:
        """Whether calls are refused, all or all but the trial call."""
        return self._open_until is not None

    @property
    def wait_s(self) -> float:
        """Seconds until a call may be tried; 0.0 where one may start now, or a trial call is running."""
        return 0.0 if self._open_until is None or self._trial_running else max(0.0, self._open_until - self.clock())

    def allows(self) -> bool:
        """Whether a call may start now."""
        return not self._trial_running and self.wait_s == 0.0

    def record_start(self) -> None:
        """A call that was allowed starts; where the circuit is open it is the trial call."""
        self._trial_running = self._open_until is not None

    def record_success(self) -> None:
        """The server answered, even with an error: it is reachable."""
        self.failures, self.last_error, self._open_until, self._pause_s, self._trial_running = 0, "", None, FIRST_PAUSE_S, False

    def record_failure(self, message: str) -> None:
        """The server could not be reached; a failed trial call doubles the pause."""
        self.failures, self.last_error = self.failures + 1, message
        if self._trial_running:
            self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        if self._trial_running or (self._open_until is None and self.failures >= FAILURES_TO_OPEN):
            self._open_until = self.clock() + self._pause_s
        self._trial_running = False

    def record_timeout(self, message: str) -> None:
        """A call got no answer within its time: a loaded server may cause that, so it counts as a failure of the trial call alone."""
        if self._trial_running:
            self.record_failure(message)

    def record_undecided(self) -> None:
        """A call was cancelled, which says nothing about the server."""
        self._trial_running = False
