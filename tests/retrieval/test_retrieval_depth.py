"""Depth, threshold, consent and linked sessions: what the index may offer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.turns import Candidate, TurnRow
from pandora_dagster.retrieval.retrieval_depth import RetrievalScope, filter_candidates, quantile, retrieval_scope
from pandora_dagster.retrieval.retrieval_policy import OFFERED, POLICIES

BACK = "as agreed"
ASSISTANT, MEDIATION = POLICIES["assistant"], POLICIES["mediation"]


def candidate(number, score, session="s1"):
    row = TurnRow(
        user_id="anna", turn_id=f"turn_{number:06d}", number=number, session_id=session, state="saved", created_at="", last_activity=""
    )
    return Candidate(row, score)


def how(depth="light", threshold=0.0, crosses=True):
    return RetrievalScope(depth, "", threshold, crosses, 1.3)


@pytest.mark.parametrize(
    ("policy", "kind", "referred", "depth"),
    [
        (ASSISTANT, "query", "", "light"),
        (ASSISTANT, "recall", "", "light"),
        (ASSISTANT, "query", BACK, "full"),
        (ASSISTANT, "navigation", "", "minimal"),
        (ASSISTANT, "navigation", BACK, "full"),
        (ASSISTANT, "greeting", BACK, "none"),
        (MEDIATION, "onboarding", "", "minimal"),
        (MEDIATION, "witnessing", BACK, "full"),
        (MEDIATION, "repair", "", "full"),
        (MEDIATION, "high_distress", BACK, "none"),
    ],
)
def test_depth_by_policy_and_reference(policy, kind, referred, depth):
    """002's table; a reference looks fully unless the kind recalls nothing."""
    assert retrieval_scope(policy, kind, referred, consents=False).depth == depth


def test_only_consent_opens_other_sessions_of_a_mediation():
    """A reference deepens the search and lifts no consent; the assistant's own turns are the user's own."""
    assert retrieval_scope(ASSISTANT, "query", "", consents=False).crosses
    assert not retrieval_scope(MEDIATION, "repair", BACK, consents=False).crosses
    assert retrieval_scope(MEDIATION, "witnessing", "", consents=True).crosses


def test_without_consent_other_sessions_are_left_out():
    """However well they match."""
    found = [candidate(1, 9.0, "s2"), candidate(2, 1.0)]
    assert [c.row.number for c in filter_candidates(found, how(crosses=False), session="s1", linked=frozenset())] == [2]


def test_a_linked_session_counts_three_tenths_more():
    """Enough to pass a neighbour, not to pass what is far better."""
    found = [candidate(1, 3.0, "s3"), candidate(2, 2.0, "s3"), candidate(3, 1.8, "s2")]
    assert [c.row.number for c in filter_candidates(found, how(), session="s1", linked=frozenset({"s2"}))] == [1, 3, 2]
    assert [c.row.number for c in filter_candidates(found, how(), session="s1", linked=frozenset())] == [1, 2, 3]


def test_a_threshold_is_a_quantile_of_what_the_ranker_found():
    """The same share stays whatever scale a ranker has."""
    for scale in (0.01, 1.0, 250.0):
        found = [candidate(n, n * scale) for n in range(1, 11)]
        assert [c.row.number for c in filter_candidates(found, how(threshold=0.6), session="s1", linked=frozenset())] == [10, 9, 8, 7]


@pytest.mark.parametrize(
    ("policy", "kind", "found", "kept"),
    [
        (MEDIATION, "onboarding", 7, 3),
        (MEDIATION, "onboarding", 8, 4),
        (MEDIATION, "onboarding", 40, 5),
        (MEDIATION, "witnessing", 20, 7),
        (MEDIATION, "perspective", 20, 9),
        (MEDIATION, "need_mapping", 20, 10),
        (MEDIATION, "repair", 20, 10),
        (MEDIATION, "another stage", 20, 5),
        (ASSISTANT, "query", 20, 20),
        (ASSISTANT, "onboarding", 20, 20),
    ],
)
def test_each_stage_leaves_the_share_that_its_threshold_says(policy, kind, found, kept):
    """002's thresholds as quantiles: 0.65 for witnessing leaves 35 %; never more than the depth offers, which is 5 for onboarding."""
    sought = retrieval_scope(policy, kind, "", consents=True)
    rows = filter_candidates([candidate(n, float(n)) for n in range(1, found + 1)], sought, session="s1", linked=frozenset())
    assert [c.row.number for c in rows] == list(range(found, found - kept, -1))


@given(st.lists(st.floats(0, 1e6), max_size=80), st.floats(0, 0.99), st.sampled_from(sorted(OFFERED)))
def test_what_is_offered_is_never_more_than_its_depth(scores, threshold, depth):
    """Best first; of anything that was found and may be offered, the best always is."""
    found = [candidate(n, s) for n, s in enumerate(scores, 1)]
    kept = filter_candidates(found, how(depth, threshold), session="s1", linked=frozenset())
    assert len(kept) <= OFFERED[depth] and [c.score for c in kept] == sorted((c.score for c in kept), reverse=True)
    assert depth == "none" or not scores or kept[0].score == max(scores)
    assert quantile(scores, 0.0) == min(scores, default=0.0)
