"""The recipes of research, and one call of each: documents as JSON lines, the answer as a model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument, Item
from pandora_dagster.contracts.ports.recipe_execution import RecipeExecutor
from pandora_dagster.contracts.web.page_doc import PageType
from pandora_dagster.contracts.web.prompt_lines import write_line
from pandora_dagster.contracts.web.research_decisions import LookedFor
from pandora_dagster.contracts.web.research_lines import SourceLine
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.errors import BadAnswerError
from pandora_dagster.research.addresses import host_of

STRATEGY = "research/strategy"
QUERY_WRITER = "research/query_writer"
QUERY_REWRITER = "research/query_rewriter"
RESULT_SELECTOR = "research/result_selector"
CLAIM_EXTRACTOR = "research/claim_extractor"
CLAIM_VERIFIER = "research/claim_verifier"
CLAIM_MERGER = "research/claim_merger"
STOP_JUDGE = "research/stop_judge"
RECORD_SUMMARY = "research/record_summary"
REPORT_WRITER = "research/report_writer"
LINK_RANKER = "browser/link_ranker"
INJECTION_SCREEN = "browser/injection_screen"
BLOCKER_CLASSIFIER = "browser/blocker_classifier"
PAGE_TYPE = "browser/page_type"
PAGE_RELEVANCE = "research/page_relevance"
ZONE_CONFIDENCE = "browser/zone_confidence"
EXTRACTION_VALIDATOR = "browser/extraction_validator"
PAGINATION_FINDER = "browser/pagination_finder"
SOURCE_CREDIBILITY = "research/source_credibility"
VENDOR_SELECTOR = "research/vendor_selector"
FRESHNESS_JUDGE = "research/freshness_judge"
CONTRADICTION_FINDER = "research/contradiction_finder"

READER_OF_TYPE: Mapping[PageType, str] = MappingProxyType(
    {
        PageType.PRODUCT: "browser/product_reader",
        PageType.LIST: "browser/list_reader",
        PageType.TABLE: "browser/table_reader",
        PageType.COMPARISON: "browser/table_reader",
        PageType.SPEC: "browser/table_reader",
        PageType.ARTICLE: "browser/article_reader",
        PageType.HOWTO: "browser/article_reader",
        PageType.FORUM: "browser/forum_reader",
        PageType.PDF: "browser/pdf_reader",
    }
)
"""Which recipe reads a page of a type; `claim_extractor` reads the others."""
EXTRACTOR_OF: Mapping[LookedFor, str] = MappingProxyType(
    {
        "anything": CLAIM_EXTRACTOR,
        "price": "research/price_extractor",
        "specification": "research/spec_extractor",
        "availability": "research/availability_extractor",
        "review": "research/review_extractor",
        "date": "research/date_extractor",
    }
)
"""Which recipe reads a page a second time, by what it looks for."""
READERS = tuple(dict.fromkeys((CLAIM_EXTRACTOR, *READER_OF_TYPE.values(), *EXTRACTOR_OF.values())))
"""The recipes that find claims in the units of a page: one mechanism, with a prompt for each kind of page or value."""

DOCUMENTS_OF_RECIPE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        STRATEGY: ("today",),
        QUERY_WRITER: ("plan",),
        QUERY_REWRITER: ("plan", "missing", "searches"),
        RESULT_SELECTOR: ("plan", "hits"),
        SOURCE_CREDIBILITY: ("plan", "waiting"),
        VENDOR_SELECTOR: ("plan", "waiting"),
        PAGE_RELEVANCE: ("plan", "page"),
        PAGE_TYPE: ("page", "units"),
        ZONE_CONFIDENCE: ("plan", "page", "zones"),
        **dict.fromkeys(READERS, ("plan", "page", "sources", "units")),
        EXTRACTION_VALIDATOR: ("plan", "page", "claims", "units"),
        CLAIM_VERIFIER: ("plan", "claims"),
        FRESHNESS_JUDGE: ("plan", "sources", "claims"),
        CLAIM_MERGER: ("plan", "sources", "claims"),
        CONTRADICTION_FINDER: ("plan", "claims"),
        STOP_JUDGE: ("plan", "claims", "waiting"),
        RECORD_SUMMARY: ("plan", "claims"),
        REPORT_WRITER: ("plan", "claims"),
        INJECTION_SCREEN: ("units",),
        PAGINATION_FINDER: ("page", "links"),
        LINK_RANKER: ("plan", "page", "sources", "links"),
        BLOCKER_CLASSIFIER: ("plan", "sources", "pages"),
    }
)
"""The recipes that a run calls, with the documents that it gives them."""
_MAX_SOURCES = 24
Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class RecipeCalls:
    """Calls of one run."""

    executor: RecipeExecutor
    site: CallSite
    today: str
    """ISO 8601."""

    async def ask(self, recipe: str, question: str, documents: Sequence[InputDocument], answer: type[Answer]) -> Answer:
        """The answer of `recipe`. Raises HaltError, and BadAnswerError where a changed schema let an answer pass that is none."""
        result = await self.executor.call(CallRequest(recipe=recipe, query=question, site=self.site, documents=tuple(documents)))
        try:
            return answer.model_validate(result.parsed)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise BadAnswerError(
                f"{recipe}: answer: {where}: {first['msg']}: expected {answer.__name__}",
                hint="compare the recipe's output_schema with the shipped one: it accepts an answer that the run cannot read",
            ) from error


def line_document(name: str, line: BaseModel) -> InputDocument:
    """A document of one line, which is sent whole."""
    return InputDocument(name, write_line(line))


def lines_document(name: str, lines: Iterable[BaseModel], priorities: Iterable[float] | None = None) -> InputDocument:
    """A document of lines, of which as many are sent as fit: by priority, else the first ones."""
    texts = [write_line(line) for line in lines]
    ranks = list(priorities) if priorities is not None else [-float(place) for place in range(len(texts))]
    return InputDocument(
        name, items=tuple(Item(text, rank, f"{name} {n}") for n, (text, rank) in enumerate(zip(texts, ranks, strict=True), 1))
    )


def plan_document(run: ResearchRun) -> InputDocument:
    return InputDocument("plan", write_line(run.plan) if run.plan else "")


def sources_document(run: ResearchRun) -> InputDocument:
    """The pages that the run knows, those that were read first."""
    read = [v for v in run.visits if v.page]
    known = [
        SourceLine(host=host_of(v.page.final_url), title=v.page.title, date=v.page.extracted_data.date or "", read=True)
        for v in read
        if v.page
    ]
    known += [SourceLine(host=host_of(address.url), title=address.title) for address in run.waiting]
    return lines_document("sources", known[:_MAX_SOURCES])
