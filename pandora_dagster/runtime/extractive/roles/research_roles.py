"""Roles of research: what words, fields and values decide. What needs a judgement beyond them is answered as not known, with the reason."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.web.prompt_lines import read_lines
from pandora_dagster.contracts.web.research_decisions import (
    BlockedPages,
    ClaimVerdict,
    ClaimVerdicts,
    Conflict,
    Contradictions,
    FlaggedUnit,
    HoldsFor,
    InjectionFlags,
    MergedAnswer,
    MergedClaims,
    OutdatedClaims,
    PageClaims,
    RecordSummary,
    ReportStatement,
    ReportText,
    ResearchPlan,
    SearchQueries,
    Selection,
    StopJudgement,
    UnitClaim,
)
from pandora_dagster.contracts.web.research_lines import ClaimLine, HitLine, LinkLine, PageLine, SourceLine, UnitLine
from pandora_dagster.language.requests.asked_values import AskedKind
from pandora_dagster.language.requests.orders_to_models import orders_model
from pandora_dagster.research.addresses import host_of, names_host
from pandora_dagster.research.recipe_calls import READERS
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.research import page_judgements
from pandora_dagster.runtime.extractive.research.address_choice import choose_hits, choose_links
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion, terms_of
from pandora_dagster.runtime.extractive.research.claim_ranking import best_claims, contradict, outdated_claims, rank_claims
from pandora_dagster.runtime.extractive.research.page_statements import MAX_SCORE, PageReader, asks_availability

_MAX_PAGE_CLAIMS = 12
_MAX_HITS = 20
_MAX_LINKS = 10
_MAX_FLAGGED = 20
_MAX_NEED_CHARACTERS = 300
_MAX_SUBJECT_CHARACTERS = 120
"""As the schemas of the recipes have it."""


def plan_research(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """One need, the question itself: it is not divided here. A long question is no need; the run then takes it as it is."""
    question = AskedQuestion(pack.query)
    needs = (pack.query,) if 0 < len(pack.query) <= _MAX_NEED_CHARACTERS else ()
    names = [name for end, name in enumerate(question.names, 1) if len(" ".join(question.names[:end])) <= _MAX_SUBJECT_CHARACTERS]

    def make(n: int) -> ResearchPlan:
        return ResearchPlan(subject=" ".join(names[:n]), needs=needs[:n], holds_for=_holds_for(question))

    return fit_draft(make, len(names) + 1, pack.max_output_tokens, counter)


def write_queries(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The question's own words without function words, then its names alone."""
    queries = AskedQuestion(pack.query).queries()
    return fit_draft(lambda n: SearchQueries(queries=queries[:n]), len(queries), pack.max_output_tokens, counter)


