"""A run as a record of cached research (specification 004, section 3.5): what it found, and until when that may be used."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from pandora_dagster.contracts.user.sources import Claim, ClaimEvidence, Provenance, Research, ResearchRow
from pandora_dagster.contracts.web.research_run import EvidenceClaim, ResearchOutcome, ResearchRun, VisitStatus
from pandora_dagster.documents.visits.visit_record import visit_id_of
from pandora_dagster.documents.webpages.fields.availability import written_availability
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.language.word_forms import counted, unaccented
from pandora_dagster.research.addresses import document_name, host_of
from pandora_dagster.retrieval.freshness import age_hours, hours_left, is_expired

_FRESH_FOR = {"hours": timedelta(hours=6), "days": timedelta(days=7), "months": timedelta(days=30)}
"""By what the plan says; a quote that says what is in stock holds for hours."""
_MAX_SLUG, _DIGEST_CHARACTERS = 50, 8
_MAX_LINE, _MAX_SUMMARY = 2_000, 20_000
"""Characters that the fields of a record hold. What is longer is left out whole and counted; a claim is never cut."""


def record_of(run: ResearchRun, now: datetime, provenance: Provenance, visit_ids: Mapping[str, str], *, topic: str = "") -> Research | None:
    """The record of a run that found something; None for another one: nothing found is not remembered.

    `visit_ids`: the stored visits of the run by the addresses of their pages. `topic`: of a record that this one renews.
    """
    if run.outcome not in (ResearchOutcome.ANSWERED, ResearchOutcome.CONTRADICTION):
        return None
    states = any(written_availability(claim.quote) for claim in run.claims)
    fresh_for = _FRESH_FOR["hours" if states or run.plan is None else run.plan.holds_for]
    subject = run.plan.subject if run.plan else ""
    is_one_page = len({claim.url for claim in run.claims}) == 1
    claims = tuple(
        Claim(claim=line, source=_source(claim), confidence=claim.confidence, evidence=evidence)
        for claim in run.claims
        for evidence in (_evidence(claim, visit_ids),)
        if len(line := _line(_stated(claim, is_cited=is_one_page and evidence is not None))) <= _MAX_LINE
    )
    return Research(
        topic=topic or topic_of(subject or run.question, run.question),
        cache_key=_line(run.question)[:_MAX_LINE],
        created_at=format_timestamp(now),
        expires_at=format_timestamp(now + fresh_for),
        quality_score=round(sum(claim.confidence for claim in run.claims) / len(run.claims), 3),
        summary=_summary(run),
        claims=claims,
        webpage_cache=tuple(dict.fromkeys(visit_ids[claim.url] for claim in run.claims if claim.url in visit_ids)),
        contradicted=True if run.outcome is ResearchOutcome.CONTRADICTION else None,
        provenance=provenance,
    )


def topic_of(subject: str, question: str) -> str:
    """The topic of research on a question, such as `web.halden_300.1f0c6a2e`: no newer research on another question replaces it."""
    return f"web.{_slug(subject)}.{_digest(_plain(question))}"


def _slug(text: str) -> str:
    """The Latin letters and digits of a text, and a digest of it where it has letters of another script."""
    plain = unaccented(text.lower())
    slug = re.sub(r"[^a-z0-9]+", "_", plain)[:_MAX_SLUG].strip("_")
    is_whole = bool(slug) and not any(character.isalnum() and not character.isascii() for character in plain)
    return slug if is_whole else "_".join(filter(None, (slug, _digest(plain))))


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]


def outage(run: ResearchRun) -> str:
    """Why a run that found nothing could not read all that it wanted to, such as a server that is down; "" for any other run."""
    faults = [f"{search.provider}: {search.fault}" for search in run.searches if search.fault]
    failed = [visit.reason for visit in run.visits if visit.status is VisitStatus.FAILED]
    if run.outcome is not ResearchOutcome.NOT_FOUND or not (failed or len(faults) == len(run.searches)):
        return ""
    return "; ".join(dict.fromkeys((*faults, *failed)))


def age_of(record: Research, now: datetime) -> str:
    """How old a record is, in words."""
    left = hours_left(record.expires_at, now)
    expiry = f"expired {-left} hours ago" if is_expired(record.expires_at, now) else f"expires in {left} hours"
    return f"research of {record.created_at}, {age_hours(record.created_at, now)} hours old, {expiry}"


def answered_from(record: Research, run: ResearchRun, now: datetime) -> ResearchRun:
    """The run with the claims of stored research on its question, and a notice of their age; the run itself where they have no quotes."""
    claims = tuple(
        EvidenceClaim(claim=claim.claim, value=found.value, url=found.url, quote=found.quote, confidence=claim.confidence)
        for claim in record.claims
        if (found := claim.evidence)
    )
    if not claims:
        return run
    outcome = ResearchOutcome.CONTRADICTION if record.contradicted else ResearchOutcome.ANSWERED
    notice = f"answered from {age_of(record, now)}, since pages could not be read now: {outage(run)}"
    return run.model_copy(update={"outcome": outcome, "claims": claims, "notices": (notice, *run.notices)})


def same_question(rows: Sequence[ResearchRow], question: str) -> Iterator[ResearchRow]:
    """The rows of research on a question, letter case and blanks apart."""
    wanted = _plain(question)
    return (row for row in rows if _plain(row.cache_key) == wanted)


def _plain(question: str) -> str:
    """A question as it is compared: as a record has it, in lower case, without doubled blanks."""
    return " ".join(_line(question)[:_MAX_LINE].lower().split())


def stored_visits(run: ResearchRun, stored: Collection[str]) -> dict[str, str]:
    """Address of a page that the run read -> the id of its visit, where that is among the `stored` ones."""
    pages = (visit.page for visit in run.visits if visit.page)
    visits = ((page.final_url, visit_id_of(page.url, page.retrieved_at)) for page in pages)
    return {url: visit_id for url, visit_id in visits if visit_id in stored}


def _evidence(claim: EvidenceClaim, visit_ids: Mapping[str, str]) -> ClaimEvidence | None:
    """The words of a stored page; None where the page is not stored, such as an error page."""
    visit_id = visit_ids.get(claim.url)
    return ClaimEvidence(value=claim.value, quote=claim.quote, url=claim.url, visit_id=visit_id) if visit_id else None


def _source(claim: EvidenceClaim) -> str:
    return host_of(claim.url) or _line(document_name(claim.url))


def _stated(claim: EvidenceClaim, *, is_cited: bool) -> str:
    """A claim as a sentence. Where several pages answer it names its own: the address, or the name of a document of a folder.

    `is_cited`: whether the record is cited with the address of its only page.
    """
    return claim.claim if is_cited else f"{claim.claim} ({claim.url if host_of(claim.url) else _source(claim)})"


def _summary(run: ResearchRun) -> str:
    """What a recipe has written about the claims; where none has, their values, each with its quote."""
    lines = ["The sources disagree."] if run.outcome is ResearchOutcome.CONTRADICTION else []
    free = _MAX_SUMMARY - sum(map(len, lines)) - _MAX_SLUG
    if 0 < len(run.summary) < free:
        return "\n".join([*lines, run.summary])
    left_out = 0
    for claim in run.claims:
        line = f"- {claim.quote}" if claim.value == claim.quote else f'- {claim.value}: "{claim.quote}"'
        if len(line) < free:
            lines.append(line)
            free -= len(line) + 1
        else:
            left_out += 1
    return "\n".join([*lines, *([f"{counted(left_out, 'more claim')} left out"] if left_out else [])])


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
