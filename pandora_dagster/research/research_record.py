"""A run as a record of cached research (specification 004, section 3.5): what it found, and until when that may be used."""

import re
from datetime import datetime, timedelta

from pandora_dagster.contracts.user.sources import Claim, Provenance, Research
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitStatus
from pandora_dagster.documents.webpages.fields.availability import written_availability
from pandora_dagster.language.requests.asked_values import AskedKind
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.language.word_forms import unaccented
from pandora_dagster.research.addresses import host_of
from pandora_dagster.research.asked_question import AskedQuestion

_FRESH_FOR = {AskedKind.MONEY: timedelta(hours=6), AskedKind.YES_NO: timedelta(hours=6), AskedKind.DATE: timedelta(days=7)}
_FRESH_OTHERWISE = timedelta(days=30)
"""Prices and states change within hours, announcements within days, properties seldom."""
_MAX_SLUG = 50
_MAX_LINE = 2_000


def record_of(run: ResearchRun, now: datetime, provenance: Provenance) -> Research | None:
    """The record of a run that found something; None for another one: nothing found is not remembered."""
    if run.outcome not in (ResearchOutcome.ANSWERED, ResearchOutcome.CONTRADICTION):
        return None
    question = AskedQuestion(run.question)
    states = any(written_availability(claim.quote) for claim in run.claims)
    fresh_for = _FRESH_FOR[AskedKind.MONEY] if states else _FRESH_FOR.get(question.kind, _FRESH_OTHERWISE)
    slug = re.sub(r"[^a-z0-9]+", "_", unaccented(" ".join(question.names) or run.question).lower()).strip("_")[:_MAX_SLUG].strip("_")
    claims = tuple(
        Claim(claim=_line(f"{claim.claim} ({claim.url})"), source=_line(host_of(claim.url)), confidence=claim.confidence)
        for claim in run.claims
    )
    return Research(
        topic=f"web.{slug or 'question'}",
        cache_key=_line(run.question),
        created_at=format_timestamp(now),
        expires_at=format_timestamp(now + fresh_for),
        quality_score=round(sum(claim.confidence for claim in run.claims) / len(run.claims), 3),
        summary=_summary(run),
        claims=claims,
        provenance=provenance,
    )


def _summary(run: ResearchRun) -> str:
    read = sum(visit.status is VisitStatus.READ for visit in run.visits)
    found = "\n".join(f'- {claim.value}: "{claim.quote}" ({claim.url})' for claim in run.claims)
    disagree = " The sources disagree." if run.outcome is ResearchOutcome.CONTRADICTION else ""
    return f"{run.question}\n{read} pages were read.{disagree}\n{found}"[:20_000]


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[:_MAX_LINE]
