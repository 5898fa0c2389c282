"""What recipes decide about one page: whether and as what it is read, what it says, whether its quotes say that, where its links lead.

The text of a page reaches a recipe as numbered lines. A page that gives orders to a model reaches none.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.web.page_doc import PageDoc, ZoneKind
from pandora_dagster.contracts.web.research_decisions import (
    ClaimVerdicts,
    ContentZones,
    InjectionFlags,
    NextPage,
    PageClaims,
    PageKind,
    PageRelevance,
    ReadingJudgement,
    Selection,
)
from pandora_dagster.contracts.web.research_lines import ClaimLine, LinkLine, PageLine, UnitLine, ZoneLine
from pandora_dagster.contracts.web.research_run import ChosenAddress, PageClaim, ResearchRun, Verdict, VisitRecord
from pandora_dagster.language.terms import TermReader
from pandora_dagster.language.word_forms import counted
from pandora_dagster.research.addresses import page_key, pages_of_list
from pandora_dagster.research.page_units import PageUnit, doubtful_zones, page_units
from pandora_dagster.research.reading_steps import PageStep, recipe_of
from pandora_dagster.research.recipe_calls import (
    CLAIM_VERIFIER,
    EXTRACTION_VALIDATOR,
    INJECTION_SCREEN,
    LINK_RANKER,
    PAGE_RELEVANCE,
    PAGE_TYPE,
    PAGINATION_FINDER,
    ZONE_CONFIDENCE,
    RecipeCalls,
    line_document,
    lines_document,
    plan_document,
    sources_document,
)
from pandora_dagster.research.verification import is_in_page, is_value_of

_MAX_UNITS = 400
_MAX_LINKS = 120
_MAX_LISTED = 30
"""Links that may be the next page of a list."""
_FIRST_UNITS = 40
"""Units from which the type of a page is judged."""
_ZONE_BEGINNING = 300
"""Characters."""
_NEXT_WORTH = 0.9
"""Worth of a list's next page, as a share of that of the page before."""
_TERMS = TermReader()


