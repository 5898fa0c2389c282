"""One run of research: what was searched, which pages were read, what they say. It is also the run's checkpoint."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.web.fetched import Seconds
from pandora_dagster.contracts.web.page_doc import PageDoc, PageType
from pandora_dagster.contracts.web.research_decisions import LookedFor, MergedAnswer, ReportStatement, ResearchPlan


class ResearchOutcome(StrEnum):
    """How a run ends."""

    ANSWERED = "answered"
    CONTRADICTION = "contradiction told"
    NOT_FOUND = "not found"
    NEEDS_PERSON = "needs a person"


class VisitStatus(StrEnum):
    """What became of an address that was chosen."""

    READ = "read"
    REFUSED = "refused"
    FAILED = "failed"
    DUPLICATE = "duplicate"


class EvidenceClaim(StrictModel):
    """What a page says about the question."""

    claim: str
    """The page's title and the quote, in one line."""
    value: str
    """The asked value as it is written in `quote`; the quote where no single value is asked."""
    url: str
    quote: str
    """Verbatim words of the page's visible text."""
    confidence: Annotated[float, Field(ge=0, le=1)]


class SearchRecord(StrictModel):
    """One query to one provider."""

    query: str
    provider: str
    hits: int = 0
    fault: str = ""
    """Why the provider gave no answer."""
    notices: tuple[str, ...] = ()
    refused: bool = False
    """Whether a rule refused it: it was not sent."""


class Verdict(StrEnum):
    """Whether a quote says what a claim makes of it."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNCLEAR = "unclear"


class PageClaim(StrictModel):
    """A unit of a page that answers a need. Code has verified that the quote is in the page, and the value in the quote."""

    need: int
    """Counted from 1 in the needs of the plan."""
    value: str
    quote: str
    under: str
    """The heading of the quote, or the headings of its row and column."""
    worth: float
    zone_confidence: float
    verdict: Verdict = Verdict.UNCLEAR
    outdated: bool = False
    """Whether a newer page overtakes it, as a recipe judged."""


class VisitRecord(StrictModel):
    """One address that was chosen, why, and what became of it."""

    url: str
    chosen_because: str
    status: VisitStatus
    reason: str = ""
    page: PageDoc | None = None
    worth: float = 0.0
    """How likely the address was to answer when it was chosen."""
    judged_type: PageType | None = None
    """What the page is for, as a recipe judged; None where its form says it."""
    content_zones: tuple[int, ...] = ()
    """Zones, counted from 1, that belong to the content although their sources disagree, as a recipe judged."""
    is_irrelevant: bool = False
    """Whether a recipe has judged that the page cannot answer: it is not read."""
    look_for: LookedFor | None = None
    """What a second reading of the page looks for; None where none is wanted."""
    about_subject: bool = False
    """Whether the page is about the subject; otherwise it only mentions it."""
    flagged: tuple[int, ...] = ()
    """Units of the page that a recipe takes for orders to a model: no later recipe reads them."""
    claims: tuple[PageClaim, ...] = ()
    decided: tuple[str, ...] = ()
    """The steps that have judged the page: a run that goes on does not take them again."""


class ChosenAddress(StrictModel):
    """An address that waits for its visit."""

    url: str
    title: str = ""
    score: float
    because: str


class FoundHit(StrictModel):
    """A search result that waits for its selection."""

    url: str
    title: str
    snippet: str


class ResearchRun(StrictModel):
    """A run under way or ended. It is stored whole after each step, so that a killed run repeats no visit and no model call."""

    question: str
    plan: ResearchPlan | None = None
    queries: tuple[str, ...] = ()
    """Those that were sent are in `searches`."""
    rewrites: int = 0
    """How often further queries were written."""
    searches: tuple[SearchRecord, ...] = ()
    hits: tuple[FoundHit, ...] = ()
    """Search results that no selection has read yet."""
    waiting: tuple[ChosenAddress, ...] = ()
    is_weighed: bool = False
    """Whether a recipe has weighed the waiting addresses against each other since the last selection."""
    visits: tuple[VisitRecord, ...] = ()
    missing: tuple[int, ...] = ()
    """Needs of the plan without a claim, as a recipe judged last."""
    is_enough: bool = False
    """Whether a recipe has judged that no more pages are needed."""
    answers: tuple[MergedAnswer, ...] | None = None
    """The distinct answers, as numbers of claims; None where the claims are not merged yet."""
    disagrees: bool = False
    """Whether answers of different sources cannot both hold, as a recipe judged."""
    outcome: ResearchOutcome | None = None
    """None while the run is under way."""
    claims: tuple[EvidenceClaim, ...] = ()
    summary: str = ""
    """Of the stored record; "" where no recipe has written one."""
    statements: tuple[ReportStatement, ...] = ()
    """The report in prose; the numbers count `claims` from 1. Empty where no recipe has written one."""
    decided: tuple[str, ...] = ()
    """The recipes that have judged the whole run."""
    calls: int = 0
    """Recipe calls so far."""
    notices: tuple[str, ...] = ()
    seconds: Seconds = 0.0
    """How long it was under way so far, without the time between two programs."""
