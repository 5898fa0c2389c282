"""The loop: ask the providers, choose addresses, visit them within the budget, conclude. Stored whole after each step.

It needs no model: what needs a judgement beyond words, fields and values ends as `not found`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import Protocol

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import (
    ChosenAddress,
    ResearchOutcome,
    ResearchRun,
    SearchRecord,
    VisitRecord,
    VisitStatus,
)
from pandora_dagster.contracts.web.search import SearchHit, SearchProvider
from pandora_dagster.errors import FetchError, FetchRefusedError, PandoraError
from pandora_dagster.research.addresses import host_of, page_key
from pandora_dagster.research.asked_question import AskedQuestion
from pandora_dagster.research.conclusion import conclude
from pandora_dagster.research.hit_selection import choose_hits, choose_links

_RESULT_PAGES = 2
PAGES_OF_DEPTH = {Depth.QUICK: 3, Depth.STANDARD: 8, Depth.DEEP: 20}
_MIN_SHARE_OF_BEST = 0.5
"""Hits that match less than this share of the best one are not visited."""


class PageVisitor(Protocol):
    """Fetches, reads and stores one page."""

    def visit(self, url: str) -> PageDoc:
        """The page; raises FetchError, or another PandoraError where it cannot be read."""
        ...


class RunStore(Protocol):
    """Keeps a run between two programs."""

    def load(self) -> ResearchRun | None: ...
    def save(self, run: ResearchRun) -> None: ...


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Where a run ends: pages read, addresses tried, and seconds."""

    pages: int
    seconds: float

    @property
    def addresses(self) -> int:
        """Failed and refused addresses cost less than pages, but not nothing."""
        return 2 * self.pages


@dataclass(frozen=True, slots=True)
class ResearchLoop:
    """Answers one question."""

    providers: Sequence[SearchProvider]
    visitor: PageVisitor
    store: RunStore
    limits: RunLimits
    report: Callable[[str], None]
    """Is told of each step in one line."""

    def run(self, text: str) -> ResearchRun:
        """The ended run; a run of the same question that was cut off goes on."""
        deadline = monotonic() + self.limits.seconds
        run = self.store.load() or ResearchRun(question=text)
        if run.outcome:
            return run
        if not run.searches:
            run = self._save(self._search(run, AskedQuestion(text)))
        while run.waiting and not self._is_spent(run, deadline):
            run = self._save(self._visit(run, self._question(run)))
        notices = run.notices
        if run.waiting:
            notices = (*notices, f"{len(run.waiting)} addresses were not visited: the budget was spent")
        conclusion = conclude(self._question(run), run.visits)
        if conclusion.outcome is ResearchOutcome.NOT_FOUND and all(search.fault for search in run.searches):
            notices = (*notices, "no search provider answered")
        return self._save(run.model_copy(update={"outcome": conclusion.outcome, "claims": conclusion.claims, "notices": notices}))

    def _question(self, run: ResearchRun) -> AskedQuestion:
        """The question with the titles that the run knows."""
        places = [(address.url, address.title) for address in run.waiting]
        places += [(visit.page.final_url, visit.page.title) for visit in run.visits if visit.page]
        return _asked(run.question, places)

    def _save(self, run: ResearchRun) -> ResearchRun:
        self.store.save(run)
        return run

    def _is_spent(self, run: ResearchRun, deadline: float) -> bool:
        read = sum(visit.status is VisitStatus.READ for visit in run.visits)
        return read >= self.limits.pages or len(run.visits) >= self.limits.addresses or monotonic() > deadline

    def _search(self, run: ResearchRun, question: AskedQuestion) -> ResearchRun:
        """Ask every provider every query; one that gives no answer costs its own results."""
        records: list[SearchRecord] = []
        hits: list[SearchHit] = []
        for query in question.queries():
            for provider in self.providers:
                self.report(f"search {provider.name}: {query}")
                record = SearchRecord(query=query, provider=provider.name)
                try:
                    for page in range(1, _RESULT_PAGES + 1):
                        found = provider.search(query, page=page, language=question.language)
                        hits += found.hits
                        record = record.model_copy(
                            update={"hits": record.hits + len(found.hits), "notices": record.notices + found.notices}
                        )
                        if not found.hits:
                            break
                except FetchError as error:
                    record = record.model_copy(update={"fault": str(error)})
                records.append(record)
        chosen = choose_hits(_asked(question.text, [(hit.url, hit.title) for hit in hits]), hits)
        best = chosen[0].score if chosen else 0.0
        waiting = tuple(address for address in chosen if address.score >= _MIN_SHARE_OF_BEST * best)
        return run.model_copy(update={"searches": tuple(records), "waiting": waiting})

    def _visit(self, run: ResearchRun, question: AskedQuestion) -> ResearchRun:
        """Visit the first address that waits, and let the links of its page wait too."""
        address, *waiting = run.waiting
        self.report(f"visit {address.url}")
        record = self._read(address, run)
        if record.page and record.status is VisitStatus.READ:
            known = {page_key(a.url) for a in waiting} | {page_key(v.url) for v in run.visits} | {page_key(record.page.final_url)}
            waiting += [link for link in choose_links(question, record.page) if page_key(link.url) not in known]
            waiting.sort(key=lambda a: -a.score)
        return run.model_copy(update={"waiting": tuple(waiting), "visits": (*run.visits, record)})

    def _read(self, address: ChosenAddress, run: ResearchRun) -> VisitRecord:
        visited = VisitRecord(url=address.url, chosen_because=address.because, status=VisitStatus.READ)
        try:
            page = self.visitor.visit(address.url)
        except FetchRefusedError as error:
            return visited.model_copy(update={"status": VisitStatus.REFUSED, "reason": f"{error.rule}: {error}"})
        except PandoraError as error:
            return visited.model_copy(update={"status": VisitStatus.FAILED, "reason": str(error)})
        same = next((v.url for v in run.visits if v.page and _content(v.page) == _content(page)), "")
        if same:
            return visited.model_copy(update={"status": VisitStatus.DUPLICATE, "reason": f"the same content as {same}"})
        return visited.model_copy(update={"page": page})


def _asked(text: str, places: Sequence[tuple[str, str]]) -> AskedQuestion:
    """The question with the titles of addresses and the names of their hosts."""
    hosts = {host_of(url).replace("-", " ").replace(".", " ").title() for url, _ in places}
    return AskedQuestion(text, (*(title for _, title in places), *sorted(hosts)))


def _content(page: PageDoc) -> str:
    """What a page says, by its words: a print view and its page say the same."""
    return sha256(" ".join(page.text.split()).encode()).hexdigest() if page.text.strip() else page.final_url
