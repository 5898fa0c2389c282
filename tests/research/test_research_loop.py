"""The loop: what fails costs itself, a double counts once, the budget ends it, a run that was cut off visits nothing again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitStatus
from pandora_dagster.contracts.web.search import SearchHit, SearchHits
from pandora_dagster.errors import FetchFailedError, FetchRefusedError, PandoraError
from pandora_dagster.research.research_loop import ResearchLoop, RunLimits
from tests.research.research_pages import page

QUESTION = "What does the Vela 30 cost?"
PAGES = {
    f"http://{host}.test/vela-30": page(f"http://{host}.test/vela-30", "Vela 30", text)
    for host, text in (("a", "Price: £70.00"), ("b", "Price: £71.00"))
}


@dataclass
class FakeSearch:
    hits: tuple[SearchHit, ...]
    fault: PandoraError | None = None
    name: str = "fake"
    queries: list[str] = field(default_factory=list)

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        self.queries.append(query)
        if self.fault:
            raise self.fault
        return SearchHits(self.hits if page == 1 else ())


@dataclass
class FakeVisitor:
    pages: Mapping[str, PageDoc | PandoraError]
    visited: list[str] = field(default_factory=list)
    killed_at: int = -1

    def visit(self, url: str) -> PageDoc:
        if len(self.visited) == self.killed_at:
            raise KeyboardInterrupt
        self.visited.append(url)
        found = self.pages[url]
        if isinstance(found, PandoraError):
            raise found
        return found


@dataclass
class MemoryRuns:
    text: str = ""

    def load(self) -> ResearchRun | None:
        return ResearchRun.model_validate_json(self.text) if self.text else None

    def save(self, run: ResearchRun) -> None:
        self.text = run.model_dump_json()


def hits(*urls: str) -> tuple[SearchHit, ...]:
    return tuple(SearchHit(url, "Vela 30", "price") for url in urls)


def loop(search: FakeSearch, visitor: FakeVisitor, runs: MemoryRuns, pages: int = 8) -> ResearchLoop:
    return ResearchLoop((search,), visitor, runs, RunLimits(pages, 60), lambda _: None)


def test_what_fails_is_recorded_and_the_rest_goes_on() -> None:
    dead, barred = "http://dead.test/vela-30", "http://barred.test/vela-30"
    pages = {**PAGES, dead: FetchFailedError("dead: 503"), barred: FetchRefusedError("barred: robots.txt", rule="robots")}
    run = loop(FakeSearch(hits(dead, barred, *PAGES)), FakeVisitor(pages), MemoryRuns()).run(QUESTION)
    assert run.outcome is ResearchOutcome.ANSWERED and {c.value for c in run.claims} == {"£70.00", "£71.00"}
    reasons = {visit.url: (visit.status, visit.reason) for visit in run.visits}
    assert reasons[dead] == (VisitStatus.FAILED, "dead: 503")
    assert reasons[barred] == (VisitStatus.REFUSED, "robots: barred: robots.txt")


def test_a_provider_that_is_down_is_a_recorded_reason() -> None:
    search = FakeSearch((), FetchFailedError("searxng: 500"))
    run = loop(search, FakeVisitor({}), MemoryRuns()).run(QUESTION)
    assert run.outcome is ResearchOutcome.NOT_FOUND and {s.fault for s in run.searches} == {"searxng: 500"}
    assert run.notices == ("no search provider answered",)


def test_doubles_of_an_address_and_of_a_text_count_once() -> None:
    first, second = PAGES
    printed = PAGES[first].model_copy(update={"url": "http://a.test/print", "final_url": "http://a.test/print"})
    search = FakeSearch(hits(first, f"{first}?utm_source=x", f"{first}#top", "http://a.test/print", second))
    visitor = FakeVisitor({**PAGES, "http://a.test/print": printed})
    run = loop(search, visitor, MemoryRuns()).run(QUESTION)
    assert sorted(visitor.visited) == sorted([first, "http://a.test/print", second])
    assert [v.status for v in run.visits if v.url == "http://a.test/print"] == [VisitStatus.DUPLICATE]


def test_the_budget_ends_a_run_and_says_so() -> None:
    run = loop(FakeSearch(hits(*PAGES)), visitor := FakeVisitor(PAGES), MemoryRuns(), pages=1).run(QUESTION)
    assert len(visitor.visited) == 1 and "1 addresses were not visited" in run.notices[0]


@pytest.mark.parametrize("killed_at", range(3))
def test_a_run_that_was_cut_off_goes_on_without_a_second_visit(killed_at: int) -> None:
    runs, search, urls = MemoryRuns(), FakeSearch(hits(*PAGES)), sorted(PAGES)
    first = FakeVisitor(PAGES, killed_at=killed_at)
    if killed_at < len(PAGES):
        with pytest.raises(KeyboardInterrupt):
            loop(search, first, runs).run(QUESTION)
    else:
        loop(search, first, runs).run(QUESTION)
    asked = len(search.queries)
    second = FakeVisitor(PAGES)
    run = loop(search, second, runs).run(QUESTION)
    assert sorted(first.visited + second.visited) == urls and len(search.queries) == asked
    assert run.outcome is ResearchOutcome.ANSWERED and len(run.claims) == 2
