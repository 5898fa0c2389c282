"""What recipes decide about a run: what is needed, what to search for, which hits to visit, when to stop, what the claims add up to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.verification.facts import Outcome
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.compression.verification.verifier import find_unsupported
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.web.page_doc import PageDoc, PageType
from pandora_dagster.contracts.web.research_decisions import (
    MAX_QUERY_CHARACTERS,
    BlockedPages,
    Contradictions,
    MergedAnswer,
    MergedClaims,
    OutdatedClaims,
    RecordSummary,
    ReportStatement,
    ReportText,
    ResearchPlan,
    SearchQueries,
    Selection,
    StopJudgement,
)
from pandora_dagster.contracts.web.research_lines import ClaimLine, HitLine, NeedLine, SearchLine, SourceLine
from pandora_dagster.contracts.web.research_run import (
    ChosenAddress,
    EvidenceClaim,
    PageClaim,
    ResearchOutcome,
    ResearchRun,
    Verdict,
    VisitRecord,
)
from pandora_dagster.documents.redaction.printable_text import CONTROLS
from pandora_dagster.errors import InputError
from pandora_dagster.language.tokens import words_within
from pandora_dagster.research.addresses import host_of, page_key
from pandora_dagster.research.page_decisions import chosen_addresses, claim_line, page_line
from pandora_dagster.research.recipe_calls import (
    BLOCKER_CLASSIFIER,
    CLAIM_MERGER,
    CONTRADICTION_FINDER,
    FRESHNESS_JUDGE,
    QUERY_REWRITER,
    QUERY_WRITER,
    RECORD_SUMMARY,
    REPORT_WRITER,
    RESULT_SELECTOR,
    SOURCE_CREDIBILITY,
    STOP_JUDGE,
    STRATEGY,
    VENDOR_SELECTOR,
    RecipeCalls,
    lines_document,
    plan_document,
    sources_document,
)

_MAX_HITS = 60
_MAX_MERGED = 60
"""Claims that one call merges, the worthiest first."""
_MAX_CLAIMS = 8
_FOR_PERSON = frozenset({PageType.LOGIN, PageType.CAPTCHA})


@dataclass(frozen=True, slots=True)
class NumberedClaim:
    """A claim of a visit with what a recipe reads of it."""

    line: ClaimLine
    claim: PageClaim
    place: tuple[int, int]
    """Its visit and its place there, from 0."""


@dataclass(frozen=True, slots=True)
class RunDecisions:
    """The decisions about one run."""

    calls: RecipeCalls

    async def plan(self, question: str) -> ResearchPlan:
        """What must be found out. A plan without a need asks for the question itself."""
        plan = await self.calls.ask(STRATEGY, question, [InputDocument("today", self.calls.today)], ResearchPlan)
        return plan if plan.needs else plan.model_copy(update={"needs": (question,)})

    async def queries(self, run: ResearchRun) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The first queries, and notices of those that are not sent; where the recipe writes none, the words of the question."""
        answer = await self.calls.ask(QUERY_WRITER, run.question, [plan_document(run)], SearchQueries)
        queries, notices = _sendable(answer.queries)
        if len(run.question) > MAX_QUERY_CHARACTERS:
            notices = (f"the question has over {MAX_QUERY_CHARACTERS} characters: a query has some of its words, each whole", *notices)
        if queries := queries or tuple(filter(None, (own_query(run.question),))):
            return queries, notices
        raise InputError(f"the question has no words for a query: expected a word of at most {MAX_QUERY_CHARACTERS} characters")

    async def further_queries(self, run: ResearchRun) -> SearchQueries:
        """Queries that were not sent yet, and why. The recipe reads no page: a page cannot write a query."""
        sent = [SearchLine(query=search.query, hits=search.hits) for search in run.searches if not search.refused]
        needs = run.plan.needs if run.plan else ()
        missing = [NeedLine(number=n, need=need) for n, need in enumerate(needs, 1) if n in run.missing or not run.missing]
        documents = [plan_document(run), lines_document("missing", missing), lines_document("searches", sent)]
        answer = await self.calls.ask(QUERY_REWRITER, run.question, documents, SearchQueries)
        written, refused = _sendable(answer.queries)
        reason = "; ".join(refused) if refused and not written else answer.reason
        return answer.model_copy(update={"queries": tuple(query for query in written if query not in run.queries), "reason": reason})

    async def select(self, run: ResearchRun) -> tuple[ChosenAddress, ...]:
        """The hits to visit, each address once, without those that the run knows."""
        known = {page_key(a.url) for a in run.waiting} | {page_key(v.url) for v in run.visits}
        hits = [h for h in {page_key(h.url): h for h in reversed(run.hits)}.values() if page_key(h.url) not in known][::-1][:_MAX_HITS]
        if not hits:
            return ()
        lines = [HitLine(number=n, url=h.url, title=h.title, snippet=h.snippet) for n, h in enumerate(hits, 1)]
        answer = await self.calls.ask(RESULT_SELECTOR, run.question, [plan_document(run), lines_document("hits", lines)], Selection)
        return chosen_addresses(answer, {n: (h.url, h.title) for n, h in enumerate(hits, 1)})

    async def weigh(self, run: ResearchRun) -> tuple[ChosenAddress, ...]:
        """The waiting addresses, best first: who sells the thing where an answer holds for hours, otherwise who can know.

        A weighed address has the mean of both weights; one that the recipe does not name keeps its own.
        """
        recipe = VENDOR_SELECTOR if run.plan and run.plan.holds_for == "hours" else SOURCE_CREDIBILITY
        lines = [HitLine(number=n, url=a.url, title=a.title) for n, a in enumerate(run.waiting, 1)]
        answer = await self.calls.ask(recipe, run.question, [plan_document(run), lines_document("waiting", lines)], Selection)
        worth = {choice.number: choice.worth for choice in answer.visit}
        weighed = [
            address.model_copy(update={"score": (address.score + worth.get(n, address.score)) / 2})
            for n, address in enumerate(run.waiting, 1)
        ]
        return tuple(sorted(weighed, key=lambda address: -address.score))

    async def stop(self, run: ResearchRun) -> StopJudgement:
        """Whether the claims so far are enough. A run with a need that no claim answers goes on."""
        claims = _claims_document(numbered_claims(run))
        waiting = lines_document("waiting", [SourceLine(host=host_of(a.url), title=a.title) for a in run.waiting])
        answer = await self.calls.ask(STOP_JUDGE, run.question, [plan_document(run), claims, waiting], StopJudgement)
        open_needs = {n for n in answer.missing if run.plan and n <= len(run.plan.needs)}
        return answer.model_copy(update={"enough": answer.enough and not open_needs, "missing": tuple(sorted(open_needs))})

    async def outdated(self, run: ResearchRun) -> tuple[VisitRecord, ...]:
        """The visits, with the claims marked that a newer page overtakes."""
        documents = [plan_document(run), sources_document(run), _claims_document(numbered_claims(run))]
        answer = await self.calls.ask(FRESHNESS_JUDGE, run.question, documents, OutdatedClaims)
        places = {c.line.number: c.place for c in numbered_claims(run) if c.line.number in answer.claims}
        return tuple(
            visit.model_copy(
                update={
                    "claims": tuple(
                        claim.model_copy(update={"outdated": (v, c) in places.values()}) for c, claim in enumerate(visit.claims)
                    )
                }
            )
            for v, visit in enumerate(run.visits)
        )

    async def merge(self, run: ResearchRun) -> tuple[MergedAnswer, ...]:
        """The distinct answers, as numbers of claims that exist."""
        numbers = {c.line.number for c in numbered_claims(run)}
        documents = [plan_document(run), sources_document(run), _claims_document(numbered_claims(run))]
        answer = await self.calls.ask(CLAIM_MERGER, run.question, documents, MergedClaims)
        groups = (tuple(n for n in dict.fromkeys(group.claims) if n in numbers) for group in answer.answers)
        return tuple(MergedAnswer(claims=group) for group in groups if group)

    async def disagrees(self, run: ResearchRun) -> bool:
        """Whether answers of different hosts cannot both hold. Two answers from one host are no contradiction."""
        numbered = {c.line.number: c for c in numbered_claims(run)}
        lines = [numbered[answer.claims[0]].line for answer in run.answers or ()]
        documents = [plan_document(run), lines_document("claims", lines)]
        found = await self.calls.ask(CONTRADICTION_FINDER, run.question, documents, Contradictions)
        host = {line.number: host_of(line.url) for line in lines}
        return any(len({host[n] for n in conflict.claims if n in host}) > 1 for conflict in found.conflicts)

    async def pages_for_person(self, run: ResearchRun) -> tuple[PageDoc, ...]:
        """The pages behind a login or a captcha that would answer."""
        pages = [v.page for v in run.visits if v.page and v.page.page_type in _FOR_PERSON]
        if not pages:
            return ()
        lines = [page_line(page, number) for number, page in enumerate(pages, 1)]
        answer = await self.calls.ask(
            BLOCKER_CLASSIFIER, run.question, [plan_document(run), sources_document(run), lines_document("pages", lines)], BlockedPages
        )
        return tuple(page for number, page in enumerate(pages, 1) if number in answer.pages)

    async def summarize(self, run: ResearchRun) -> str:
        """The summary of the record; "" where it states a value that no quote has."""
        answer = await self.calls.ask(RECORD_SUMMARY, run.question, [plan_document(run), _answers_document(run)], RecordSummary)
        return answer.summary if is_supported(answer.summary, [c.quote for c in run.claims], run.question) else ""

    async def report(self, run: ResearchRun) -> tuple[ReportStatement, ...]:
        """The statements of the report whose values are in the quotes of their claims."""
        answer = await self.calls.ask(REPORT_WRITER, run.question, [plan_document(run), _answers_document(run)], ReportText)
        kept: list[ReportStatement] = []
        for statement in answer.statements:
            quotes = [run.claims[n - 1] for n in statement.claims if n <= len(run.claims)]
            if quotes and is_supported(statement.text, [f"{c.claim} {c.value}" for c in quotes], run.question):
                kept.append(statement)
        return tuple(kept)


