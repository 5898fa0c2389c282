"""One run of research: what was searched, which pages were read, what they say. It is also the run's checkpoint."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.web.page_doc import PageDoc


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
    """One query that was sent."""

    query: str
    provider: str
    hits: int = 0
    fault: str = ""
    """Why the provider gave no answer."""
    notices: tuple[str, ...] = ()


class VisitRecord(StrictModel):
    """One address that was chosen, why, and what became of it."""

    url: str
    chosen_because: str
    status: VisitStatus
    reason: str = ""
    page: PageDoc | None = None


class ChosenAddress(StrictModel):
    """An address that waits for its visit."""

    url: str
    title: str = ""
    score: float
    because: str


class ResearchRun(StrictModel):
    """A run under way or ended. It is stored whole after each visit, so that a killed run goes on without visiting again."""

    question: str
    searches: tuple[SearchRecord, ...] = ()
    waiting: tuple[ChosenAddress, ...] = ()
    visits: tuple[VisitRecord, ...] = ()
    outcome: ResearchOutcome | None = None
    """None while the run is under way."""
    claims: tuple[EvidenceClaim, ...] = ()
    notices: tuple[str, ...] = ()
