"""What a call took, in its record: all attempts, the wait, the cost, the sources of its context."""

from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import Price, Usage, token_alarm
from pandora_dagster.errors import BadAnswerError, HaltError, RuntimeUnreachableError

PRICES = {ModelLayer.MIND: Price(input=3.0, output=15.0, cached=0.3)}


def failed(error: Any, tokens: tuple[int, int, int] = (0, 0, 0), queued_ms: float = 0.0) -> Any:
    error.tokens, error.queued_ms = tokens, queued_ms
    return error


def test_a_price_is_of_a_million_tokens() -> None:
    """Cached prompt tokens have their own, or cost what others do."""
    usage = Usage(prompt=1_000_000, output=100_000, cached=900_000)
    assert PRICES[ModelLayer.MIND].cost(usage) == pytest.approx(0.3 + 0.27 + 1.5)
    assert Price(input=3.0, output=15.0).cost(usage) == pytest.approx(3.0 + 1.5)


def test_every_attempt_counts(rig: Any) -> None:
    """A cut answer was paid for, a refused connection was waited for; the sums stand in the one record."""
    cut = failed(BadAnswerError("cut"), (1_000, 500, 800), 40.0)
    away = failed(RuntimeUnreachableError("refused"), queued_ms=2.5)
    made = rig(cut, away, '{"next_step": "synthesis", "confidence": 0.9}', served=2_000, prices=PRICES)
    record = made.call().record
    assert record.spent == Usage(prompt=3_000, output=500, cached=800) and record.queue_ms == 42.5
    assert record.cost == pytest.approx((200 * 3 + 800 * 0.3 + 500 * 15 + 2_000 * 3) / 1e6)
    assert record.used_tokens == 3_500 and record.retries == 2


def test_a_call_that_failed_tells_what_it_took(rig: Any, make_recipe: Any) -> None:
    """Its record is written with the tokens of every attempt."""
    made = rig(failed(BadAnswerError("cut"), (100, 50, 0), 1.0), recipe=make_recipe(quality_gates={"max_retries": 1}), prices=PRICES)
    with pytest.raises(HaltError):
        made.call()
    record = made.stores.records[0]
    assert not record.success and record.spent == Usage(prompt=200, output=100) and record.queue_ms == 2.0 and record.cost > 0


def test_the_context_is_reported_by_its_sources(rig: Any) -> None:
    """Documents by name, everything else by its kind; together they are the planned prompt."""
    record = rig().call().record
    assert {"policy", "role", "schema", "context.md", "query"} == set(record.context_sizes)
    assert sum(record.context_sizes.values()) == record.tokens.prompt + record.tokens.input


def test_without_counts_the_plan_is_what_was_used(rig: Any) -> None:
    """The embedded runtime counts nothing and costs nothing."""
    record = rig(prices=PRICES).call().record
    assert record.spent == Usage() and record.cost == 0.0 and record.used_tokens == record.tokens.total > 0


def test_an_alarm_over_what_a_turn_is_expected_to_take() -> None:
    """70,000 tokens are none."""
    assert token_alarm(70_000) == "" and token_alarm(73_512).startswith("73,512 tokens in this turn: expected about 70,000")
