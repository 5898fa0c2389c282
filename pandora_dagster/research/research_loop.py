"""The loop: plan, search, select, visit, judge each page, conclude, report. Stored whole after each step.

Code decides the order, the bounds and what is verified; every judgement is the call of a recipe, named in `recipe_calls`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import Any

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import (
    ChosenAddress,
    FoundHit,
    ResearchOutcome,
    ResearchRun,
    SearchRecord,
    VisitRecord,
    VisitStatus,
)
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.errors import FetchRefusedError, HaltError, PandoraError
from pandora_dagster.language.detection import question_language
from pandora_dagster.language.word_forms import counted
from pandora_dagster.research.addresses import host_of, without_address
from pandora_dagster.research.page_decisions import PageDecisions
from pandora_dagster.research.reading_steps import STEPS_OF_DEPTH, PageStep, pending_step, recipe_of, with_page
from pandora_dagster.research.recipe_calls import (
    CLAIM_MERGER,
    CONTRADICTION_FINDER,
    FRESHNESS_JUDGE,
    RECORD_SUMMARY,
    REPORT_WRITER,
    RecipeCalls,
)
from pandora_dagster.research.run_decisions import RunDecisions, conclusion, may_disagree, numbered_claims, own_query
from pandora_dagster.research.run_ports import PageVisitor, RunStore
from pandora_dagster.research.search_step import search_provider

PAGES_OF_DEPTH = {Depth.QUICK: 3, Depth.STANDARD: 8, Depth.DEEP: 20}
_END_RECIPES = {Depth.QUICK: (), Depth.STANDARD: (RECORD_SUMMARY, REPORT_WRITER), Depth.DEEP: (RECORD_SUMMARY, REPORT_WRITER)}
"""The recipes that write about an ended run that found something."""
_REWRITES = {Depth.QUICK: 0, Depth.STANDARD: 1, Depth.DEEP: 3}
"""How often further queries may be written."""
Step = Callable[[ResearchRun], Awaitable[ResearchRun]]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Where a run ends: pages read, addresses tried, recipe calls, and seconds."""

    pages: int
    seconds: float
    depth: Depth = Depth.STANDARD

    @property
    def addresses(self) -> int:
        """Failed and refused addresses cost less than pages, but not nothing."""
        return 2 * self.pages

    @property
    def calls(self) -> int:
        """Calls after which no further page is visited: every recipe of a page, and those before the first."""
        return 8 + (len(STEPS_OF_DEPTH[self.depth]) + 1) * self.pages