@dataclass(frozen=True, slots=True)
class PageDecisions:
    """The decisions about the pages of one run."""

    calls: RecipeCalls

    async def relevance(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit with whether its page is read at all."""
        answer = await self.calls.ask(PAGE_RELEVANCE, run.question, [plan_document(run), _page_document(page)], PageRelevance)
        reason = visit.reason if answer.relevant else "not read: it is not about the subject"
        return visit.model_copy(update={"is_irrelevant": not answer.relevant, "reason": reason})

    async def kind(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit with the type of its page, which its form does not say."""
        units = dict(enumerate(islice(page_units(page), _FIRST_UNITS), 1))
        documents = [_page_document(page), _units_document(units, run.question)]
        answer = await self.calls.ask(PAGE_TYPE, run.question, documents, PageKind)
        return visit.model_copy(update={"judged_type": answer.page_type})

    async def zones(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit with the zones that are read although their sources disagree."""
        doubtful = doubtful_zones(page)
        lines = [ZoneLine(number=n, kind=zone.kind.value, text=zone.text[:_ZONE_BEGINNING]) for n, zone in doubtful.items()]
        documents = [plan_document(run), _page_document(page), lines_document("zones", lines)]
        answer = await self.calls.ask(ZONE_CONFIDENCE, run.question, documents, ContentZones)
        return visit.model_copy(update={"content_zones": tuple(sorted(doubtful.keys() & set(answer.zones)))})

    async def validate(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit whose claims are kept or refused, or that is read a second time for what was missed."""
        units = _readable_units(run, visit, page)
        documents = [plan_document(run), _page_document(page), claims_document([(visit, page)]), _units_document(units, run.question)]
        answer = await self.calls.ask(EXTRACTION_VALIDATOR, run.question, documents, ReadingJudgement)
        if answer.decision == "reject":
            return visit.model_copy(
                update={"claims": (), "reason": f"{counted(len(visit.claims), 'claim')} refused: no answer to the question"}
            )
        return visit.model_copy(update={"look_for": answer.look_for if answer.decision == "retry" else None})

    async def extract_again(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit with what a second reading found beside the first."""
        again = await self.extract(run, visit, page, PageStep.SECOND_READING)
        known = {(claim.need, claim.value, claim.quote) for claim in visit.claims}
        new = tuple(claim for claim in again.claims if (claim.need, claim.value, claim.quote) not in known)
        return again.model_copy(update={"claims": (*visit.claims, *new), "about_subject": visit.about_subject or again.about_subject})

    async def extract(self, run: ResearchRun, visit: VisitRecord, page: PageDoc, step: PageStep = PageStep.READING) -> VisitRecord:
        """The visit with the claims of its page that code can verify; those that it cannot are counted in its reason."""
        units = _readable_units(run, visit, page)
        documents = [plan_document(run), _page_document(page), sources_document(run), _units_document(units, run.question)]
        answer = await self.calls.ask(recipe_of(step, visit, page), run.question, documents, PageClaims)
        needs = len(run.plan.needs) if run.plan else 1
        claims: list[PageClaim] = []
        for claim in answer.claims:
            unit = units.get(claim.unit)
            if unit and claim.need <= needs and is_in_page(unit.quote, page) and is_value_of(claim.value, unit.quote, page):
                claims.append(
                    PageClaim(
                        need=claim.need,
                        value=claim.value,
                        quote=unit.quote,
                        under=unit.context,
                        worth=claim.worth,
                        zone_confidence=unit.zone.confidence,
                    )
                )
        refused = len(answer.claims) - len(claims)
        reason = f"{counted(refused, 'claim')} refused: not in the page" if refused else visit.reason
        return visit.model_copy(update={"claims": tuple(claims), "about_subject": answer.about_subject, "reason": reason})

    async def screen(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit with the units that later recipes do not read. A second guard: what the first knows, no recipe has read."""
        units = _chosen_units(page, run.question, visit.content_zones)
        answer = await self.calls.ask(INJECTION_SCREEN, run.question, [_units_document(units, run.question)], InjectionFlags)
        flagged = tuple(sorted({flag.unit for flag in answer.flagged} & units.keys()))
        reason = f"{counted(len(flagged), 'unit')} left out: addressed to a model" if flagged else visit.reason
        return visit.model_copy(update={"flagged": flagged, "reason": reason})

    async def verify(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> VisitRecord:
        """The visit with a verdict for each claim; one without an answer stays `unclear`."""
        answer = await self.calls.ask(CLAIM_VERIFIER, run.question, [plan_document(run), claims_document([(visit, page)])], ClaimVerdicts)
        verdicts = {verdict.number: Verdict(verdict.verdict) for verdict in answer.verdicts}
        claims = (claim.model_copy(update={"verdict": verdicts.get(n, Verdict.UNCLEAR)}) for n, claim in enumerate(visit.claims, 1))
        return visit.model_copy(update={"claims": tuple(claims)})

    async def links(self, run: ResearchRun, page: PageDoc) -> tuple[ChosenAddress, ...]:
        """Links of the page's own list that the run does not know yet."""
        links = _unknown_links(run, page, page.links)[:_MAX_LINKS]
        if not links:
            return ()
        lines = [LinkLine(number=number, url=link) for number, link in enumerate(links, 1)]
        documents = [plan_document(run), _page_document(page), sources_document(run), lines_document("links", lines)]
        answer = await self.calls.ask(LINK_RANKER, run.question, documents, Selection)
        return chosen_addresses(answer, {n: (link, "") for n, link in enumerate(links, 1)}, f"linked from {page.final_url}")

    async def next_page(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> tuple[ChosenAddress, ...]:
        """The page that follows in a list, unless the run knows it: what the page itself says, else what a recipe takes for it."""
        if page.next_page:
            found = _unknown_links(run, page, (page.next_page,))
        else:
            links = _unknown_links(run, page, pages_of_list(page.final_url, page.links))[:_MAX_LISTED]
            if not links:
                return ()
            lines = [LinkLine(number=number, url=link) for number, link in enumerate(links, 1)]
            answer = await self.calls.ask(PAGINATION_FINDER, run.question, [_page_document(page), lines_document("links", lines)], NextPage)
            found = links[answer.link - 1 : answer.link] if answer.link else []
        return tuple(
            ChosenAddress(url=link, score=round(visit.worth * _NEXT_WORTH, 3), because=f"the next page of {page.final_url}")
            for link in found
        )


def chosen_addresses(answer: Selection, places: dict[int, tuple[str, str]], because: str = "") -> tuple[ChosenAddress, ...]:
    """The addresses that a selection names, each once; numbers that were not offered are ignored."""
    chosen: dict[int, ChosenAddress] = {}
    for choice in answer.visit:
        if choice.number in places:
            url, title = places[choice.number]
            chosen.setdefault(choice.number, ChosenAddress(url=url, title=title, score=choice.worth, because=because or choice.because))
    return tuple(chosen.values())


def claims_document(visits: Iterable[tuple[VisitRecord, PageDoc]]) -> InputDocument:
    """The claims of visits, numbered from 1 in their order; the worthiest are sent where not all fit."""
    lines = [claim_line(0, visit, page, claim) for visit, page in visits for claim in visit.claims]
    return lines_document("claims", [line.model_copy(update={"number": n}) for n, line in enumerate(lines, 1)], [c.worth for c in lines])


def claim_line(number: int, visit: VisitRecord, page: PageDoc, claim: PageClaim) -> ClaimLine:
    return ClaimLine(
        number=number,
        need=claim.need,
        value=claim.value,
        quote=claim.quote,
        under=claim.under,
        title=page.title,
        url=page.final_url,
        page_type=page.page_type.value,
        language=page.language,
        date=page.extracted_data.modified or page.extracted_data.date or "",
        worth=claim.worth,
        about_subject=visit.about_subject,
        outdated=claim.outdated,
    )


def page_line(page: PageDoc, number: int = 0) -> PageLine:
    fields = page.extracted_data
    return PageLine(
        number=number,
        url=page.final_url,
        title=page.title,
        page_type=page.page_type.value,
        language=page.language,
        price=fields.price or "",
        old_price=fields.old_price or "",
        currency=fields.currency or "",
        availability=fields.availability or "",
        author=fields.author or "",
        date=fields.date or "",
        modified=fields.modified or "",
    )


def _page_document(page: PageDoc) -> InputDocument:
    return line_document("page", page_line(page))


def _units_document(units: dict[int, PageUnit], question: str) -> InputDocument:
    """Units as lines; where not all fit, those that share most terms with the question."""
    lines = [
        UnitLine(
            number=number,
            zone="" if unit.zone.kind is ZoneKind.MAIN_TEXT else unit.zone.kind.value,
            under=unit.context,
            text=unit.quote,
            cell="" if unit.values == unit.quote else unit.values,
        )
        for number, unit in units.items()
    ]
    wanted = frozenset(_TERMS.terms(question))
    return lines_document("units", lines, [float(len(wanted & frozenset(_TERMS.terms(f"{line.under} {line.text}")))) for line in lines])


def _unknown_links(run: ResearchRun, page: PageDoc, links: Iterable[str]) -> list[str]:
    """Links that the run does not know, each page once."""
    known = {page_key(a.url) for a in run.waiting} | {page_key(v.url) for v in run.visits} | {page_key(page.final_url)}
    return list({page_key(link): link for link in links if page_key(link) not in known}.values())


def _readable_units(run: ResearchRun, visit: VisitRecord, page: PageDoc) -> dict[int, PageUnit]:
    """The units that recipes read, without those that address a model."""
    return {n: unit for n, unit in _chosen_units(page, run.question, visit.content_zones).items() if n not in visit.flagged}


def _chosen_units(page: PageDoc, question: str, content_zones: Collection[int]) -> dict[int, PageUnit]:
    """The units of a page by number; of a long page those that share most terms with the question."""
    units = dict(enumerate(page_units(page, content_zones), 1))
    if len(units) <= _MAX_UNITS:
        return units
    wanted = frozenset(_TERMS.terms(question))
    shared = {n: len(wanted & frozenset(_TERMS.terms(f"{unit.context} {unit.quote}"))) for n, unit in units.items()}
    best = sorted(sorted(units, key=lambda n: -shared[n])[:_MAX_UNITS])
    return {n: units[n] for n in best}
