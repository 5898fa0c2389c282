"""The record of a run: prices expire within hours, properties within days, and what found nothing is none."""

import re
from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter

from pandora_dagster.contracts.user.sources import Provenance
from pandora_dagster.contracts.user.sources import Topic as TopicName
from pandora_dagster.contracts.web.research_decisions import HoldsFor, ResearchPlan
from pandora_dagster.contracts.web.research_run import EvidenceClaim, ResearchOutcome, ResearchRun
from pandora_dagster.research.research_record import record_of, topic_of

Topic = TypeAdapter[str](TopicName)
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
BY = Provenance(added_at="2026-11-24T12:00:00Z", by="a test")
CLAIM = EvidenceClaim(claim="Vela: 142 g", value="142 g", url="http://a.test/vela", quote="Weight 142 g", confidence=0.8)


@pytest.mark.parametrize(
    ("holds_for", "expires"),
    [("hours", "2026-11-24T18:00:00Z"), ("days", "2026-12-01T12:00:00Z"), ("months", "2026-12-24T12:00:00Z")],
)
def test_a_record_expires_by_its_plan(holds_for: HoldsFor, expires: str) -> None:
    plan = ResearchPlan(subject="Vela 30", needs=("?",), holds_for=holds_for)
    record = record_of(ResearchRun(question="Vela?", plan=plan, outcome=ResearchOutcome.ANSWERED, claims=(CLAIM,)), NOW, BY, {})
    assert record and (record.topic, record.expires_at, record.quality_score) == (topic_of("Vela 30", "Vela?"), expires, 0.8)
    assert '"Weight 142 g" (http://a.test/vela)' in record.summary and record.claims[0].source == "a.test"


SUBJECTS = ["Vela 30", "Vela 45", "海尔 300", "美的 300", "李小龙", "نمایشگر", "", "../..", "x" * 90, "\ud800"]


def test_a_topic_is_of_one_question_in_every_script() -> None:
    """A subject without Latin letters was always `web.question`; two questions about one thing had one topic."""
    topics = [topic_of(subject, question) for subject in SUBJECTS for question in ("What does it cost?", "重さは?", "\ud800?")]
    assert len(set(topics)) == len(topics)
    for topic in topics:
        assert re.fullmatch(r"web\.[a-z0-9_]{1,60}\.[0-9a-f]{8}", topic) and Topic.validate_python(topic) == topic
    assert topic_of("Vela 30", "What  does it\tcost?") == topic_of("Vela 30", "what does it cost?") == topics[0]
    assert topic_of("Vela 30", "?").startswith("web.vela_30.")


@pytest.mark.parametrize("outcome", [ResearchOutcome.NOT_FOUND, ResearchOutcome.NEEDS_PERSON])
def test_nothing_found_is_not_remembered(outcome: ResearchOutcome) -> None:
    assert record_of(ResearchRun(question="Why?", outcome=outcome), NOW, BY, {}) is None


def test_what_is_in_stock_expires_within_hours() -> None:
    claim = CLAIM.model_copy(update={"quote": "142 g, only 3 left in stock"})
    plan = ResearchPlan(subject="Vela 30", needs=("How heavy is the Vela 30?",), holds_for="months")
    run = ResearchRun(question="How heavy is the Vela 30?", plan=plan, outcome=ResearchOutcome.ANSWERED, claims=(claim,))
    record = record_of(run, NOW, BY, {})
    assert record and record.expires_at == "2026-11-24T18:00:00Z"


def test_what_is_too_long_is_left_out_whole_and_counted() -> None:
    """A claim was cut after 2,000 characters and lost its address; a summary after 20,000."""
    long = CLAIM.model_copy(update={"claim": "x" * 1_990, "quote": "x" * 19_900})
    run = ResearchRun(question="Vela?" * 2_000, outcome=ResearchOutcome.ANSWERED, claims=(long, CLAIM))
    record = record_of(run, NOW, BY, {})
    assert record and [claim.claim for claim in record.claims] == ["Vela: 142 g (http://a.test/vela)"]
    assert '"Weight 142 g" (http://a.test/vela)' in record.summary and record.summary.endswith("1 more claims are left out.")
    assert "xx" not in record.summary
