"""What code verifies of a research run after it ended: quotes, robots.txt, sources."""

from collections.abc import Callable
from urllib.parse import urlsplit

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.web.fetched import RobotsAnswer
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_run import ResearchRun, VisitStatus
from pandora_dagster.research.verification import is_in_page, is_value_of
from pandora_dagster.tools.search.folder import SCHEME, is_file_address

GIVEN = "given by the user: the page wants a person"
"""The reason of a visit whose page the user gave."""
RobotsOf = Callable[[str], RobotsAnswer | None]
"""Address -> what its host answered to the request for robots.txt; None where that is not known."""


def check_run(run: ResearchRun, robots_of: RobotsOf) -> tuple[GateVerdict, ...]:
    """The verdicts `quotes_verbatim`, `robots_respected` and `sources_allowed`."""
    return (_quotes_verbatim(run), _robots_respected(run, robots_of), _sources_allowed(run))


def _pages(run: ResearchRun) -> dict[str, PageDoc]:
    """The pages that were read, by the address that answered."""
    return {visit.page.final_url: visit.page for visit in run.visits if visit.page and visit.status is VisitStatus.READ}


def _quotes_verbatim(run: ResearchRun) -> GateVerdict:
    pages = _pages(run)
    faults: list[str] = []
    for claim in run.claims:
        page = pages.get(claim.url)
        if page is not None and not is_in_page(claim.quote, page):
            faults.append(f"{claim.url}: the visible text does not have the words of a claim")
        elif page is not None and claim.value and not is_value_of(claim.value, claim.quote, page):
            faults.append(f"{claim.url}: the quote of a claim does not have its value")
    return GateVerdict("quotes_verbatim", not faults, "; ".join(dict.fromkeys(faults)))


def _robots_respected(run: ResearchRun, robots_of: RobotsOf) -> GateVerdict:
    """Each page that was fetched from a host is one that its stored robots.txt allows."""
    from pandora_dagster.tools.egress.robots import is_allowed

    faults: list[str] = []
    for visit in run.visits:
        if visit.page is None or visit.status is not VisitStatus.READ or visit.reason == GIVEN or is_file_address(visit.page.final_url):
            continue
        answer = robots_of(visit.page.final_url)
        if answer is None:
            faults.append(f"{visit.page.final_url}: no robots.txt of its host is known")
        elif not answer.unavailable and not is_allowed(answer, visit.page.final_url):
            faults.append(f"{visit.page.final_url}: robots.txt disallows it")
    return GateVerdict("robots_respected", not faults, "; ".join(faults))


def _sources_allowed(run: ResearchRun) -> GateVerdict:
    """A claim comes from a page that this run read on the web or in a folder of documents."""
    pages = _pages(run)
    wrong = [c.url for c in run.claims if c.url not in pages or urlsplit(c.url).scheme not in ("http", "https", SCHEME)]
    reason = f"a claim comes from a page that was not read: {', '.join(dict.fromkeys(wrong))}" if wrong else ""
    return GateVerdict("sources_allowed", not wrong, reason)
