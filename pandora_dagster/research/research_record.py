"""A run as a record of cached research (specification 004, section 3.5): what it found, and until when that may be used."""

import re
from datetime import datetime, timedelta

from pandora_dagster.contracts.user.sources import Claim, Provenance, Research
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitStatus
from pandora_dagster.documents.webpages.fields.availability import written_availability
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.language.word_forms import unaccented
from pandora_dagster.research.addresses import host_of

_FRESH_FOR = {"hours": timedelta(hours=6), "days": timedelta(days=7), "months": timedelta(days=30)}
"""By what the plan says; a quote that says what is in stock holds for hours."""
_MAX_SLUG = 50
_MAX_LINE, _MAX_SUMMARY = 2_000, 20_000
"""Characters that the fields of a record hold. What is longer is left out whole and counted; a claim is never cut."""


def record_of(run: ResearchRun, now: datetime, provenance: Provenance) -> Research | None:
    """The record of a run that found something; None for another one: nothing found is not remembered."""
    if run.outcome not in (ResearchOutcome.ANSWERED, ResearchOutcome.CONTRADICTION):
        return None
    states = any(written_availability(claim.quote) for claim in run.claims)
    fresh_for = _FRESH_FOR["hours" if states or run.plan is None else run.plan.holds_for]
    subject = run.plan.subject if run.plan else ""
    slug = re.sub(r"[^a-z0-9]+", "_", unaccented(subject or run.question).lower()).strip("_")[:_MAX_SLUG].strip("_")
    claims = tuple(
        Claim(claim=line, source=host_of(claim.url) or _line(claim.url.rpartition("/")[2]), confidence=claim.confidence)
        for claim in run.claims
        if len(line := _line(f"{claim.claim} ({claim.url})")) <= _MAX_LINE
    )
    return Research(
        topic=f"web.{slug or 'question'}",
        cache_key=_line(run.question)[:_MAX_LINE],
        created_at=format_timestamp(now),
        expires_at=format_timestamp(now + fresh_for),
        quality_score=round(sum(claim.confidence for claim in run.claims) / len(run.claims), 3),
        summary=_summary(run),
        claims=claims,
        provenance=provenance,
    )


def _summary(run: ResearchRun) -> str:
    read = sum(visit.status is VisitStatus.READ for visit in run.visits)
    disagree = " The sources disagree." if run.outcome is ResearchOutcome.CONTRADICTION else ""
    parts = (run.question, f"{read} pages were read.{disagree}", run.summary)
    lines = [part for part in parts if part and len(part) <= _MAX_SUMMARY // 4]
    free = _MAX_SUMMARY - sum(len(line) + 1 for line in lines) - _MAX_SLUG
    left_out = 0
    for claim in run.claims:
        line = f'- {claim.value}: "{claim.quote}" ({claim.url})'
        if len(line) < free:
            lines.append(line)
            free -= len(line) + 1
        else:
            left_out += 1
    return "\n".join([*lines, *([f"{left_out} more claims are left out."] if left_out else [])])


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