def own_query(question: str) -> str:
    """The words of a question as a query, each whole; "" where none is short enough."""
    return words_within(question.split(), MAX_QUERY_CHARACTERS)


def is_supported(text: str, quotes: list[str], question: str) -> bool:
    """Whether every value and name in a text is in one of the quotes, or in the question, and none has become another."""
    source = find_facts("\n".join((*quotes, question)))
    return bool(text.strip()) and all(
        verdict.outcome not in (Outcome.INVENTED, Outcome.MUTATED) for verdict in find_unsupported(source, text)
    )


def numbered_claims(run: ResearchRun) -> tuple[NumberedClaim, ...]:
    """The claims that no recipe has refuted, numbered by their place in the run; the worthiest where there are many."""
    found = list(_claims(run))
    kept = sorted(sorted(found, key=lambda c: -c.line.worth)[:_MAX_MERGED], key=lambda c: c.line.number)
    return tuple(kept)


def answering_claims(run: ResearchRun) -> tuple[NumberedClaim, ...]:
    """The claims of the merged answers, each once, those of the best answer first."""
    numbered = {c.line.number: c for c in numbered_claims(run)}
    numbers = dict.fromkeys(n for answer in run.answers or () for n in answer.claims)
    return tuple(numbered[n] for n in numbers)[:_MAX_CLAIMS]


