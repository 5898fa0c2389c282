"""The loop: what fails costs itself, a double counts once, the budget ends it, a run that was cut off visits nothing again."""

import asyncio

import pytest

from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitStatus
from pandora_dagster.contracts.web.search import SearchHit
from pandora_dagster.errors import BadAnswerError, FetchFailedError, FetchRefusedError, HaltError
from pandora_dagster.research.research_loop import ResearchLoop, RunLimits
from pandora_dagster.research.run_ports import VisitedPage
from tests.research.research_pages import page
from tests.research.research_runs import FakeSearch, FakeVisitor, KilledError, MemoryRuns, RoleRuntime, recipe_calls, research

QUESTION = "What does the Vela 30 cost?"
PAGES = {
    f"http://{host}.test/vela-30": page(f"http://{host}.test/vela-30", "Vela 30", text)
    for host, text in (("a", "Price: £70.00"), ("b", "Price: £71.00"))
}


def hits(*urls: str) -> tuple[SearchHit, ...]:
    return tuple(SearchHit(url, "Vela 30", "price") for url in urls)


def run_of(
    search: FakeSearch, visitor: FakeVisitor, runs: MemoryRuns, pages: int = 8, runtime: RoleRuntime | None = None, question: str = QUESTION
) -> ResearchRun:
    calls = recipe_calls(runtime or RoleRuntime())
    return asyncio.run(ResearchLoop((search,), visitor, runs, RunLimits(pages, 60), calls, lambda _: None).run(question))


def test_what_fails_is_recorded_and_the_rest_goes_on() -> None:
    dead, barred = "http://dead.test/vela-30", "http://barred.test/vela-30"
    pages = {**PAGES, dead: FetchFailedError("dead: 503"), barred: FetchRefusedError("barred: robots.txt", rule="robots")}
    run = run_of(FakeSearch(hits(dead, barred, *PAGES)), FakeVisitor(pages), MemoryRuns())
    assert run.outcome is ResearchOutcome.ANSWERED and {c.value for c in run.claims} == {"£70.00", "£71.00"}
    reasons = {visit.url: (visit.status, visit.reason) for visit in run.visits}
    assert reasons[dead] == (VisitStatus.FAILED, "dead: 503")
    assert reasons[barred] == (VisitStatus.REFUSED, "robots: barred: robots.txt")


def test_a_provider_that_is_down_is_a_recorded_reason() -> None:
    search = FakeSearch((), FetchFailedError("searxng: 500"))
    run = run_of(search, FakeVisitor({}), MemoryRuns())
    assert run.outcome is ResearchOutcome.NOT_FOUND and {s.fault for s in run.searches} == {"searxng: 500"}
    assert run.notices == ("no search provider answered",)


def test_doubles_of_an_address_and_of_a_text_count_once() -> None:
    first, second = PAGES
    printed = PAGES[first].model_copy(update={"url": "http://a.test/print", "final_url": "http://a.test/print"})
    search = FakeSearch(hits(first, f"{first}?utm_source=x", f"{first}#top", "http://a.test/print", second))
    visitor = FakeVisitor({**PAGES, "http://a.test/print": printed})
    run = run_of(search, visitor, MemoryRuns())
    assert sorted(visitor.visited) == sorted([first, "http://a.test/print", second])
    assert [v.status for v in run.visits if v.url == "http://a.test/print"] == [VisitStatus.DUPLICATE]


def test_the_budget_ends_a_run_and_says_so() -> None:
    run = run_of(FakeSearch(hits(*PAGES)), visitor := FakeVisitor(PAGES), MemoryRuns(), pages=1)
    assert len(visitor.visited) == 1 and "1 address not visited" in run.notices[0]


def test_a_run_that_was_cut_off_has_the_seconds_that_are_left() -> None:
    visitor, runs = FakeVisitor(PAGES), MemoryRuns(saves_left=3)
    with pytest.raises(KilledError):
        run_of(FakeSearch(hits(*PAGES)), visitor, runs)
    cut_off = runs.load()
    assert cut_off and cut_off.waiting == () and 0 < cut_off.seconds < 60
    runs.saves_left = -1
    runs.save(cut_off.model_copy(update={"seconds": 60.0}))
    run = run_of(FakeSearch(hits(*PAGES)), visitor, runs)
    assert visitor.visited == [] and run.seconds >= 60
    assert "2 addresses not visited: the budget was spent" in run.notices


