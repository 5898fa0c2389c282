"""Likeness of vectors as a signal of the ranking."""

import pytest

from pandora_dagster.retrieval.messages.document_numbers import document_number
from pandora_dagster.retrieval.messages.message_ranking import WEIGHTS, MessageUnit, TermMatches, message_signals, rank_messages
from pandora_dagster.retrieval.messages.search_question import SearchQuestion

_UNITS = [MessageUnit(document_number(number, 1), "s") for number in range(1, 10)]


def _cosines(**high: float) -> dict[int, float]:
    return {unit.doc: high.get(f"m{unit.number}", 0.1) for unit in _UNITS}


def _scores(cosines: dict[int, float]) -> dict[int, float]:
    return message_signals(SearchQuestion({}, {}, ()), _UNITS, TermMatches({}, {}), cosines)["similarity"]


def test_what_stands_out_is_lifted_and_nothing_is_pushed_down() -> None:
    """The one that is alike most, and around it its neighbours."""
    scores = _scores(_cosines(m5=0.8))
    assert max(scores, key=lambda doc: scores[doc]) == document_number(5, 1) and document_number(4, 1) in scores
    assert all(value > 0 for value in scores.values())


def test_a_message_alone_and_one_among_its_like_stand_out_by_what_is_farther() -> None:
    """One alike among others that are not keeps its own lead, whatever its window; one that says little has its window's."""
    lone = _scores(_cosines(m5=0.8))
    assert lone[document_number(5, 1)] == pytest.approx(8**0.5 / 4)  # one of nine: (1 - 1/9) / sqrt(1/9 * 8/9)
    among = _scores(_cosines(m4=0.8, m6=0.8))
    assert 0 < among[document_number(5, 1)] < among[document_number(4, 1)] and document_number(1, 1) not in among


def test_a_weak_lead_weighs_less_than_a_strong_one() -> None:
    """Four standard deviations earn the whole weight: among a few messages nothing can."""
    found = rank_messages(SearchQuestion({}, {}, ()), _UNITS, TermMatches({}, {}), _cosines(m5=0.8))
    assert found[0].unit.number == 5 and 0 < found[0].score < WEIGHTS["similarity"]


def test_messages_that_are_all_alike_or_have_no_vector_get_no_score() -> None:
    """And a message without one stands beside those with one."""
    assert _scores(_cosines()) == _scores({}) == {}
    some = _scores({doc: value for doc, value in _cosines(m5=0.8).items() if doc != document_number(4, 1)})
    assert document_number(4, 1) not in some and document_number(5, 1) in some