def may_disagree(run: ResearchRun) -> bool:
    """Whether there are two answers, of two hosts."""
    return len(run.answers or ()) > 1 and len({host_of(c.line.url) for c in answering_claims(run)}) > 1


def conclusion(run: ResearchRun) -> tuple[ResearchOutcome, tuple[EvidenceClaim, ...]]:
    """The outcome of merged claims."""
    claims = tuple(map(_evidence_claim, answering_claims(run)))
    if not claims:
        return ResearchOutcome.NOT_FOUND, ()
    return ResearchOutcome.CONTRADICTION if run.disagrees else ResearchOutcome.ANSWERED, claims


def _claims(run: ResearchRun) -> Iterator[NumberedClaim]:
    number = 0
    for v, visit in enumerate(run.visits):
        for c, claim in enumerate(visit.claims if visit.page else ()):
            number += 1
            if visit.page and claim.verdict is not Verdict.UNSUPPORTED:
                yield NumberedClaim(claim_line(number, visit, visit.page, claim), claim, (v, c))


def _claims_document(claims: Sequence[NumberedClaim]) -> InputDocument:
    return lines_document("claims", [c.line for c in claims], [c.line.worth for c in claims])


def _answers_document(run: ResearchRun) -> InputDocument:
    lines = [
        ClaimLine(number=n, need=1, value=c.value, quote=c.quote, title=c.claim, url=c.url, page_type="", worth=c.confidence)
        for n, c in enumerate(run.claims, 1)
    ]
    return lines_document("claims", lines)


def _sendable(queries: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The queries in one line each, and a notice for each that is not sent: one that is too long is never cut."""
    lines = [line for query in queries if (line := " ".join(query.split()))]
    sendable = dict.fromkeys(line for line in lines if not CONTROLS.search(line) and len(line) <= MAX_QUERY_CHARACTERS)
    refused = [line for line in lines if line not in sendable]
    reason = f"expected at most {MAX_QUERY_CHARACTERS} characters without control characters"
    return tuple(sendable), tuple(f"a query of {len(line):,} characters was not sent: {reason}" for line in refused)


def _evidence_claim(numbered: NumberedClaim) -> EvidenceClaim:
    line, title = numbered.line, " ".join(numbered.line.title.split())
    return EvidenceClaim(
        claim=f"{title}: {line.quote}" if title else line.quote,
        value=line.value,
        url=line.url,
        quote=line.quote,
        confidence=round(min(1.0, line.worth * numbered.claim.zone_confidence), 3),
    )
