"""Depth and linked sessions: what the index may offer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.turns import Candidate, TurnRow
from pandora_dagster.retrieval.retrieval_depth import RetrievalScope, best_candidates, retrieval_scope
from pandora_dagster.retrieval.retrieval_policy import MAX_CANDIDATES

BACK = "as agreed"
LIGHT = RetrievalScope("light", "")


def candidate(number, score, session="s1"):
    row = TurnRow(
        user_id="anna", turn_id=f"turn_{number:06d}", number=number, session_id=session, state="saved", created_at="", last_activity=""
    )
    return Candidate(row, score)


@pytest.mark.parametrize(
    ("intent", "referred", "depth"),
    [
        ("query", "", "light"),
        ("recall", "", "light"),
        ("query", BACK, "full"),
        ("navigation", "", "minimal"),
        ("navigation", BACK, "full"),
        ("greeting", BACK, "none"),
        ("another", "", "light"),
    ],
)
def test_depth_by_intent_and_reference(intent, referred, depth):
    """002's table; a reference looks fully unless the intent recalls nothing."""
    assert retrieval_scope(intent, referred).depth == depth


def test_a_linked_session_counts_three_tenths_more():
    """Enough to pass a neighbour, not to pass what is far better."""
    found = [candidate(1, 3.0, "s3"), candidate(2, 2.0, "s3"), candidate(3, 1.8, "s2")]
    assert [c.row.number for c in best_candidates(found, LIGHT, linked=frozenset({"s2"}))] == [1, 3, 2]
    assert [c.row.number for c in best_candidates(found, LIGHT, linked=frozenset())] == [1, 2, 3]


@given(st.lists(st.floats(0, 1e6), max_size=80), st.sampled_from(sorted(MAX_CANDIDATES)))
def test_what_is_offered_is_never_more_than_its_depth(scores, depth):
    """Best first; of anything that was found and may be offered, the best always is."""
    found = [candidate(n, s) for n, s in enumerate(scores, 1)]
    kept = best_candidates(found, RetrievalScope(depth, ""), linked=frozenset())
    assert len(kept) == min(MAX_CANDIDATES[depth], len(scores)) and [c.score for c in kept] == sorted((c.score for c in kept), reverse=True)
    assert depth == "none" or not scores or kept[0].score == max(scores)