def rewrite_queries(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """None: other words for the same thing are not known here."""
    return SearchQueries(queries=(), reason=TEMPLATES["no_other_words"])


def select_results(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The hits that share most words with the question."""
    hits = read_lines(pack.document("hits"), HitLine)
    question = _asked(pack, [(hit.title, _host_words(hit.url)) for hit in hits])
    chosen = choose_hits(question, hits)[:_MAX_HITS] if hits else []
    return fit_draft(lambda n: Selection(visit=tuple(chosen[:n])), len(chosen), pack.max_output_tokens, counter)


def rank_links(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The links of a named site whose words are those of the question."""
    page = read_lines(pack.document("page"), PageLine)
    chosen = choose_links(_asked_of_sources(pack), page[0], read_lines(pack.document("links"), LinkLine)) if page else []
    chosen = sorted(chosen, key=lambda choice: -choice.worth)[:_MAX_LINKS]
    return fit_draft(lambda n: Selection(visit=tuple(chosen[:n])), len(chosen), pack.max_output_tokens, counter)


def extract_claims(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The units that name what is asked and have a value of the asked kind."""
    pages, sources = read_lines(pack.document("page"), PageLine), read_lines(pack.document("sources"), SourceLine)
    if not pages:
        return PageClaims(about_subject=False, claims=())
    question = _asked_of_sources(pack, pages[0])
    reader = PageReader(question, pages[0], read_lines(pack.document("units"), UnitLine))
    other_hosts = _names_of_hosts(question, sources)
    found = reader.statements(other_hosts)[:_MAX_PAGE_CLAIMS]
    claims = [UnitClaim(unit=s.unit.number, value=s.value, need=1, worth=round(min(1.0, max(0.0, s.score / MAX_SCORE)), 4)) for s in found]
    about = reader.is_on_topic(other_hosts)

    def make(n: int) -> PageClaims:
        return PageClaims(about_subject=about, claims=tuple(claims[:n]))

    return fit_draft(make, len(claims), pack.max_output_tokens, counter)


def screen_units(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The units whose words give orders to a program."""
    addressing = [unit for unit in read_lines(pack.document("units"), UnitLine) if orders_model(unit.text)][:_MAX_FLAGGED]

    def make(n: int) -> InjectionFlags:
        return InjectionFlags(flagged=tuple(FlaggedUnit(unit=unit.number, reason=TEMPLATES["addresses"]) for unit in addressing[:n]))

    return fit_draft(make, len(addressing), pack.max_output_tokens, counter)


def verify_claims(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """`unclear` for each: what a sentence means is not judged here."""
    claims = read_lines(pack.document("claims"), ClaimLine)

    def make(n: int) -> ClaimVerdicts:
        return ClaimVerdicts(
            verdicts=tuple(ClaimVerdict(number=c.number, reason=TEMPLATES["no_meaning"], verdict="unclear") for c in claims[:n])
        )

    return fit_draft(make, len(claims), pack.max_output_tokens, counter)


def merge_claims(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The best claims, each an answer of its own."""
    question = _asked_of_sources(pack)
    sources = read_lines(pack.document("sources"), SourceLine)
    ranked = rank_claims(question, read_lines(pack.document("claims"), ClaimLine), sources)
    best = best_claims(question, ranked) if ranked else []

    def make(n: int) -> MergedClaims:
        return MergedClaims(answers=tuple(MergedAnswer(claims=(claim.line.number,)) for claim in best[:n]))

    return fit_draft(make, len(best), pack.max_output_tokens, counter)


def judge_freshness(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The claims of pages that are much older than the newest one."""
    outdated = outdated_claims(read_lines(pack.document("claims"), ClaimLine), read_lines(pack.document("sources"), SourceLine))
    reason = TEMPLATES["by_dates"]
    return fit_draft(lambda n: OutdatedClaims(reason=reason, claims=outdated[:n]), len(outdated), pack.max_output_tokens, counter)


def find_contradictions(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Different values from two sources contradict each other, unless they are prices."""
    claims = read_lines(pack.document("claims"), ClaimLine)
    disagree = contradict(AskedQuestion(pack.query), claims)
    conflicts = (Conflict(reason=TEMPLATES["by_values"], claims=tuple(claim.number for claim in claims)),) if disagree else ()
    return fit_draft(lambda n: Contradictions(conflicts=conflicts[:n]), len(conflicts), pack.max_output_tokens, counter)


def weigh_addresses(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """None weighed again: who can know is not judged here."""
    return Selection(visit=())


def judge_stop(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Never enough: another page may contradict, and the budget ends the run."""
    return StopJudgement(reason=TEMPLATES["not_judged"], enough=False, missing=())


def classify_blockers(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Pages with a login or a captcha on a site that the question names."""
    question = _asked_of_sources(pack)
    pages = read_lines(pack.document("pages"), PageLine)
    named = tuple(page.number for page in pages if any(names_host(name, page.url) for name in question.names))
    return BlockedPages(reason=TEMPLATES["named_site"] if named else TEMPLATES["not_named"], pages=named)


def summarize_record(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The quotes, one after another."""
    claims = read_lines(pack.document("claims"), ClaimLine)
    return fit_draft(
        lambda n: RecordSummary(summary=" ".join(claim.quote for claim in claims[:n])), len(claims), pack.max_output_tokens, counter
    )


def write_report(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The quotes, each with its claim."""
    claims = read_lines(pack.document("claims"), ClaimLine)

    def make(n: int) -> ReportText:
        return ReportText(statements=tuple(ReportStatement(text=c.quote, claims=(c.number,)) for c in claims[:n]))

    return fit_draft(make, len(claims), pack.max_output_tokens, counter)


def _holds_for(question: AskedQuestion) -> HoldsFor:
    if question.kind in (AskedKind.MONEY, AskedKind.YES_NO) or asks_availability(question):
        return "hours"
    return "days" if question.kind is AskedKind.DATE else "months"


def _asked(pack: PromptPack, places: list[tuple[str, str]]) -> AskedQuestion:
    """The question with the titles of pages and the names of their hosts."""
    return AskedQuestion(pack.query, (*(title for title, _ in places), *sorted({host for _, host in places})))


def _asked_of_sources(pack: PromptPack, page: PageLine | None = None) -> AskedQuestion:
    places = [(source.title, _host_words(f"//{source.host}")) for source in read_lines(pack.document("sources"), SourceLine)]
    if page:
        places.append((page.title, _host_words(page.url)))
    return _asked(pack, places)


def _host_words(url: str) -> str:
    return host_of(url).replace("-", " ").replace(".", " ").title()


def _names_of_hosts(question: AskedQuestion, sources: list[SourceLine]) -> frozenset[str]:
    """Terms of the question's names that are hosts, where it names more than one: a page has the name of one of them only."""
    hosts = {source.host for source in sources if any(names_host(name, f"//{source.host}") for name in question.sites)}
    names = {name for name in question.sites if any(names_host(name, f"//{host}") for host in hosts)}
    return terms_of(" ".join(names)) if len(hosts) > 1 else frozenset()


RESEARCH_ROLES: Mapping[str, Callable[[PromptPack, TokenMeasure], Draft]] = MappingProxyType(
    {
        "strategy": plan_research,
        "query_writer": write_queries,
        "query_rewriter": rewrite_queries,
        "result_selector": select_results,
        "link_ranker": rank_links,
        "injection_screen": screen_units,
        **{recipe.partition("/")[2]: extract_claims for recipe in READERS},
        "page_relevance": page_judgements.judge_relevance,
        "page_type": page_judgements.name_type,
        "zone_confidence": page_judgements.keep_zones,
        "extraction_validator": page_judgements.accept_reading,
        "pagination_finder": page_judgements.find_next_page,
        "source_credibility": weigh_addresses,
        "vendor_selector": weigh_addresses,
        "freshness_judge": judge_freshness,
        "contradiction_finder": find_contradictions,
        "claim_verifier": verify_claims,
        "claim_merger": merge_claims,
        "stop_judge": judge_stop,
        "blocker_classifier": classify_blockers,
        "record_summary": summarize_record,
        "report_writer": write_report,
    }
)
"""Recipe field `role` -> the function that answers it."""
