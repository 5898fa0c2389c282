"""Age, what is left, and the freshness score of DECISIONS 19."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.retrieval.freshness import age_hours, freshness_score, hours_left, is_expired

BORN, DIES = "2026-01-04T13:15:00Z", "2026-01-04T19:15:00Z"


@pytest.mark.parametrize(
    ("now", "age", "left", "score"),
    [
        ("2026-01-04T13:15:00Z", 0.0, 6.0, 1.0),
        ("2026-01-04T14:27:00Z", 1.2, 4.8, 0.8),
        ("2026-01-04T19:15:00Z", 6.0, 0.0, 0.0),
        ("2026-01-05T19:15:00Z", 30.0, -24.0, 0.0),
        ("2026-01-04T12:15:00Z", 0.0, 7.0, 1.0),
    ],
)
def test_a_cache_ages(now, age, left, score):
    """1 - age/lifetime, within 0 and 1."""
    at = parse_timestamp(now)
    assert (age_hours(BORN, at), hours_left(DIES, at), freshness_score(BORN, DIES, at)) == (age, left, score)
    assert is_expired(DIES, at) == (left <= 0)


@given(st.datetimes(), st.datetimes(), st.datetimes())
def test_the_score_is_a_share_whatever_the_times(born, dies, now):
    """Also for times in the wrong order."""
    assert 0 <= freshness_score(born.isoformat(), dies.isoformat(), parse_timestamp(now.isoformat())) <= 1
