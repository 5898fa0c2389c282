"""The rate limit of summarization calls in a live session (specification 003, "SummarizationRateLimiter").

A call with a short wait waits; a call with a long wait, or over the number of its session, is deferred with a reason
(decision 7: docs/decisions/07-levels-link-every-fact.md). No text is cut in its place.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.compression.summarization_rate import LimiterState, SummarizationRateLimiter
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.errors import DocumentError, StoreError

SUMMARIZING_ROLES = frozenset({"compressor", "meaning_checker", "session_summarizer", "digest_builder", "conversation_summarizer"})
"""Roles of recipes whose calls are limited; the calls of the turn itself are not."""
MAX_WAIT_S = 20.0
"""A call with a longer wait is deferred, since the user waits for the answer."""


class RateLimitStates(Protocol):
    """Storage of the limiter states of sessions; `update` excludes other processes."""

    def update(self, user: UserId, session: SessionId, change: Callable[[LimiterState | None], LimiterState], /) -> LimiterState: ...


class SessionRateLimit:
    """Admits the calls of `SUMMARIZING_ROLES`: 10 a minute and 200 a session (the defaults of specification 003).

    It admits fewer while the server asks for a pause.
    """

    def __init__(
        self,
        states: RateLimitStates,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        config: SummarizationConfig | None = None,
    ) -> None:
        limits = config or SummarizationConfig()
        self._per_window, self._per_session = limits.max_calls_per_minute, limits.max_calls_per_session
        self._window_s = limits.rate_limit_window_seconds
        self._states, self._clock, self._sleep = states, clock, sleep

    async def admit(self, site: CallSite) -> str:
        """Wait until the call may be made, and count it; return why it is deferred, "" where it is admitted."""
        remaining_s = MAX_WAIT_S
        while True:
            try:
                wait_s = self._count_if_allowed(site)
            except (StoreError, DocumentError) as error:
                return f"deferred: the limits of session {site.session} cannot be stored: {error}"
            if wait_s == 0.0:
                return ""
            if wait_s is None:
                return f"deferred: session {site.session} has made its {self._per_session} summarization calls"
            if wait_s > remaining_s:
                return f"deferred: session {site.session} may make its next summarization call in {wait_s:.0f} s"
            remaining_s -= wait_s
            await self._sleep(wait_s)

    def record_refusal(self, site: CallSite) -> None:
        """Record that the server refused a call (429): the session pauses, twice as long each time."""
        self._update_limiter(site, lambda limiter: limiter.record_rate_limit_error())

    def record_success(self, site: CallSite) -> None:
        """Record that the server answered a call, which ends a pause."""
        self._update_limiter(site, lambda limiter: limiter.reset_backoff(), only_after_errors=True)

    def _count_if_allowed(self, site: CallSite) -> float | None:
        """Count a call that is allowed now, and return 0.0; else the seconds until one is, None where the session has no calls left."""
        waits: list[float | None] = []

        def change(stored: LimiterState | None) -> LimiterState:
            limiter, now = self._limiter(stored)
            waits.append(limiter.seconds_until_allowed())
            if waits[-1] == 0.0:
                limiter.record_call()
            return limiter.state(wall=now)

        self._states.update(UserId(site.user), SessionId(site.session), change)
        return waits[-1]

    def _update_limiter(
        self, site: CallSite, change_limiter: Callable[[SummarizationRateLimiter], object], *, only_after_errors: bool = False
    ) -> None:
        """Change the stored limiter of the session; a failure of the store has no effect on the call."""

        def change(stored: LimiterState | None) -> LimiterState:
            limiter, now = self._limiter(stored)
            if not only_after_errors or (stored and stored.consecutive_errors):
                change_limiter(limiter)
            return limiter.state(wall=now)

        try:
            self._states.update(UserId(site.user), SessionId(site.session), change)
        except (StoreError, DocumentError):
            return

    def _limiter(self, stored: LimiterState | None) -> tuple[SummarizationRateLimiter, float]:
        """The limiter in its stored state, and the present time in seconds since 1970."""
        now = self._clock().timestamp()
        limits = (self._per_window, self._per_session, self._window_s)
        return SummarizationRateLimiter.from_state(stored or LimiterState(), *limits, clock=lambda: now, wall=now), now
