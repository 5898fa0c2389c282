"""The order of found turns."""

from pandora_dagster.selection.ranking import Found, ranked


def _order(found: list[Found], sessions: dict[str, list[int]]) -> list[int]:
    return [r.number for r in ranked(found, sessions)]


def test_nothing_found_ranks_nothing() -> None:
    """Turns are never made up."""
    assert ranked([], {"s": [1, 2]}) == ()


def test_more_terms_stand_before_fewer() -> None:
    """What matches best stands first."""
    assert _order([Found(1, "a", 2.0), Found(2, "b", 5.0)], {"a": [1], "b": [2]}) == [2, 1]


def test_among_equals_the_newer_turn_stands_first() -> None:
    """Recency breaks ties."""
    assert _order([Found(1, "a", 2.0), Found(9, "b", 2.0)], {"a": [1], "b": [9]}) == [9, 1]


def test_recency_does_not_beat_a_better_match() -> None:
    """An old turn that matches clearly better stays first."""
    assert _order([Found(1, "a", 2.2), Found(9000, "b", 2.0)], {"a": [1], "b": [9000]}) == [1, 9000]


def test_a_named_date_lifts_a_turn() -> None:
    """Of two equal matches the one of the asked date wins."""
    assert _order([Found(1, "a", 2.0, 3.0), Found(2, "b", 2.0)], {"a": [1], "b": [2]}) == [1, 2]


def test_neighbours_in_the_session_are_offered_after_what_matched() -> None:
    """A turn beside a match is a candidate; one further away and one of another session are not."""
    assert set(_order([Found(5, "a", 2.0)], {"a": [3, 4, 5, 6, 7]})) == {4, 5, 6}
    assert _order([Found(5, "a", 2.0)], {"a": [3, 4, 5, 6, 7]})[0] == 5


def test_a_match_with_matching_neighbours_stands_before_a_lone_one() -> None:
    """What is talked about over several turns weighs more than a single mention."""
    assert _order([Found(1, "a", 2.0), Found(2, "a", 2.0), Found(9, "b", 2.0)], {"a": [1, 2], "b": [9]})[0] in (1, 2)


def test_only_dates_may_match() -> None:
    """A question of dates alone finds its turns."""
    assert _order([Found(1, "a", 0.0, 1.0)], {"a": [1]}) == [1]