@dataclass(slots=True)
class ResearchLoop:
    """Answers one question."""

    providers: Sequence[SearchProvider]
    visitor: PageVisitor
    store: RunStore
    limits: RunLimits
    calls: RecipeCalls
    report: Callable[[str], None]
    """Receives one line for each step."""
    _failed: bool = False
    """Whether a decision about one page has failed: one failure costs that decision, the next one halts the run."""

    async def run(self, text: str) -> ResearchRun:
        """The ended run; a run of the same question that was cut off goes on. Raises HaltError where a recipe call fails for good."""
        run = self.store.load() or ResearchRun(question=text)
        begin = monotonic() - run.seconds
        while step := self._next_step(run):
            run = await step(run)
            run = run.model_copy(update={"seconds": monotonic() - begin})
            self.store.save(run)
        return run

    def _next_step(self, run: ResearchRun) -> Step | None:
        """What the run needs next; None where it has ended."""
        if run.outcome is not None:
            return self._end_step(run)
        if run.plan is None:
            return self._plan
        if not run.queries:
            return self._write_queries
        if len({search.query for search in run.searches}) < len(run.queries):
            return self._search
        if all(search.refused for search in run.searches) and (own := own_query(run.question)) not in (*run.queries, ""):
            return lambda run: self._search(run.model_copy(update={"queries": (*run.queries, own)}))
        if run.hits:
            return self._select
        if run.visits and (page := run.visits[-1].page) and (due := self._pending_step(run, run.visits[-1], page)):
            return lambda run: self._judge_page(run, page, due)
        is_spent = self._is_spent(run)
        if run.waiting and not is_spent and not run.is_enough:
            return self._weigh if self._must_choose(run) else self._visit
        if not is_spent and self._may_rewrite(run):
            return self._rewrite_queries
        return self._end_of_claims(run) or self._conclude

    def _must_choose(self, run: ResearchRun) -> bool:
        """Whether more addresses of several hosts wait than may be read, and nothing has weighed them since the last selection."""
        left = self.limits.pages - _pages_read(run)
        hosts = {host_of(address.url) for address in run.waiting}
        return not run.is_weighed and self.limits.depth is not Depth.QUICK and len(hosts) > 1 and len(run.waiting) > left

    def _end_of_claims(self, run: ResearchRun) -> Step | None:
        """What is still to be judged about all claims: which are outdated, which answer, whether answers contradict each other."""
        claims = numbered_claims(run)
        if not claims:
            return None
        if FRESHNESS_JUDGE not in run.decided and len(claims) > 1 and any(c.line.date for c in claims):
            return self._mark_outdated
        if run.answers is None:
            return self._merge
        return self._compare_answers if CONTRADICTION_FINDER not in run.decided and may_disagree(run) else None

    def _may_rewrite(self, run: ResearchRun) -> bool:
        """Whether other queries may find what these did not: a need is open, and a provider answers."""
        is_open = bool(run.missing) or not numbered_claims(run)
        is_answered = any(not search.fault for search in run.searches)
        return is_open and is_answered and run.rewrites < _REWRITES[self.limits.depth] and not run.is_enough

    def _is_spent(self, run: ResearchRun) -> bool:
        limits = self.limits
        used = (_pages_read(run), len(run.visits), run.calls, run.seconds)
        return any(u >= limit for u, limit in zip(used, (limits.pages, limits.addresses, limits.calls, limits.seconds), strict=True))

    async def _plan(self, run: ResearchRun) -> ResearchRun:
        self.report("plan: what would answer the question")
        plan = await self._decisions.plan(run.question)
        return _called(run, {"plan": plan})

    async def _write_queries(self, run: ResearchRun) -> ResearchRun:
        self.report("write queries")
        queries, notices = await self._decisions.queries(run)
        return _called(run, {"queries": queries, "notices": (*run.notices, *notices)})

    async def _rewrite_queries(self, run: ResearchRun) -> ResearchRun:
        """Further queries for what no page that was read answers."""
        self.report("write further queries: not all is answered yet")
        answer = await self._decisions.further_queries(run)
        notices = run.notices if answer.queries else (*run.notices, f"no further queries: {answer.reason or 'none was written'}")
        rewrites = run.rewrites + 1 if answer.queries else _REWRITES[self.limits.depth]
        return _called(run, {"queries": (*run.queries, *answer.queries), "rewrites": rewrites, "notices": notices})

    async def _search(self, run: ResearchRun) -> ResearchRun:
        """Ask every provider the next query; one that gives no answer costs its own results."""
        sent = {search.query for search in run.searches}
        query = next(query for query in run.queries if query not in sent)
        records: list[SearchRecord] = []
        hits: list[FoundHit] = []
        for provider in self.providers:
            self.report(f"search {provider.name}: {query}")
            record, found = await asyncio.to_thread(search_provider, provider, query, question_language(run.question))
            records.append(record)
            hits += found
        return run.model_copy(update={"searches": (*run.searches, *records), "hits": (*run.hits, *hits)})

    async def _select(self, run: ResearchRun) -> ResearchRun:
        chosen = await self._decisions.select(run)
        self.report(f"select {len(chosen)} of {len(run.hits)} results")
        waiting = sorted((*run.waiting, *chosen), key=lambda address: -address.score)
        return _called(run, {"waiting": tuple(waiting), "hits": (), "is_weighed": False})

    async def _weigh(self, run: ResearchRun) -> ResearchRun:
        self.report(f"weigh {_addresses(run)}")
        decision = self._decisions.weigh(run)
        return _called(run, {"is_weighed": True, **await self._optional(run, "waiting addresses", "waiting", decision)})

    async def _visit(self, run: ResearchRun) -> ResearchRun:
        address, *waiting = run.waiting
        self.report(f"visit {address.url}")
        record, changes = await self._read(address, run)
        return run.model_copy(update={"waiting": tuple(waiting), "visits": (*run.visits, record), **changes})

    async def _read(self, address: ChosenAddress, run: ResearchRun) -> tuple[VisitRecord, dict[str, object]]:
        """What became of an address, and what else of the run its picture changes."""
        visited = VisitRecord(url=address.url, chosen_because=address.because, status=VisitStatus.READ, worth=address.score)
        try:
            seen = await self.visitor.visit(address.url)
        except FetchRefusedError as error:
            reason = f"{error.rule}: {without_address(error, address.url)}"
            return visited.model_copy(update={"status": VisitStatus.REFUSED, "reason": reason}), {}
        except PandoraError as error:
            return visited.model_copy(update={"status": VisitStatus.FAILED, "reason": without_address(error, address.url)}), {}
        page, changes = seen.page, dict[str, object](calls=run.calls + seen.calls)
        if seen.unread:
            changes["notices"] = (*run.notices, f"{page.final_url}: {seen.unread}")
        same = next((v.url for v in run.visits if v.page and _content(v.page) == _content(page)), "")
        if same:
            return visited.model_copy(update={"status": VisitStatus.DUPLICATE, "reason": f"the same content as {same}"}), changes
        return with_page(visited, page), changes

    def _pending_step(self, run: ResearchRun, visit: VisitRecord, page: PageDoc) -> PageStep | None:
        depth = self.limits.depth
        return pending_step(run, visit, page, depth, goes_on=bool(run.waiting) or run.rewrites < _REWRITES[depth])

    async def _judge_page(self, run: ResearchRun, page: PageDoc, step: PageStep) -> ResearchRun:
        """The run with one more decision about the page read last."""
        *before, last = run.visits
        recipe, where, pages = recipe_of(step, last, page), page.final_url, self._pages
        visit = last.model_copy(update={"decided": (*last.decided, step.value)})
        self.report(f"{recipe}: {where}")
        if step is PageStep.STOP:
            judged = await self._optional(run, where, "judgement", self._decisions.stop(run))
            if judgement := judged.pop("judgement", None):
                judged |= {"is_enough": judgement.enough, "missing": judgement.missing}
            return _called(run, {"visits": (*before, visit), **judged})
        if step in (PageStep.LINKS, PageStep.NEXT_PAGE):
            decision = pages.links(run, page) if step is PageStep.LINKS else pages.next_page(run, visit, page)
            found = await self._optional(run, where, "waiting", decision)
            if "waiting" in found:
                found["waiting"] = tuple(sorted((*run.waiting, *found["waiting"]), key=lambda address: -address.score))
            return _called(run, {"visits": (*before, visit), **found})
        decisions = {
            PageStep.RELEVANCE: pages.relevance,
            PageStep.TYPE: pages.kind,
            PageStep.ZONES: pages.zones,
            PageStep.SCREEN: pages.screen,
            PageStep.READING: pages.extract,
            PageStep.VALIDATION: pages.validate,
            PageStep.SECOND_READING: pages.extract_again,
            PageStep.VERIFICATION: pages.verify,
        }
        judged = await self._optional(run, where, "visit", decisions[step](run, visit, page))
        return _called(run, {"visits": (*before, judged.pop("visit", visit)), **judged})

    async def _optional(self, run: ResearchRun, where: str, name: str, decision: Awaitable[Any]) -> dict[str, Any]:
        """A decision as the change `name`; the first one that fails for good costs itself, with a notice. The second one halts the run."""
        try:
            return {name: await decision}
        except HaltError as halt:
            if self._failed:
                raise
            self._failed = True
            return {"notices": (*run.notices, f"{where}: {halt}")}

    async def _mark_outdated(self, run: ResearchRun) -> ResearchRun:
        self.report(f"{FRESHNESS_JUDGE}: {counted(len(numbered_claims(run)), 'claim')}")
        changes = await self._optional(run, "dates of the claims", "visits", self._decisions.outdated(run))
        return _called(run, {"decided": (*run.decided, FRESHNESS_JUDGE), **changes})

    async def _merge(self, run: ResearchRun) -> ResearchRun:
        self.report(f"{CLAIM_MERGER}: {counted(len(numbered_claims(run)), 'claim')}")
        return _called(run, {"answers": await self._decisions.merge(run)})

    async def _compare_answers(self, run: ResearchRun) -> ResearchRun:
        self.report(f"{CONTRADICTION_FINDER}: {counted(len(run.answers or ()), 'answer')}")
        disagrees = await self._decisions.disagrees(run)
        return _called(run, {"decided": (*run.decided, CONTRADICTION_FINDER), "disagrees": disagrees})

    async def _conclude(self, run: ResearchRun) -> ResearchRun:
        """The outcome with its claims."""
        notices = run.notices
        if run.waiting:
            why = "the pages read are enough" if run.is_enough else "the budget was spent"
            notices = (*notices, f"{_addresses(run)} not visited: {why}")
        outcome, claims = conclusion(run)
        if not claims and (pages := await self._decisions.pages_for_person(run)):
            outcome = ResearchOutcome.NEEDS_PERSON
            notices = (*notices, *(f"{page.final_url}: a person must open it" for page in pages))
        if outcome is ResearchOutcome.NOT_FOUND and all(search.fault for search in run.searches):
            notices = (*notices, "no search provider answered")
        return _called(run, {"outcome": outcome, "claims": claims, "notices": notices})

    def _end_step(self, run: ResearchRun) -> Step | None:
        """What is still to be written about the ended run."""
        recipe = next((r for r in _END_RECIPES[self.limits.depth] if r not in run.decided), "") if run.claims else ""
        return (lambda run: self._write(run, recipe)) if recipe else None

    async def _write(self, run: ResearchRun, recipe: str) -> ResearchRun:
        """The run with its summary or its report; one that fails is left out with a notice, since the claims hold without it."""
        self.report(recipe)
        changes: dict[str, object] = {"decided": (*run.decided, recipe)}
        try:
            if recipe == RECORD_SUMMARY:
                changes["summary"] = await self._decisions.summarize(run)
            else:
                changes["statements"] = await self._decisions.report(run)
        except HaltError as halt:
            changes["notices"] = (*run.notices, str(halt))
        return _called(run, changes)

    @property
    def _decisions(self) -> RunDecisions:
        return RunDecisions(self.calls)

    @property
    def _pages(self) -> PageDecisions:
        return PageDecisions(self.calls)


def _pages_read(run: ResearchRun) -> int:
    return sum(visit.status is VisitStatus.READ for visit in run.visits)


def _called(run: ResearchRun, changes: dict[str, object]) -> ResearchRun:
    """The run after one more recipe call."""
    return run.model_copy(update={"calls": run.calls + 1, **changes})


def _content(page: PageDoc) -> str:
    """What a page says, by its words: a print view and its page say the same."""
    return sha256(" ".join(page.text.split()).encode()).hexdigest() if page.text.strip() else page.final_url


def _addresses(run: ResearchRun) -> str:
    return counted(len(run.waiting), "address", "addresses")
