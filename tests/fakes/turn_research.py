"""Research within a turn without the web."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.user.sources import Visit
from pandora_dagster.contracts.web.fetched import FetchedPage, RobotsAnswer
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_run import (
    EvidenceClaim,
    ResearchOutcome,
    ResearchRun,
    SearchRecord,
    VisitRecord,
    VisitStatus,
)
from pandora_dagster.contracts.web.turn_research import TurnFindings, TurnQuestion
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.tools.internet_research import InternetResearch

LAMP = "http://a.test/vela"
_HTML = """<!doctype html><html lang="en"><head><title>Vela lamp</title></head><body><main><h1>Vela lamp</h1>
<p>The Vela lamp shines for twelve hours on one charge and is made for long nights on dark roads.</p>
<table><tr><th>Weight</th><td>210 g</td></tr></table></main></body></html>"""
ALLOWS_ALL = RobotsAnswer(text="", unavailable="", until=0.0)


def lamp_page(url: str = LAMP) -> PageDoc:
    """The page of a lamp, as it is read."""
    headers: Mapping[str, str] = {"content-type": "text/html; charset=utf-8"}
    return read_page(FetchedPage(url, url, 200, headers, _HTML.encode(), datetime(2026, 10, 15, tzinfo=UTC), (url,)))


def lamp_visit(**data: str) -> Visit:
    return Visit(
        visit_id="visit_lamp",
        url=LAMP,
        visited_at="2026-10-15T00:00:00Z",
        page_type="product",
        extracted_data={"title": "Vela lamp", **data},
        extraction_quality=0.9,
    )


def lamp_run(**changed: object) -> ResearchRun:
    """A run that found the weight of the lamp."""
    claim = EvidenceClaim(claim="Vela lamp: Weight 210 g", value="210 g", url=LAMP, quote="Weight 210 g", confidence=0.9)
    run = ResearchRun(
        question="What does the Vela lamp weigh?",
        searches=(SearchRecord(query="Vela lamp weigh", provider="recorded", hits=1),),
        visits=(VisitRecord(url=LAMP, chosen_because="its words", status=VisitStatus.READ, page=lamp_page()),),
        outcome=ResearchOutcome.ANSWERED,
        claims=(claim,),
    )
    return run.model_copy(update=changed)


def lamp_findings(**changed: object) -> TurnFindings:
    return replace(TurnFindings(lamp_run(), (lamp_visit(),)), **changed)  # type: ignore[arg-type]


@dataclass
class _GivenFindings:
    """Gives the same findings for each question."""

    findings: TurnFindings
    asked: list[TurnQuestion] = field(default_factory=list[TurnQuestion])
    released: list[TurnKey] = field(default_factory=list[TurnKey])

    async def research(self, asked: TurnQuestion, report: Callable[[str], None]) -> TurnFindings:
        self.asked.append(asked)
        report("search recorded: Vela lamp weigh")
        return self.findings

    def release(self, turn: TurnKey) -> None:
        self.released.append(turn)


def research_tool(findings: TurnFindings, robots: RobotsAnswer | None = ALLOWS_ALL) -> InternetResearch:
    """The tool over findings that are given."""
    return InternetResearch(_GivenFindings(findings), lambda url: robots)
