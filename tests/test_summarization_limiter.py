"""The limiter under its documented path, as a caller without arguments uses it."""

import time

from pandora_dagster.summarization_limiter import SummarizationRateLimiter, truncate_entries


def test_without_arguments_it_uses_the_monotonic_clock() -> None:
    """003 "Performance Notes": calls recorded now count now, and a backoff has begun now."""
    limiter = SummarizationRateLimiter(max_calls_per_minute=2)
    assert limiter.can_call() and limiter.can_call(time.monotonic())
    limiter.record_call()
    limiter.record_call()
    assert (limiter.can_call(), limiter.calls_remaining_in_window, limiter.calls_remaining_in_session) == (False, 0, 198)
    assert limiter.can_call(time.monotonic() + 61) and not limiter.is_rate_limited
    assert limiter.record_rate_limit_error() == 2.0 and limiter.is_rate_limited
    assert not limiter.can_call(time.monotonic() + 1)


def test_truncation_by_its_documented_path() -> None:
    """003 "truncate_entries": pipes between entries."""
    assert truncate_entries(["one", "two"]) == "one | two"