def test_a_run_that_was_cut_off_after_any_step_repeats_no_visit_no_query_and_no_call() -> None:
    """As often as there are steps: each step but the one that was under way is done once."""
    whole_visitor, whole, search = FakeVisitor(PAGES), RoleRuntime(), FakeSearch(hits(*PAGES))
    expected = run_of(search, whole_visitor, MemoryRuns(), runtime=whole)
    steps = len(whole.packs)
    assert steps > 8
    killed_at = 0
    while True:
        runs, runtime, visitor = MemoryRuns(saves_left=killed_at), RoleRuntime(), FakeVisitor(PAGES)
        try:
            run_of(search, visitor, runs, runtime=runtime)
        except KilledError:
            pass
        else:
            break
        runs.saves_left = -1
        run = run_of(search, visitor, runs, runtime=runtime)
        assert run.model_copy(update={"seconds": expected.seconds}) == expected
        assert len(runtime.packs) + len(visitor.visited) <= steps + len(PAGES) + 1
        killed_at += 1
    assert killed_at > steps


@pytest.mark.parametrize(
    ("depth", "absent"), [(Depth.QUICK, {"claim_verifier", "link_ranker", "stop_judge", "report_writer"}), (Depth.STANDARD, set[str]())]
)
def test_the_depth_decides_which_recipes_are_called(depth: Depth, absent: set[str]) -> None:
    linked = {url: page.model_copy(update={"links": ("http://a.test/other",)}) for url, page in PAGES.items()}
    runtime = RoleRuntime()
    research(QUESTION, linked.values(), runtime=runtime, limits=RunLimits(2, 60, depth))
    called = set(runtime.roles())
    assert called >= {"strategy", "query_writer", "result_selector", "claim_extractor", "claim_merger"}
    assert {"claim_verifier", "link_ranker", "stop_judge", "report_writer"} - called == absent


def test_calls_are_bounded() -> None:
    """A model that finds a link to follow on every page does not go on for ever."""
    chain = [
        page(f"http://a.test/{n}", f"Vela {n}", f"Part {n} of the story.").model_copy(update={"links": (f"http://a.test/{n + 1}",)})
        for n in range(100)
    ]
    follow = RoleRuntime(script={"link_ranker": lambda _: {"visit": [{"number": 1, "because": "more", "worth": 1.0}]}})
    limits = RunLimits(4, 60)
    run = research("What is part 50?", chain, runtime=follow, limits=limits)
    assert len([v for v in run.visits if v.page]) == 4 and len(follow.packs) <= limits.calls


def test_a_picture_that_was_read_counts_as_a_call_and_one_that_was_not_is_a_notice() -> None:
    (first, one), (second, other) = PAGES.items()
    visitor = FakeVisitor({first: VisitedPage(one, calls=1), second: VisitedPage(other, unread="its picture was not read: no model")})
    without = run_of(FakeSearch(hits(*PAGES)), FakeVisitor(PAGES), MemoryRuns())
    run = run_of(FakeSearch(hits(*PAGES)), visitor, MemoryRuns())
    assert run.calls == without.calls + 1 and run.claims == without.claims
    assert run.notices == (*without.notices, f"{second}: its picture was not read: no model")


def test_the_first_failed_decision_about_a_page_costs_itself_and_the_second_halts() -> None:
    runtime, runs = RoleRuntime(script={"claim_extractor": BadAnswerError("no JSON")}), MemoryRuns()
    with pytest.raises(HaltError, match="no JSON"):
        run_of(FakeSearch(hits(*PAGES)), visitor := FakeVisitor(PAGES), runs, runtime=runtime)
    assert len(visitor.visited) == 2 and any("no JSON" in notice for notice in (runs.load() or ResearchRun(question="")).notices)
    run = run_of(FakeSearch(()), FakeVisitor(PAGES), runs)
    assert run.outcome is ResearchOutcome.ANSWERED and len(run.claims) == 1


def test_each_decision_is_a_line_of_progress() -> None:
    lines: list[str] = []
    research(QUESTION, PAGES.values(), report=lines.append)
    for begins in (
        "plan",
        "write queries",
        "search fake",
        "select 2 of",
        "visit http",
        "research/claim_extractor",
        "research/claim_merger",
    ):
        assert any(line.startswith(begins) for line in lines), begins
