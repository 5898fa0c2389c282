"""Likeness of vectors as signals of the ranking."""

from pandora_dagster.selection.likeness import LIKENESS_WEIGHT, likeness_signals
from pandora_dagster.selection.places import doc_of
from pandora_dagster.selection.question import Question
from pandora_dagster.selection.ranking import Matches, Unit, ranked_messages

_UNITS = [Unit(doc_of(number, 1), "s") for number in range(1, 10)]


def _cosines(**high: float) -> dict[int, float]:
    return {unit.doc: high.get(f"m{unit.number}", 0.1) for unit in _UNITS}


def test_what_stands_out_is_lifted_and_nothing_is_pushed_down() -> None:
    """The one that is alike, and around it its neighbours; the others have no signal."""
    own, window = likeness_signals(_UNITS, _cosines(m5=0.8))
    assert set(own.scores) == {doc_of(5, 1)}
    assert max(window.scores, key=lambda doc: window.scores[doc]) == doc_of(5, 1) and doc_of(4, 1) in window.scores
    assert all(value > 0 for signal in (own, window) for value in signal.scores.values())


def test_a_weak_lead_weighs_less_than_a_strong_one() -> None:
    """Four standard deviations earn the whole weight: among a few messages nothing can."""
    found = ranked_messages(Question({}, {}, ()), _UNITS, Matches({}, {}), likeness_signals(_UNITS, _cosines(m5=0.8)))
    assert found[0].unit.number == 5 and 0 < found[0].score < 2 * LIKENESS_WEIGHT


def test_messages_that_are_all_alike_or_have_no_vector_get_no_signal() -> None:
    """And a message without one stands beside those with one."""
    assert likeness_signals(_UNITS, _cosines()) == likeness_signals(_UNITS, {}) == ()
    own, window = likeness_signals(_UNITS, {doc: value for doc, value in _cosines(m5=0.8).items() if doc != doc_of(4, 1)})
    assert doc_of(4, 1) not in own.scores and doc_of(4, 1) not in window.scores
