"""The rate limit of summarisation calls in a live session (003 "SummarizationRateLimiter", DECISIONS 7).

A call with a short wait waits; one with a long wait, or beyond the calls of its session, is deferred with its reason. No text is cut
instead (DECISIONS 1).
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
"""Roles whose calls are additional to those of the turn itself."""
LONGEST_WAIT_S = 20.0
"""The user waits for the answer: a call with a longer wait is deferred."""


class RateLimitStates(Protocol):
    """Storage of the limiter state of sessions; `update` excludes other processes."""

    def update(self, user: UserId, session: SessionId, change: Callable[[LimiterState | None], LimiterState], /) -> LimiterState: ...


class SessionRateLimit:
    """Admits the calls of `SUMMARIZING_ROLES`: 10 a minute and 200 a session (003's defaults), less while the server asks for a pause."""

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
        """ "" when the call may be made, after it has waited and been counted; else why it is deferred."""
        left = LONGEST_WAIT_S
        while True:
            try:
                wait = self._take_slot(site)
            except (StoreError, DocumentError) as error:
                return f"deferred: the limits of session {site.session} cannot be stored: {error}"
            if wait == 0.0:
                return ""
            if wait is None:
                return f"deferred: session {site.session} has made its {self._per_session} summarisation calls"
            if wait > left:
                return f"deferred: session {site.session} may make its next summarisation call in {wait:.0f} s"
            left -= wait
            await self._sleep(wait)

    def record_refusal(self, site: CallSite) -> None:
        """The server refused a call as one too many: the session pauses, twice as long each time."""
        self._update_limiter(site, lambda limiter: limiter.record_rate_limit_error())

    def record_success(self, site: CallSite) -> None:
        """The server answered a call: its earlier request for a pause is over."""
        self._update_limiter(site, lambda limiter: limiter.reset_backoff(), only_after_errors=True)

    def _take_slot(self, site: CallSite) -> float | None:
        """Count one call where it is allowed now (0.0); else the seconds until one is, None where the session has none left."""
        waits: list[float | None] = []

        def change(known: LimiterState | None) -> LimiterState:
            limiter, now = self._limiter(known)
            waits.append(limiter.seconds_until_allowed())
            if waits[-1] == 0.0:
                limiter.record_call()
            return limiter.state(wall=now)

        self._states.update(UserId(site.user), SessionId(site.session), change)
        return waits[-1]

    def _update_limiter(
        self, site: CallSite, note: Callable[[SummarizationRateLimiter], object], *, only_after_errors: bool = False
    ) -> None:
        """Store what the server answered where the disk allows it; the call itself is valid either way."""

        def change(known: LimiterState | None) -> LimiterState:
            limiter, now = self._limiter(known)
            if not only_after_errors or (known and known.consecutive_errors):
                note(limiter)
            return limiter.state(wall=now)

        try:
            self._states.update(UserId(site.user), SessionId(site.session), change)
        except (StoreError, DocumentError):
            return

    def _limiter(self, known: LimiterState | None) -> tuple[SummarizationRateLimiter, float]:
        now = self._clock().timestamp()
        limits = (self._per_window, self._per_session, self._window_s)
        return SummarizationRateLimiter.from_state(known or LimiterState(), *limits, clock=lambda: now, wall=now), now
