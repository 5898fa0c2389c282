"""The steps in which one page is judged: their order by depth, when each is due, and the recipe that takes it.

A step is due only where code does not know its answer: what the form of a page says is not asked.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from pandora_dagster.contracts.web.page_doc import PageDoc, PageType
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchRun, VisitRecord, VisitStatus
from pandora_dagster.documents.visits.visit_record import why_unusable
from pandora_dagster.language.terms import TermReader
from pandora_dagster.research.addresses import pages_of_list, words_of
from pandora_dagster.research.page_units import doubtful_zones
from pandora_dagster.research.recipe_calls import (
    CLAIM_EXTRACTOR,
    CLAIM_VERIFIER,
    EXTRACTION_VALIDATOR,
    EXTRACTOR_OF,
    INJECTION_SCREEN,
    LINK_RANKER,
    PAGE_RELEVANCE,
    PAGE_TYPE,
    PAGINATION_FINDER,
    READER_OF_TYPE,
    STOP_JUDGE,
    ZONE_CONFIDENCE,
)

_UNREADABLE: Mapping[PageType, str] = MappingProxyType(
    {
        PageType.LOGIN: "not judged: it asks for a login",
        PageType.CAPTCHA: "not judged: it asks for a captcha",
        PageType.ERROR: "not judged: it is an error page",
        PageType.CONSENT: "not judged: it asks for consent",
    }
)
"""What a page is that has nothing to judge, and the reason that its visit has."""
_UNCERTAIN = frozenset({PageType.INFO, PageType.HOME})
"""What a page is called whose form says no type."""
_LISTS = frozenset({PageType.LIST, PageType.TABLE, PageType.FORUM})
_DOUBTFUL = 0.5
"""Confidence of a claim below which a recipe says whether it holds."""
_TERMS = TermReader()


class PageStep(StrEnum):
    """A step in which a page is judged."""

    RELEVANCE = "relevance"
    TYPE = "type"
    ZONES = "zones"
    SCREEN = "screen"
    READING = "reading"
    VALIDATION = "validation"
    SECOND_READING = "second reading"
    VERIFICATION = "verification"
    NEXT_PAGE = "next page"
    LINKS = "links"
    STOP = "stop"


_STANDARD = (
    PageStep.RELEVANCE,
    PageStep.TYPE,
    PageStep.READING,
    PageStep.VALIDATION,
    PageStep.SECOND_READING,
    PageStep.VERIFICATION,
    PageStep.NEXT_PAGE,
    PageStep.LINKS,
    PageStep.STOP,
)
STEPS_OF_DEPTH: Mapping[Depth, tuple[PageStep, ...]] = MappingProxyType(
    {Depth.QUICK: (PageStep.READING,), Depth.STANDARD: _STANDARD, Depth.DEEP: tuple(PageStep)}
)
"""The steps of a page in their order."""
_RECIPES: Mapping[PageStep, str] = MappingProxyType(
    {
        PageStep.RELEVANCE: PAGE_RELEVANCE,
        PageStep.TYPE: PAGE_TYPE,
        PageStep.ZONES: ZONE_CONFIDENCE,
        PageStep.SCREEN: INJECTION_SCREEN,
        PageStep.VALIDATION: EXTRACTION_VALIDATOR,
        PageStep.VERIFICATION: CLAIM_VERIFIER,
        PageStep.NEXT_PAGE: PAGINATION_FINDER,
        PageStep.LINKS: LINK_RANKER,
        PageStep.STOP: STOP_JUDGE,
    }
)


def recipe_of(step: PageStep, visit: VisitRecord, page: PageDoc) -> str:
    """The recipe that takes a step: the reader of the page's type, the extractor of what is looked for, or the step's own one."""
    if step is PageStep.READING:
        return READER_OF_TYPE.get(type_of(visit, page), CLAIM_EXTRACTOR)
    if step is PageStep.SECOND_READING and visit.look_for:
        return EXTRACTOR_OF[visit.look_for]
    return _RECIPES[step]


def type_of(visit: VisitRecord, page: PageDoc) -> PageType:
    return visit.judged_type or page.page_type


def pending_step(run: ResearchRun, visit: VisitRecord, page: PageDoc, depth: Depth, *, goes_on: bool) -> PageStep | None:
    """The next step that judges a page; None where none does. `goes_on`: whether the run could read more."""
    is_read = not (visit.is_irrelevant or why_not_read(page))
    is_list = is_read and type_of(visit, page) in _LISTS and (visit.about_subject or bool(visit.claims))
    for step in STEPS_OF_DEPTH[depth]:
        if step in visit.decided:
            continue
        if step is PageStep.RELEVANCE:
            is_due = is_read and not _shares_terms(run, page)
        elif step is PageStep.TYPE:
            is_due = is_read and page.page_type in _UNCERTAIN
        elif step is PageStep.ZONES:
            is_due = is_read and bool(doubtful_zones(page))
        elif step in (PageStep.SCREEN, PageStep.READING):
            is_due = is_read
        elif step is PageStep.VALIDATION:
            is_due = is_read and _is_doubtful(visit)
        elif step is PageStep.SECOND_READING:
            is_due = is_read and visit.look_for is not None
        elif step is PageStep.VERIFICATION:
            is_due = bool(visit.claims)
        elif step is PageStep.NEXT_PAGE:
            is_due = is_list and bool(page.next_page or pages_of_list(page.final_url, page.links))
        elif step is PageStep.LINKS:
            is_due = bool(page.links) and not visit.is_irrelevant
        else:
            is_due = bool(visit.claims) and goes_on
        if is_due:
            return step
    return None


def with_page(visit: VisitRecord, page: PageDoc) -> VisitRecord:
    """The visit with its page. One that may not be used is refused and left out, so that no recipe reads anything of it."""
    if reason := why_unusable(page):
        return visit.model_copy(update={"status": VisitStatus.REFUSED, "reason": reason})
    return visit.model_copy(update={"page": page, "reason": visit.reason or why_not_read(page)})


def why_not_read(page: PageDoc) -> str:
    """Why no recipe reads a page: it has nothing to judge; "" for one that is read."""
    return _UNREADABLE.get(page.page_type, "")


def _shares_terms(run: ResearchRun, page: PageDoc) -> bool:
    """Whether title or address of a page have a term of what is asked about; true where nothing is named."""
    wanted = frozenset(_TERMS.terms(run.plan.subject if run.plan else ""))
    return not wanted or bool(wanted & frozenset(_TERMS.terms(f"{page.title} {words_of(page.final_url)}")))


def _is_doubtful(visit: VisitRecord) -> bool:
    """Whether a page about the subject gave nothing, or claims of which one is weak."""
    if not visit.claims:
        return visit.about_subject
    return any(claim.worth * claim.zone_confidence < _DOUBTFUL for claim in visit.claims)
