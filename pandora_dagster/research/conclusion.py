"""How a run ends: the best statements of the pages that were read, merged, with contradictions named."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date as day

from pandora_dagster.contracts.web.page_doc import PageDoc, PageType
from pandora_dagster.contracts.web.research_run import EvidenceClaim, ResearchOutcome, VisitRecord
from pandora_dagster.language.requests.asked_values import AskedKind, has_asked_value
from pandora_dagster.research.addresses import host_of, names_host
from pandora_dagster.research.asked_question import AskedQuestion, terms_of
from pandora_dagster.research.page_evidence import (
    Evidence,
    PageReader,
    asks_publication,
    availability_evidence,
    is_for_a_person,
    is_hostile,
    publication_evidence,
)
from pandora_dagster.research.verification import is_in_page

_MAX_CLAIMS = 8
_SAME_SCORE = 0.08
"""Statements whose scores differ by less answer equally well."""
_STALE_DAYS = 300
_ABOUT_PRODUCT = frozenset({PageType.PRODUCT, PageType.SPEC})


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a run."""

    outcome: ResearchOutcome
    claims: tuple[EvidenceClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ranking:
    """A statement with the precedence of its page: whoever asks for a place or the maker is answered from there."""

    evidence: Evidence
    precedence: tuple[int, ...]

    @property
    def rank(self) -> tuple[float, ...]:
        return (*self.precedence, self.evidence.score)


def conclude(question: AskedQuestion, visits: Iterable[VisitRecord]) -> Conclusion:
    """The conclusion from the pages read."""
    pages = [visit.page for visit in visits if visit.page]
    rankings = _judge(question, pages)
    if not rankings:
        person = any(is_for_a_person(question, page) for page in pages)
        return Conclusion(ResearchOutcome.NEEDS_PERSON if person else ResearchOutcome.NOT_FOUND)
    best = _best(question, rankings)
    outcome = ResearchOutcome.CONTRADICTION if _contradict(question, best) else ResearchOutcome.ANSWERED
    return Conclusion(outcome, tuple(_claim(j) for j in best[:_MAX_CLAIMS]))


def _judge(question: AskedQuestion, pages: Sequence[PageDoc]) -> list[_Ranking]:
    """Every verified statement, best first."""
    hosts_named = {name for name in question.sites if any(names_host(name, page.final_url) for page in pages)}
    host_terms = terms_of(" ".join(hosts_named)) if len(_named_hosts(question, pages)) > 1 else frozenset[str]()
    newest = max((page.extracted_data.date or "" for page in pages), default="")
    rankings: list[_Ranking] = []
    for page in pages:
        if is_hostile(page):
            continue
        evidence = PageReader(question, page).evidence(host_terms)
        if asks_publication(question):
            evidence = publication_evidence(question, page)
        elif question.kind is AskedKind.YES_NO:
            evidence = availability_evidence(question, page) if _asks_availability(question) else evidence
        precedence = (
            int(any(names_host(name, page.final_url) for name in question.sites)),
            int(question.asks_maker and _is_maker(page, pages)),
            int(not _is_stale(page, newest)),
        )
        rankings += [
            _Ranking(e, (*precedence, int(e.is_on_topic), int(question.kind is AskedKind.MONEY and page.page_type in _ABOUT_PRODUCT)))
            for e in evidence
            if is_in_page(e.unit.quote, page)
        ]
    return sorted(rankings, key=lambda j: j.rank, reverse=True)


def _asks_availability(question: AskedQuestion) -> bool:
    return bool(question.matter_terms & terms_of("stock available availability lieferbar verfügbar vorrätig lager"))


def _named_hosts(question: AskedQuestion, pages: Iterable[PageDoc]) -> set[str]:
    return {host_of(page.final_url) for page in pages if any(names_host(name, page.final_url) for name in question.sites)}


def _is_maker(page: PageDoc, pages: Sequence[PageDoc]) -> bool:
    """Whether the name of the page's site is in titles of other sites: a maker's name does."""
    host = host_of(page.final_url)
    name = host.split(".")[0].replace("-", "")
    return any(host_of(other.final_url) != host and name in other.title.lower().replace(" ", "") for other in pages)


def _is_stale(page: PageDoc, newest: str) -> bool:
    """Whether a dated page is much older than the newest one."""
    date = page.extracted_data.modified or page.extracted_data.date
    if not date or not newest:
        return False
    try:
        return (day.fromisoformat(newest[:10]) - day.fromisoformat(date[:10])).days > _STALE_DAYS
    except ValueError:
        return False


def _best(question: AskedQuestion, rankings: Sequence[_Ranking]) -> list[_Ranking]:
    """The best statement, and those that answer as well: one for each value and source."""
    kept = _as_good(rankings)
    named = {host_of(j.evidence.page.final_url) for j in rankings if j.precedence[0]}
    if question.kind is AskedKind.MONEY and len(named) > 1:  # asked of several sellers: each answers for itself
        kept = [j for j in rankings if j.precedence[0] and j.evidence.is_on_topic]
    if question.kind is AskedKind.MONEY and not _asks_for_list(question):
        sources: dict[str, _Ranking] = {}
        for j in kept:
            sources.setdefault(host_of(j.evidence.page.final_url), j)
        return list(sources.values())
    if _asks_for_list(question):
        page = kept[0].evidence.page
        return [j for j in kept if j.evidence.page is page]
    if not has_asked_value(question.kind):
        return kept[:1]
    values: dict[str, _Ranking] = {}
    answering = set[str]()
    for j in kept:
        host = host_of(j.evidence.page.final_url)
        if host not in answering:
            values.setdefault(j.evidence.key, j)
        answering.add(host)
    return list(values.values())


def _as_good(rankings: Sequence[_Ranking]) -> list[_Ranking]:
    top = rankings[0]
    return [j for j in rankings if j.precedence == top.precedence and j.evidence.score >= top.evidence.score - _SAME_SCORE]


def _asks_for_list(question: AskedQuestion) -> bool:
    first = question.text.split(" ", 1)[0].lower()
    return question.kind is AskedKind.MONEY and first in ("which", "welche", "quels", "quelles")


def _contradict(question: AskedQuestion, best: Sequence[_Ranking]) -> bool:
    """Whether two sources give different values of one thing; prices of two sellers are two things, and so are the values of one page."""
    if question.kind is AskedKind.MONEY or not has_asked_value(question.kind):
        return False
    return len({j.evidence.key for j in best}) > 1 and len({host_of(j.evidence.page.final_url) for j in best}) > 1


def _claim(ranking: _Ranking) -> EvidenceClaim:
    evidence = ranking.evidence
    title = " ".join(evidence.page.title.split())
    return EvidenceClaim(
        claim=f"{title}: {evidence.unit.quote}" if title else evidence.unit.quote,
        value=evidence.value,
        url=evidence.page.final_url,
        quote=evidence.unit.quote,
        confidence=round(min(1.0, max(0.0, evidence.score * evidence.unit.zone.confidence)), 3),
    )
