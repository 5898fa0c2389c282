"""Whether and when a call is tried again."""

import pytest

from pandora_dagster.contracts.recipe_schema import QualityGates
from pandora_dagster.errors import (
    BadAnswerError,
    EndpointDownError,
    EndpointFullError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RateLimitedError,
    RuntimeUnreachableError,
)
from pandora_dagster.execution.call.attempts import MAX_PAUSE_S, UNREACHABLE_RETRIES, RetryBudget, fault_of, pause_s


def pauses(error: ModelError, **gates: int) -> list[float]:
    """The pauses before each retry of a call that always ends with `error`."""
    retries, found = RetryBudget("call", QualityGates(**gates)), list[float]()
    while (pause := retries.pause_before_next(fault_of(error))) is not None:
        found.append(pause)
    assert retries.retries == len(found)
    return found


@pytest.mark.parametrize(
    ("error", "retries", "waits"),
    [
        (BadAnswerError("cut"), 2, False),
        (ModelTimeoutError("late"), 2, False),
        (RateLimitedError("429"), 2, True),
        (RuntimeUnreachableError("refused"), UNREACHABLE_RETRIES, True),
        (ModelRejectedError("400"), 0, False),
        (EndpointFullError("no free place"), 0, True),
        (EndpointDownError("left alone"), 0, True),
    ],
)
def test_each_class_of_error_has_its_own_retry_policy(error: ModelError, retries: int, waits: bool) -> None:
    """How often, and whether a pause comes before it."""
    found = pauses(error, max_retries=2)
    assert len(found) == retries and all((pause > 0) == waits for pause in found)


def test_an_endpoint_that_is_away_does_not_use_up_the_recipes_retries() -> None:
    """And the other way round: each has its own count."""
    retries = RetryBudget("call", QualityGates(max_retries=1))
    away, bad = fault_of(RuntimeUnreachableError("refused")), fault_of(BadAnswerError("cut"))
    messages = [retries.pause_before_next(fault) is not None for fault in (away, bad, away, bad, away, away, away)]
    assert messages == [True, True, True, False, True, True, False] and (retries.answer_retries, retries.unreachable_retries) == (
        1,
        UNREACHABLE_RETRIES,
    )


def test_all_attempts_together_have_a_deadline() -> None:
    """What was spent at servers and in pauses counts; the recipe's time for a call and its retries is the end."""
    assert RetryBudget("call", QualityGates(timeout_ms=30_000, max_retries=2)).deadline_s == 90
    retries = RetryBudget("call", QualityGates(timeout_ms=1_000, max_retries=2), spent_s=2.95)
    assert retries.pause_before_next(fault_of(RuntimeUnreachableError("reset"))) is None
    assert retries.pause_before_next(fault_of(BadAnswerError("cut"))) == 0.0
    assert sum(pauses(RuntimeUnreachableError("refused"), timeout_ms=100, max_retries=2)) < 0.3


def test_pauses_double_up_to_a_bound_and_differ_between_calls() -> None:
    """The same call pauses the same; two calls spread out."""
    assert pause_s("a", 1) == pause_s("a", 1) != pause_s("b", 1)
    assert all(0.1 * 2**n <= pause_s("a", n + 1) <= 0.2 * 2**n for n in range(4))
    assert pause_s("a", 40) <= MAX_PAUSE_S


def test_the_last_attempt_gets_what_is_left() -> None:
    """The recipe's time for one attempt, until less is left of the call's; nothing of it is granted twice."""
    retries = RetryBudget("call", QualityGates(timeout_ms=1_000, max_retries=2))
    assert retries.attempt_ms == 1_000
    retries.spent_s = 2.75
    assert retries.attempt_ms == 250
    retries.spent_s = 3.5
    assert retries.attempt_ms == 0 and retries.pause_before_next(fault_of(BadAnswerError("cut"))) is None


def test_a_server_that_asks_for_a_pause_gets_it_within_the_calls_time() -> None:
    """At least as long as it asks; where that leaves no time for an attempt the call ends at once, unpaused."""
    asking = RateLimitedError("429")
    asking.retry_after_s = 3.0
    assert pauses(asking, max_retries=2, timeout_ms=30_000) == [3.0, 3.0]
    asking.retry_after_s = 20.0
    assert pauses(asking, max_retries=2, timeout_ms=10_000) == [20.0]
    asking.retry_after_s = 30.0
    assert pauses(asking, max_retries=2, timeout_ms=10_000) == []
    asking.retry_after_s = 3_600.0
    assert pauses(asking, max_retries=2, timeout_ms=10_000) == []
    asking.retry_after_s = 0.0001
    assert pauses(asking, max_retries=1) == [pause_s("call", 1)]
