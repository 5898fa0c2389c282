"""The limiter's window, session and backoff by tables of times, and its memory across processes."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.summarization_rate import LimiterState, SummarizationRateLimiter


class Clock:
    """A clock that stands where it is put."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@pytest.mark.parametrize(
    ("calls", "now", "allowed"),
    [
        ([], 0.0, True),
        ([0.0, 1.0], 2.0, True),
        ([0.0, 1.0, 2.0], 2.0, False),
        ([0.0, 1.0, 2.0], 59.9, False),
        ([0.0, 1.0, 2.0], 60.0, True),
        ([0.0, 59.0, 59.5], 60.5, True),
        ([2.0, 0.0, 1.0], 61.5, True),
        ([50.0, 50.0, 50.0, 50.0], 109.9, False),
        ([50.0, 50.0, 50.0, 50.0], 110.0, True),
    ],
)
def test_the_window_slides(calls: list[float], now: float, allowed: bool) -> None:
    """Three calls in any 60 seconds; a call leaves the window after exactly its length, in whatever order they were recorded."""
    limiter = SummarizationRateLimiter(max_calls_per_minute=3)
    for at in calls:
        limiter.record_call(now=at)
    assert limiter.can_call(now=now) is allowed


def test_the_session_has_an_end() -> None:
    """However long one waits, a session's calls do not come back."""
    limiter = SummarizationRateLimiter(max_calls_per_minute=10, max_calls_per_session=2)
    limiter.record_call(now=0.0)
    assert limiter.can_call(now=1.0) and limiter.calls_remaining_in_session == 1
    limiter.record_call(now=1.0)
    limiter.record_call(now=2.0)
    assert not limiter.can_call(now=1e9) and limiter.calls_remaining_in_session == 0


@pytest.mark.parametrize(
    ("errors", "seconds"), [(0, 0.0), (1, 2.0), (2, 4.0), (3, 8.0), (4, 16.0), (5, 32.0), (6, 60.0), (7, 60.0), (2000, 60.0)]
)
def test_backoff_doubles_up_to_a_minute(errors: int, seconds: float) -> None:
    """2^n after n errors in a row, capped at 60 s (003 "backoff_seconds"); any number of errors is taken."""
    limiter = SummarizationRateLimiter()
    last = 0.0
    for _ in range(errors):
        last = limiter.record_rate_limit_error(now=100.0)
    assert last == limiter.backoff_seconds() == seconds
    assert limiter.can_call(now=100.0 + seconds)
    assert not errors or not limiter.can_call(now=100.0 + seconds - 0.01)


def test_a_success_ends_the_backoff() -> None:
    """After a reset calls are allowed at once, and the next error begins at two seconds; the count of all errors stays."""
    clock = Clock(10.0)
    limiter = SummarizationRateLimiter(clock=clock)
    limiter.record_rate_limit_error()
    limiter.record_rate_limit_error()
    assert limiter.is_rate_limited
    limiter.reset_backoff()
    assert not limiter.is_rate_limited and limiter.can_call() and limiter.backoff_seconds() == 0.0
    assert limiter.record_rate_limit_error() == 2.0 and limiter.get_stats()["rate_limit_errors"] == 3
    clock.at = 12.0
    assert not limiter.is_rate_limited and limiter.backoff_seconds() == 2.0


def test_statistics() -> None:
    """Limits, counts and backoff, each under its own name."""
    limiter = SummarizationRateLimiter(3, 5, 30.0, clock=(clock := Clock(100.0)))
    for at in (60.0, 80.0, 90.0):
        limiter.record_call(now=at)
    limiter.record_rate_limit_error()
    clock.at = 101.0
    assert limiter.get_stats() == {
        "max_calls_per_minute": 3,
        "max_calls_per_session": 5,
        "window_seconds": 30.0,
        "calls_in_window": 2,
        "calls_in_session": 3,
        "calls_remaining_in_window": 1,
        "calls_remaining_in_session": 2,
        "rate_limit_errors": 1,
        "consecutive_errors": 1,
        "backoff_seconds": 2.0,
        "is_rate_limited": True,
    }


