"""Likeness of vectors as a signal of the ranking."""

import pytest

from pandora_dagster.retrieval.messages.document_numbers import document_number
from pandora_dagster.retrieval.messages.message_ranking import WEIGHTS, message_signals, rank_messages
from pandora_dagster.retrieval.messages.search_question import SearchQuestion
from tests.retrieval.messages.ranking_rig import Unit, message_units, term_matches

_UNITS = [Unit(document_number(number, 1)) for number in range(1, 10)]
_QUESTION = SearchQuestion({}, {}, ())
_ASKED = (_QUESTION, message_units(_UNITS), term_matches(_QUESTION, _UNITS, {}))


def _cosines(**high: float) -> dict[int, float]:
    return {unit.doc: high.get(f"m{number}", 0.1) for number, unit in enumerate(_UNITS, 1)}


def _scores(cosines: dict[int, float]) -> dict[int, float]:
    """The units that have a score."""
    scores = message_signals(*_ASKED, cosines)["similarity"]
    return {unit.doc: score for unit, score in zip(_UNITS, scores.tolist(), strict=True) if score}


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
    first = next(rank_messages(*_ASKED, _cosines(m5=0.8)))
    assert first.number == 5 and 0 < first.score < WEIGHTS["similarity"]


def test_messages_that_are_all_alike_or_have_no_vector_get_no_score() -> None:
    """And a message without one stands beside those with one."""
    assert _scores(_cosines()) == _scores({}) == {}
    some = _scores({doc: value for doc, value in _cosines(m5=0.8).items() if doc != document_number(4, 1)})
    assert document_number(4, 1) not in some and document_number(5, 1) in some
