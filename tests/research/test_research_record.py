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
    assert record.summary == '- 142 g: "Weight 142 g"' and record.claims[0].source == "a.test"


@pytest.mark.parametrize(("written", "summary"), [("It weighs 142 g.", "It weighs 142 g."), ("", '- 142 g: "Weight 142 g"')])
def test_a_summary_says_each_thing_once(written: str, summary: str) -> None:
    """The question is the key of the record, the quotes are its claims: a summary repeated both, and said "1 pages were read"."""
    run = ResearchRun(question="Vela?", outcome=ResearchOutcome.ANSWERED, claims=(CLAIM,), summary=written)
    record = record_of(run, NOW, BY, {})
    assert record and (record.cache_key, record.summary) == ("Vela?", summary)


def test_a_claim_names_a_document_of_a_folder_and_no_path() -> None:
    """The address is that of the evidence; a record of one page is cited with it."""
    urls = ("file:///home/ann/a%20sheet.md", "file:///home/ann/b.md")
    claims = tuple(CLAIM.model_copy(update={"url": url}) for url in urls)
    visits: dict[str, str] = {url: "visit_1" for url in urls}
    one, two = (
        record_of(ResearchRun(question="Vela?", outcome=ResearchOutcome.ANSWERED, claims=claims[:n]), NOW, BY, visits) for n in (1, 2)
    )
    assert one and [(c.claim, c.source) for c in one.claims] == [("Vela: 142 g", "a sheet.md")]
    assert two and [c.claim for c in two.claims] == ["Vela: 142 g (a sheet.md)", "Vela: 142 g (b.md)"]
    assert [c.evidence.url for c in two.claims if c.evidence] == list(urls)


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
    long = CLAIM.model_copy(update={"claim": "x" * 1_990, "quote": "x" * 19_960})
    run = ResearchRun(question="Vela?" * 2_000, outcome=ResearchOutcome.ANSWERED, claims=(long, CLAIM))
    record = record_of(run, NOW, BY, {})
    assert record and [claim.claim for claim in record.claims] == ["Vela: 142 g (http://a.test/vela)"]
    assert record.summary == '- 142 g: "Weight 142 g"\n1 more claim left out'
    assert "xx" not in record.summary