def test_looking_changes_nothing() -> None:
    """Asking about the future does not forget the present."""
    limiter = SummarizationRateLimiter(1, clock=Clock(0.0))
    limiter.record_call()
    assert limiter.can_call(now=1000.0)
    assert not limiter.can_call() and limiter.calls_remaining_in_window == 0


Use = Callable[[SummarizationRateLimiter], object]


@given(
    uses=st.lists(st.tuples(st.sampled_from(["call", "error", "reset"]), st.floats(0, 30)), max_size=30),
    boot=st.floats(0, 1e6),
    later=st.floats(0, 200),
)
@settings(max_examples=60, deadline=None)
def test_a_restart_forgets_nothing(uses: list[tuple[str, float]], boot: float, later: float) -> None:
    """A limiter saved and opened by a process whose monotonic clock began elsewhere decides as the first one would have."""
    clock = Clock(5_000.0)
    first = SummarizationRateLimiter(4, 20, clock=clock)
    steps: dict[str, Use] = {
        "call": lambda f: f.record_call(),
        "error": lambda f: f.record_rate_limit_error(),
        "reset": lambda f: f.reset_backoff(),
    }
    for use, pause in uses:
        clock.at += round(pause)
        steps[use](first)
    wall = 1_795_000_000.0
    saved = first.state(wall=wall)
    clock.at += (pause := round(later) + 0.5)
    second = SummarizationRateLimiter.from_state(saved, 4, 20, clock=Clock(round(boot)), wall=wall + pause)
    assert second.get_stats() == first.get_stats()
    assert second.can_call() == first.can_call()


def test_state_holds_wall_clock_times() -> None:
    """Saved times are seconds since 1970, not readings of a clock that another process does not share (DECISIONS 7)."""
    limiter = SummarizationRateLimiter(clock=Clock(500.0))
    limiter.record_call(now=430.0)
    limiter.record_call(now=490.0)
    limiter.record_rate_limit_error(now=499.0)
    assert limiter.state(wall=10_000.0) == LimiterState((9_990.0,), 2, 1, 1, 10_001.0)


def test_limits_come_from_the_settings() -> None:
    """A saved state binds nobody to the limits of yesterday."""
    state = LimiterState(calls=(99.0,), session_calls=7)
    assert SummarizationRateLimiter.from_state(state, 1, 8, clock=Clock(), wall=100.0).can_call() is False
    assert SummarizationRateLimiter.from_state(state, 2, 8, clock=Clock(), wall=100.0).can_call() is True
    assert SummarizationRateLimiter.from_state(state, 2, 7, clock=Clock(), wall=100.0).can_call() is False


def test_a_clock_set_back_blocks_for_a_window_at_most() -> None:
    """Calls and backoffs that seem to lie years ahead count as of now."""
    state = LimiterState(calls=(9e9,), session_calls=1, errors=1, consecutive_errors=1, backoff_until=9e9)
    limiter = SummarizationRateLimiter.from_state(state, 1, clock=Clock(50.0), wall=1_000.0)
    assert not limiter.can_call(now=51.0) and not limiter.can_call(now=109.0) and limiter.can_call(now=110.0)


@given(st.lists(st.floats(0, 100), max_size=8), st.floats(100, 200), st.integers(0, 2))
@settings(max_examples=60)
def test_the_time_until_a_call_is_the_time_until_it_may_be_made(calls: list[float], now: float, errors: int) -> None:
    """0.0 exactly where a call is allowed; after that many seconds it is; None where the session has none left."""
    limiter = SummarizationRateLimiter(max_calls_per_minute=3, max_calls_per_session=8, clock=lambda: now)
    for at in calls:
        limiter.record_call(now=at)
    for _ in range(errors):
        limiter.record_rate_limit_error(now=now)
    wait = limiter.seconds_until_allowed(now)
    assert (wait == 0.0) == limiter.can_call(now) and (wait is None) == (len(calls) == 8)
    assert wait is None or limiter.can_call(now + wait + 1e-6)
