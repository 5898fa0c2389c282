"""The circuit breaker of one address, on a clock of the test's."""

from pandora_dagster.runtime.sglang.circuit_breaker import FAILURES_TO_OPEN, FIRST_PAUSE_S, LONGEST_PAUSE_S, CircuitBreaker


class _Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def broken(time: _Time) -> CircuitBreaker:
    breaker = CircuitBreaker(time)
    for n in range(FAILURES_TO_OPEN):
        assert breaker.allows() and not breaker.is_open, n
        breaker.record_start()
        breaker.record_failure("refused")
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    """An answer between them begins the count anew."""
    breaker = CircuitBreaker(_Time())
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker.record_failure("refused")
    breaker.record_success()
    breaker.record_failure("refused")
    assert breaker.allows() and breaker.failures == 1
    opened = broken(_Time())
    assert opened.is_open and not opened.allows() and opened.wait_s == FIRST_PAUSE_S and opened.last_error == "refused"


def test_one_call_tries_again_after_the_pause() -> None:
    """While it is under way no other goes; its answer closes the breaker."""
    time = _Time()
    breaker = broken(time)
    time.now = FIRST_PAUSE_S
    assert breaker.allows()
    breaker.record_start()
    assert not breaker.allows() and breaker.wait_s == 0.0
    breaker.record_success()
    assert breaker.allows() and not breaker.is_open


def test_each_failed_try_doubles_the_pause_up_to_a_minute() -> None:
    """A server that stays away is asked ever more rarely; a late answer of an older call does not count as the try."""
    time = _Time()
    breaker, pauses = broken(time), list[float]()
    for _ in range(6):
        time.now += breaker.wait_s
        breaker.record_start()
        breaker.record_failure("refused")
        pauses.append(breaker.wait_s)
    assert pauses == [10, 20, 40, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_time_out_is_a_failure_of_the_try_only() -> None:
    """A loaded server answers late; one that hangs when it is tried again is still gone."""
    time = _Time()
    breaker = CircuitBreaker(time)
    for _ in range(2 * FAILURES_TO_OPEN):
        breaker.record_start()
        breaker.record_timeout("late")
    assert breaker.allows()
    breaker = broken(time)
    time.now = FIRST_PAUSE_S
    breaker.record_start()
    breaker.record_timeout("late")
    assert breaker.wait_s == 2 * FIRST_PAUSE_S


def test_a_try_that_is_cancelled_leaves_the_next_one() -> None:
    """It learned nothing."""
    time = _Time()
    breaker = broken(time)
    time.now = FIRST_PAUSE_S
    breaker.record_start()
    breaker.record_undecided()
    assert breaker.allows() and breaker.is_open
