"""The order of found messages."""

import numpy as np

from pandora_dagster.retrieval.messages.document_numbers import document_number
from pandora_dagster.retrieval.messages.message_ranking import Neighbourhood, fuse_signals, rank_messages
from pandora_dagster.retrieval.messages.search_question import SearchQuestion
from tests.retrieval.messages.ranking_rig import Unit, message_units, term_matches


def _unit(number: int, place: int = 1, **fields: object) -> Unit:
    return Unit(**({"doc": document_number(number, place), "length": 5} | fields))  # type: ignore[arg-type]


def _order(units: list[Unit], places: dict[str, dict[int, int]], **asked: object) -> list[tuple[int, int]]:
    fields = {"words": {t: 1.0 for t in places if t[0] not in "@~"}, "prefixes": {}, "dates": tuple(t for t in places if t[0] == "@")}
    question = SearchQuestion(**(fields | asked))  # type: ignore[arg-type]
    found = rank_messages(question, message_units(units), term_matches(question, units, places))
    return [(s.number, s.doc - document_number(s.number)) for s in found]


def test_nothing_matches_nothing_is_ranked() -> None:
    """Messages are never made up."""
    assert _order([_unit(1), _unit(2)], {"desk": {}}) == []


def test_neighbours_stand_behind_what_matched() -> None:
    """Nearer ones first."""
    assert _order([_unit(n) for n in range(1, 6)], {"desk": {document_number(3, 1): 1}})[:3] == [(3, 1), (4, 1), (2, 1)]


def test_a_neighbour_is_one_of_the_same_session() -> None:
    """What was said before or after in another session is none."""
    units = [_unit(1, session="a"), _unit(2, session="b"), _unit(3, session="a")]
    assert set(_order(units, {"desk": {document_number(1, 1): 1}})) == {(1, 1), (3, 1)}


def test_the_named_speaker_stands_before_the_other() -> None:
    """And before that, what they tell of themselves."""
    units = [
        _unit(1, session="a", speaker="Ann"),
        _unit(2, session="b", speaker="Bob"),
        _unit(3, session="c", speaker="Bob", first_person=True),
    ]
    assert _order(units, {"desk": {u.doc: 1 for u in units}}, named_speakers=("Bob",)) == [(3, 1), (2, 1), (1, 1)]


def test_a_question_stands_behind_what_is_told() -> None:
    """Among equals, a message that asks is less likely to answer."""
    units = [_unit(1, session="a"), _unit(2, session="b", asks=True)]
    assert _order(units, {"desk": {u.doc: 1 for u in units}}) == [(1, 1), (2, 1)]


def test_among_equals_the_longer_stands_first_then_the_newer() -> None:
    """A message that says more is more likely to answer."""
    units = [
        _unit(1, session="a"),
        _unit(2, session="b"),
        _unit(3, session="c", speaker="Bob"),
        _unit(4, session="d", speaker="Bob", length=9),
    ]
    assert _order(units[:2], {"desk": {u.doc: 1 for u in units[:2]}}) == [(2, 1), (1, 1)]
    assert _order([*units[2:], _unit(5, session="e", speaker="Bob")], {}, named_speakers=("Bob", "Ann")) == [(4, 1), (5, 1), (3, 1)]


def test_the_date_of_a_turn_holds_for_its_messages() -> None:
    """A question of a date alone finds them; a message that points to the date itself stands first."""
    units = [_unit(1, 0, session="a"), _unit(1, 1, session="a"), _unit(2, 1, session="b")]
    assert _order(units, {"@may": {document_number(1, 0): 1, document_number(2, 1): 1}})[0] == (2, 1)
    assert set(_order(units, {"@may": {document_number(1, 0): 1}})) == {(1, 0), (1, 1)}


def test_messages_answer_to_words_of_their_turns_summary() -> None:
    """A word that only the summary has leads to the turn's messages."""
    units = [_unit(1, 0, session="a"), _unit(1, 1, session="a"), _unit(2, 1, session="b")]
    assert set(_order(units, {"desk": {document_number(1, 0): 1}})) == {(1, 0), (1, 1)}


def test_beginnings_of_words_count_a_little() -> None:
    """Less than the word itself."""
    units = [_unit(1, session="a"), _unit(2, session="b")]
    places = {"painter": {document_number(1, 1): 1}, "~paint": {document_number(1, 1): 1, document_number(2, 1): 1}}
    assert _order(units, places, words={"painter": 1.0}, prefixes={"~paint": "paint"}) == [(1, 1), (2, 1)]


def test_what_the_named_speaker_said_is_a_match() -> None:
    """It stands behind what shares words with the question; what others said is none."""
    units = [_unit(1, session="a", speaker="Bob"), _unit(2, session="b", speaker="Bob"), _unit(3, session="c", speaker="Ann")]
    assert _order(units, {"desk": {document_number(1, 1): 1}}, named_speakers=("Bob",)) == [(1, 1), (2, 1)]
    assert _order(units, {"desk": {}}) == []


def test_signals_are_fused_by_their_weights() -> None:
    """The greater weight decides."""
    units = [_unit(1, session="a"), _unit(2, session="b")]
    signals = {"words": np.array([1.0, 0.0]), "similarity": np.array([0.0, 1.0])}
    for weight, first in ((0.5, 1), (5.0, 2)):
        found = fuse_signals(message_units(units), signals, weights={"words": 1.0, "similarity": weight})
        assert [s.number for s in found] == [first, 3 - first]


def test_what_was_said_on_the_named_day_stands_first() -> None:
    """All messages of its turns, before what shares all the words."""
    units = [_unit(1, 0, session="a"), _unit(1, session="a"), _unit(1, 2, session="a"), _unit(5, session="b")]
    places = {"desk": {document_number(5, 1): 3}, "@2026-10-29": {document_number(1, 0): 1}}
    assert _order(units, places, dates=(), message_days=("@2026-10-29",))[-1] == (5, 1)


def test_a_window_ends_where_its_session_does() -> None:
    """Sessions that run side by side, and one shorter than the window; turns have their own count."""
    units = [_unit(1, 0, session="a"), *(_unit(n, session="ab"[n % 2]) for n in range(1, 7)), _unit(9, session="c")]
    sums = Neighbourhood(message_units(units), {-1: 0.5, 0: 1.0, 2: 0.25}).window_sums(np.array([3.0, 1, 10, 100, 1000, 0, 0, 5]))
    assert sums.tolist() == [3.0, 51.0, 510.0, 100.0, 1000.0, 0.25, 2.5, 5.0]
