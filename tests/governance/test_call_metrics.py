"""Figures of calls, the test that compares two versions, and its verdicts."""

import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.governance.call_metrics import SHARES, CallMetrics, TurnOutcome, measure_calls
from pandora_dagster.governance.regressions import ALPHA, compare_versions, fisher_lower_tail
from tests.defs.conftest import call

SAVED, LOST = TurnOutcome(True), TurnOutcome(False)


def made(good: int, bad: int) -> CallMetrics:
    """Figures of calls that passed and of calls that did not."""
    one = CallMetrics()
    for number in range(good + bad):
        one.add(call("response", "synthesizer", success=number < good), None)
    return one


@pytest.mark.parametrize(
    ("before", "after", "chance"),
    [
        ((3, 4), (1, 4), 17 / 70),
        ((11, 14), (1, 10), 0.0013797),
        ((20, 20), (0, 20), 1 / comb(40, 20)),
        ((20, 20), (20, 20), 1.0),
        ((0, 20), (0, 20), 1.0),
        ((5, 10), (10, 10), 1.0),
        ((0, 0), (3, 5), 1.0),
        ((3, 5), (0, 0), 1.0),
    ],
)
def test_chances_that_are_known(before, after, chance):
    """The lady who tasted tea, a textbook table, and the corners."""
    assert fisher_lower_tail(*before, *after) == pytest.approx(chance, rel=1e-4)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_the_chance_is_a_sum_of_ways(before_good, before_bad, after_good, after_bad):
    """Counted with whole numbers, it is the same."""
    before, after = before_good + before_bad, after_good + after_bad
    found = fisher_lower_tail(before_good, before, after_good, after)
    if not before or not after:
        assert found == 1.0
        return
    good, every = before_good + after_good, before + after
    ways = sum(comb(good, k) * comb(every - good, after - k) for k in range(after_good + 1) if after - k <= every - good)
    assert found == pytest.approx(ways / comb(every, after), rel=1e-9)


@pytest.mark.parametrize("quality", [0.5, 0.9, 0.99])
def test_an_equal_version_is_seldom_called_worse(quality):
    """Over all that 40 and 40 calls of one quality can come to: less often than the stated level."""
    n = 40
    weight = [comb(n, k) * quality**k * (1 - quality) ** (n - k) for k in range(n + 1)]
    wrongly = sum(weight[b] * weight[a] for b in range(n + 1) for a in range(b) if fisher_lower_tail(b, n, a, n) < ALPHA)
    assert wrongly <= ALPHA


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((30, 0), (0, 20), "worse"),
        ((30, 0), (12, 8), "worse"),
        ((30, 0), (19, 1), "not worse"),
        ((0, 30), (20, 0), "not worse"),
        ((30, 0), (14, 6), "worse"),  # a chance of 0.0024, at 0.01 over two shares
        ((30, 0), (15, 5), "not worse"),  # 0.0073: under 0.01, not under half of it
        ((30, 0), (0, 19), "not enough data"),
        ((19, 0), (0, 30), "not enough data"),
    ],
)
def test_a_version_beside_its_predecessor(before, after, verdict):
    """Worse only by more than chance; too few calls are no verdict, whatever they say."""
    found = compare_versions("pipeline/gate", "ab12", made(*after), "cd34", made(*before))
    assert found.verdict == verdict
    assert ("passed" in found.summary) == (verdict == "worse")
    assert compare_versions("pipeline/gate", "ab12", made(*after), "", CallMetrics()).verdict == "no predecessor"


def test_every_figure_is_of_its_calls():
    """Shares over the calls that have the property, sums over all, the worst gate by name."""
    one = CallMetrics()
    one.add(call("r", "s", schema_valid=True, gates={"evidence_required": True}, cost=0.5, answered=True), SAVED)
    one.add(call("r", "s", schema_valid=False, gates={"schema_validation": False}, retries=2, success=False, cost=0.25), LOST)
    one.add(call("r", "s", retries=1, answered=False), TurnOutcome(True, sent_back=True))
    one.add(call("r", "s"), TurnOutcome(True, corrected=True))
    one.add(call("r", "s"), None)
    row = one.row()
    shares = {name: row[name] for name in SHARES}
    assert shares == {"passed": 0.8, "first_time": 0.6, "schema_valid": 0.5, "citations_valid": 1.0, "answered": 0.5, "downstream": 0.25}
    assert (row["calls"], row["gate_failures"], row["retries"], row["cost"]) == (5, 1, 3, 0.75)
    assert dict(one.gate_failures) == {"schema_validation": 1}
    assert row["budget_used"] == pytest.approx(500 / 1500)


def test_stated_confidence_is_held_against_what_came_of_it():
    """Nine tenths sure and right nine times of ten is no error; sure and always wrong is nearly one."""
    honest, wrong, silent, swapped = CallMetrics(), CallMetrics(), CallMetrics(), CallMetrics()
    for number in range(10):
        honest.add(call("r", "s", confidence=0.9), SAVED if number < 9 else LOST)
        wrong.add(call("r", "s", confidence=0.95), TurnOutcome(True, corrected=True))
        silent.add(call("r", "s"), SAVED)
    for number in range(20):
        swapped.add(call("r", "s", confidence=0.2 if number % 2 else 0.8), SAVED if number % 2 else LOST)
    assert swapped.calibration_error == pytest.approx(0.8), "too little and too much do not make up for each other"
    assert honest.calibration_error == pytest.approx(0.0)
    assert wrong.calibration_error == pytest.approx(0.95)
    assert silent.calibration_error is None


def test_a_long_log_is_summed_as_it_is_read():
    """Records are taken one by one; only the sums stay."""
    chosen = random.Random(7)
    given = [(chosen.choice("ab"), chosen.random() < 0.9) for _ in range(5_000)]
    base = call("response", "synthesizer")
    records = (base.model_copy(update={"recipe_version": version, "success": good}) for version, good in given)
    found = measure_calls(records, lambda record: record.recipe_version, lambda record: None)
    assert {v: (f.calls, f.shares["passed"].good) for v, f in found.items()} == {
        v: (sum(1 for w, _ in given if w == v), sum(good for w, good in given if w == v)) for v in "ab"
    }
