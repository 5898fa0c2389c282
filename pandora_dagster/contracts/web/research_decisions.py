"""What the recipes of research decide. Models choose by number, so that a decision names no page, unit or claim that does not exist."""

from typing import Annotated, Literal

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.web.page_doc import PageType

HoldsFor = Literal["hours", "days", "months"]
ClaimLabel = Literal["supported", "unsupported", "unclear"]
ReadingDecision = Literal["accept", "reject", "retry"]
LookedFor = Literal["anything", "price", "specification", "availability", "review", "date"]
Number = Annotated[int, Field(ge=1)]
Worth = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ResearchPlan(StrictModel):
    """What would answer the question (`research/strategy`)."""

    subject: str
    """What the question is about, in its own words; "" where it names nothing."""
    needs: tuple[str, ...]
    """What must be found out, one question each."""
    holds_for: HoldsFor
    """How long an answer holds: prices for hours, announcements for days, properties for months."""


MAX_QUERY_CHARACTERS = 300
"""Of a query for a search engine; the recipes that write queries have it in their schemas."""


class SearchQueries(StrictModel):
    """Queries for a search engine (`research/query_writer`, `research/query_rewriter`)."""

    queries: tuple[str, ...]
    reason: str = ""


class ChosenNumber(StrictModel):
    """A hit or a link to visit."""

    number: Number
    worth: Worth
    because: str


class Selection(StrictModel):
    """Addresses by number: hits or links to visit, or waiting addresses weighed again (`research/result_selector`, `browser/link_ranker`,
    `research/source_credibility`, `research/vendor_selector`)."""

    visit: tuple[ChosenNumber, ...]


class PageRelevance(StrictModel):
    """Whether a page may answer (`research/page_relevance`)."""

    reason: str
    relevant: bool


class PageKind(StrictModel):
    """What a page is for (`browser/page_type`)."""

    reason: str
    page_type: PageType


class ContentZones(StrictModel):
    """Zones that belong to what a page is about, of those whose sources disagree (`browser/zone_confidence`)."""

    reason: str
    zones: tuple[Number, ...]


class NextPage(StrictModel):
    """The link to the next page of a list (`browser/pagination_finder`)."""

    reason: str
    link: Annotated[int, Field(ge=0)]
    """0 where none leads there."""


class FlaggedUnit(StrictModel):
    """A unit that addresses a model instead of a reader."""

    unit: Number
    reason: str


class InjectionFlags(StrictModel):
    """The units of a page that no later recipe reads (`browser/injection_screen`)."""

    flagged: tuple[FlaggedUnit, ...]


class UnitClaim(StrictModel):
    """A unit of a page that answers a need."""

    unit: Number
    value: str
    """The answer as the unit has it: words of it, or the date or state that it gives."""
    need: Number
    worth: Worth
    """How directly the unit answers."""


class PageClaims(StrictModel):
    """What a page says (`research/claim_extractor`, the readers of `browser`, the extractors of `research`)."""

    about_subject: bool
    """Whether the page is about the subject; otherwise it only mentions it."""
    claims: tuple[UnitClaim, ...]


class ReadingJudgement(StrictModel):
    """Whether what was read from a page holds (`browser/extraction_validator`)."""

    reason: str
    decision: ReadingDecision
    look_for: LookedFor = "anything"
    """What a second reading looks for, where `decision` is `retry`."""


class ClaimVerdict(StrictModel):
    """Whether a quote says what the claim makes of it."""

    number: Number
    reason: str
    verdict: ClaimLabel


class ClaimVerdicts(StrictModel):
    """The verdicts about the claims of a page (`research/claim_verifier`)."""

    verdicts: tuple[ClaimVerdict, ...]


class MergedAnswer(StrictModel):
    """Claims that say the same, the best one first."""

    claims: tuple[Number, ...]


class MergedClaims(StrictModel):
    """The distinct answers to the question (`research/claim_merger`)."""

    answers: tuple[MergedAnswer, ...]
    reason: str = ""


class OutdatedClaims(StrictModel):
    """Claims that a newer page overtakes (`research/freshness_judge`)."""

    reason: str
    claims: tuple[Number, ...]


class Conflict(StrictModel):
    """Claims of which one at most can hold."""

    reason: str
    claims: tuple[Number, ...]


class Contradictions(StrictModel):
    """Which answers of different sources cannot both hold (`research/contradiction_finder`)."""

    conflicts: tuple[Conflict, ...]


class StopJudgement(StrictModel):
    """Whether more pages are needed (`research/stop_judge`)."""

    reason: str
    enough: bool
    missing: tuple[Number, ...]
    """Needs that no claim answers."""


class BlockedPages(StrictModel):
    """Pages that a person must open, because they would answer (`browser/blocker_classifier`)."""

    reason: str
    pages: tuple[Number, ...]


class RecordSummary(StrictModel):
    """The summary of the stored record (`research/record_summary`)."""

    summary: str


class ReportStatement(StrictModel):
    """A statement of the report with the claims that support it."""

    text: str
    claims: tuple[Number, ...]


class ReportText(StrictModel):
    """The report's text (`research/report_writer`)."""

    statements: tuple[ReportStatement, ...]
