"""A turn through the graph in this process."""

import threading

import pytest

from pandora_dagster.defs.run import following
from pandora_dagster.phases.flow import PHASES


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (("validation",), ("validation", "saved_turn", "turn_summary")),
        (("turn_summary",), ("turn_summary",)),
        (("clarification",), ("clarification",)),
        (("turn_request",), tuple(p.name for p in PHASES)),
        (("clarification", "saved_turn"), ("clarification", "saved_turn", "turn_summary")),
    ],
)
def test_a_selection_takes_all_that_follows(select, expected):
    """`phase+`, in the order of the flow."""
    assert following(select) == expected


def test_an_unknown_phase_is_named():
    """A misspelt phase does not run nothing, silently."""
    with pytest.raises(ValueError, match="phase9"):
        following(("phase9",))


def test_the_outcome_holds_the_reports_in_order(graph):
    """The command line prints its account from them."""
    outcome = graph.run()
    assert [r.phase for r in outcome.reports if not r.skipped] == graph.phases.ran
    assert outcome.halt is None
    assert outcome.error is None


def test_two_threads_take_turns(graph):
    """Two runs in one process wait for each other instead of hanging."""
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(graph.run()), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [o.success for o in outcomes] == [True, True]
