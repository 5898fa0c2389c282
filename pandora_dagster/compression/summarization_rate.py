"""How many summarization calls may still be made, and when. Makes no call, never waits, opens no file."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

_MAX_BACKOFF_S = 60.0
_MAX_EXPONENT = 6  # 2^6 is over the longest backoff; a larger power would only overflow


@dataclass(frozen=True, slots=True)
class LimiterState:
    """What outlives a process: times are wall-clock seconds since 1970 since a monotonic clock starts again."""

    calls: tuple[float, ...] = ()
    """Calls that were still inside the window."""
    session_calls: int = 0
    errors: int = 0
    """All rate-limit errors."""
    consecutive_errors: int = 0
    backoff_until: float = 0.0


class SummarizationRateLimiter:
    """Calls per sliding window and per session, and backoff after 429 errors (specification 003, "SummarizationRateLimiter").

    `now` is a reading of `clock`, in seconds; the properties and `get_stats` always ask the clock.
    """

    def __init__(
        self,
        max_calls_per_minute: int = 10,
        max_calls_per_session: int = 200,
        window_seconds: float = 60.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._window_limit = max_calls_per_minute
        self._session_limit = max_calls_per_session
        self._window = window_seconds
        self._clock = clock
        self._calls: list[float] = []
        self._session_calls = self._errors = self._consecutive = 0
        self._backoff_until: float | None = None

    def can_call(self, now: float | None = None) -> bool:
        """Whether one more call is allowed: no backoff, and fewer calls than the limits in the window and in the session."""
        at = self._at(now)
        return not self._in_backoff(at) and len(self._recent(at)) < self._window_limit and self._session_calls < self._session_limit

    def seconds_until_allowed(self, now: float | None = None) -> float | None:
        """0.0 where `can_call`, else the seconds until backoff and window let a call through; None where the session has none left."""
        at = self._at(now)
        if self._session_calls >= self._session_limit or self._window_limit < 1:
            return None
        recent = sorted(self._recent(at))
        until_window = recent[-self._window_limit] + self._window - at if len(recent) >= self._window_limit else 0.0
        return max(until_window, (self._backoff_until or at) - at, 0.0)

    def record_call(self, now: float | None = None) -> None:
        """Count one call, allowed or not."""
        at = self._at(now)
        self._calls = [*self._recent(at), at]
        self._session_calls += 1

    def record_rate_limit_error(self, now: float | None = None) -> float:
        """Count one 429 error; returns the seconds during which no call is allowed, twice as many with each further error."""
        at = self._at(now)
        self._errors += 1
        self._consecutive += 1
        self._backoff_until = at + self.backoff_seconds()
        return self.backoff_seconds()

    def backoff_seconds(self) -> float:
        """2^n seconds after n errors in a row, at most 60; 0.0 where there was none."""
        return min(2.0 ** min(self._consecutive, _MAX_EXPONENT), _MAX_BACKOFF_S) if self._consecutive else 0.0

    def reset_backoff(self) -> None:
        """Forget the errors in a row, after a call that succeeded."""
        self._consecutive = 0
        self._backoff_until = None

    @property
    def calls_remaining_in_window(self) -> int:
        return max(0, self._window_limit - len(self._recent(self._clock())))

    @property
    def calls_remaining_in_session(self) -> int:
        return max(0, self._session_limit - self._session_calls)

    @property
    def is_rate_limited(self) -> bool:
        """Whether a backoff is under way; a full window is none."""
        return self._in_backoff(self._clock())

    def get_stats(self) -> dict[str, Any]:
        """Limits, counts and backoff at this moment."""
        return {
            "max_calls_per_minute": self._window_limit,
            "max_calls_per_session": self._session_limit,
            "window_seconds": self._window,
            "calls_in_window": len(self._recent(self._clock())),
            "calls_in_session": self._session_calls,
            "calls_remaining_in_window": self.calls_remaining_in_window,
            "calls_remaining_in_session": self.calls_remaining_in_session,
            "rate_limit_errors": self._errors,
            "consecutive_errors": self._consecutive,
            "backoff_seconds": self.backoff_seconds(),
            "is_rate_limited": self.is_rate_limited,
        }

    def state(self, *, wall: float | None = None) -> LimiterState:
        """What a later process must know; `wall` is the present wall-clock time (`time.time()`)."""
        now = self._clock()
        shift = (time.time() if wall is None else wall) - now
        until = self._backoff_until + shift if self._backoff_until is not None else 0.0
        calls = tuple(at + shift for at in self._recent(now))
        return LimiterState(calls, self._session_calls, self._errors, self._consecutive, until)

    @classmethod
    def from_state(
        cls,
        state: LimiterState,
        max_calls_per_minute: int = 10,
        max_calls_per_session: int = 200,
        window_seconds: float = 60.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: float | None = None,
    ) -> Self:
        """A limiter that goes on where another one stopped; limits come from the settings of today, not from the state.

        Where the wall clock was set back meanwhile, what seems to lie ahead counts as now: a call holds its window's time at most.
        """
        limiter = cls(max_calls_per_minute, max_calls_per_session, window_seconds, clock=clock)
        now = clock()
        shift = now - (time.time() if wall is None else wall)
        limiter._calls = sorted(min(at + shift, now) for at in state.calls)
        limiter._session_calls, limiter._errors, limiter._consecutive = state.session_calls, state.errors, state.consecutive_errors
        if state.consecutive_errors:
            limiter._backoff_until = min(state.backoff_until + shift, now + limiter.backoff_seconds())
        return limiter

    def _at(self, now: float | None) -> float:
        return self._clock() if now is None else now

    def _recent(self, at: float) -> list[float]:
        """Calls inside the window that ends at `at`; a call leaves it after exactly `window_seconds`."""
        return [call for call in self._calls if at - call < self._window]

    def _in_backoff(self, at: float) -> bool:
        return self._backoff_until is not None and at < self._backoff_until
