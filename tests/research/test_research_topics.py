"""Which topics a refresh takes, and in which order."""

from datetime import UTC, datetime

import pytest

from pandora_dagster.contracts.user.sources import Provenance
from pandora_dagster.research.research_topics import RefreshState, ResearchTopic, due_topics, topic_row

NOW = datetime(2026, 11, 24, 4, tzinfo=UTC)
BY = ("pandora research run",)


def topic(name: str, expires: str, by: str = BY[0]) -> ResearchTopic:
    provenance = Provenance(added_at="2026-11-01T00:00:00Z", by=by)
    return ResearchTopic(name, "What?", 1, "2026-11-01T00:00:00Z", expires, 0.8, provenance=provenance)


@pytest.mark.parametrize(
    ("expires", "wanted", "state"),
    [
        ("2026-11-25T04:00:00Z", "all", RefreshState.DUE),
        ("2026-11-25T04:00:01Z", "all", RefreshState.FRESH),
        ("2026-11-17T04:00:00Z", "all", RefreshState.DUE),
        ("2026-11-17T03:59:59Z", "all", RefreshState.GIVEN_UP),
        ("2026-11-24T10:00:00Z", "web.vela", RefreshState.DUE),
        ("2026-11-24T10:00:00Z", "web.orion,web.vela", RefreshState.DUE),
        ("2026-11-24T10:00:00Z", "web", RefreshState.DUE),
        ("2026-11-24T10:00:00Z", "web.vel", RefreshState.NOT_NAMED),
        ("2026-11-24T10:00:00Z", "web.vela_30", RefreshState.NOT_NAMED),
        ("2026-11-24T10:00:00Z", "off", RefreshState.NOT_NAMED),
    ],
)
def test_a_topic_is_due_a_day_before_it_expires_and_a_week_after(expires: str, wanted: str, state: RefreshState) -> None:
    assert topic_row(topic("web.vela", expires), wanted, BY, NOW).state is state


def test_a_record_without_a_question_is_never_due() -> None:
    assert topic_row(topic("web.vela", "2026-11-24T10:00:00Z", "pandora research add"), "all", BY, NOW).state is RefreshState.NO_QUESTION


def test_topics_that_expire_first_come_first() -> None:
    rows = [topic_row(topic(f"web.{hour}", f"2026-11-24T{hour}:00:00Z"), "all", BY, NOW) for hour in ("10", "08", "09")]
    assert [row.topic.topic for row in due_topics(rows)] == ["web.08", "web.09", "web.10"]
