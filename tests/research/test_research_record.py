"""The record of a run: prices expire within hours, properties within days, and what found nothing is none."""

from datetime import UTC, datetime

import pytest

from pandora_dagster.contracts.user.sources import Provenance
from pandora_dagster.contracts.web.research_run import EvidenceClaim, ResearchOutcome, ResearchRun
from pandora_dagster.research.research_record import record_of

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
BY = Provenance(added_at="2026-11-24T12:00:00Z", by="a test")
CLAIM = EvidenceClaim(claim="Vela: 142 g", value="142 g", url="http://a.test/vela", quote="Weight 142 g", confidence=0.8)


@pytest.mark.parametrize(
    ("question", "expires"),
    [("What does the Vela 30 cost?", "2026-11-24T18:00:00Z"), ("How heavy is the Vela 30?", "2026-12-24T12:00:00Z")],
)
def test_a_record_expires_by_what_was_asked(question: str, expires: str) -> None:
    record = record_of(ResearchRun(question=question, outcome=ResearchOutcome.ANSWERED, claims=(CLAIM,)), NOW, BY)
    assert record and (record.topic, record.expires_at, record.quality_score) == ("web.vela_30", expires, 0.8)
    assert '"Weight 142 g" (http://a.test/vela)' in record.summary and record.claims[0].source == "a.test"


@pytest.mark.parametrize("outcome", [ResearchOutcome.NOT_FOUND, ResearchOutcome.NEEDS_PERSON])
def test_nothing_found_is_not_remembered(outcome: ResearchOutcome) -> None:
    assert record_of(ResearchRun(question="Why?", outcome=outcome), NOW, BY) is None


def test_what_is_in_stock_expires_within_hours() -> None:
    claim = CLAIM.model_copy(update={"quote": "142 g, only 3 left in stock"})
    record = record_of(ResearchRun(question="How heavy is the Vela 30?", outcome=ResearchOutcome.ANSWERED, claims=(claim,)), NOW, BY)
    assert record and record.expires_at == "2026-11-24T18:00:00Z"
