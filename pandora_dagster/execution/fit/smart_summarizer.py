"""The SmartSummarizer of specification 000, section 21.4: it compresses the documents of a call that exceed its budget.

It implements the port `DocumentFitter` for the executor. A plan gives documents targets: the lowest priority first, and of these the
largest. The engine compresses them; where critical facts need more tokens, the plan is made again with a higher floor for that document.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.contracts.compression_results import CompressionReport, CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.recipe_execution import FittedDocuments
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.pasted_blocks import short_query
from pandora_dagster.documents.sections import ContextDocument, Section
from pandora_dagster.errors import BudgetError, FactLossError
from pandora_dagster.execution.call_inputs import CONTEXT_DOCUMENT
from pandora_dagster.execution.fit.call_budget import TokenCountFunction, framed_tokens
from pandora_dagster.execution.fit.compression_log import CompressionLog, CompressionOutcome
from pandora_dagster.execution.fit.judged_context import CITED_PASSAGES, select_for_judgement
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine

_MAX_QUERY_TOKENS = 200
"""A query focuses the compression of documents up to this size; of a longer one the words of the user do."""


# The plan: which documents are compressed, and to what size (specification 000, sections 21.2 and 24). What the specification ranks as
# high (addresses, prices, errors) is protected as facts of the ledger, wherever it is.


class CompressionPriority(IntEnum):
    """The priority of a document: a lower one is compressed earlier, CRITICAL never. Rank 3, HIGH, is a rank of facts only."""

    LOW = 1
    MEDIUM = 2
    CRITICAL = 4


_PRIORITIES = {
    ContentType.PRIOR_TURN: CompressionPriority.LOW,
    ContentType.GENERIC: CompressionPriority.LOW,
    ContentType.PAGE_DOC: CompressionPriority.LOW,
    ContentType.RESEARCH_DOC: CompressionPriority.MEDIUM,
    ContentType.TOOL_RESULT: CompressionPriority.MEDIUM,
    ContentType.CONTEXT_DOC: CompressionPriority.MEDIUM,
}
_HISTORY_DOCUMENTS = frozenset({"turn_summaries", "prior_turns", "conversation"})
_CRITICAL_DOCUMENTS = frozenset({"raw_query", "tools", "command"})
"""Documents that a call needs whole: the query of the user, the tools it may call, the command."""


def priority_of(name: str, content_type: ContentType, preserve: Collection[str] = ()) -> CompressionPriority:
    """The priority of a whole document; one that its recipe's compression policy names in `preserve` is never compressed."""
    if name in preserve or name in _CRITICAL_DOCUMENTS:
        return CompressionPriority.CRITICAL
    return CompressionPriority.LOW if name in _HISTORY_DOCUMENTS else _PRIORITIES[content_type]


RATIO_FLOORS = (0.15, 0.4, 0.7, 1.0)
"""Shares of a document below which it is not compressed; the next one applies where its critical facts need more."""
_MIN_TARGET_TOKENS = 40


@dataclass(frozen=True, slots=True)
class CompressionStep:
    """One document to compress to `target` tokens of its own text."""

    name: str
    content_type: ContentType
    tokens: int
    target: int


@dataclass(frozen=True, slots=True)
class CompressionPlan:
    """The steps that make documents fit; `over`: the tokens that remain too many after all steps."""

    total_tokens: int
    steps: tuple[CompressionStep, ...]
    over: int


def plan_compression(
    documents: Sequence[InputDocument], loaded: LoadedRecipe, floors: Mapping[str, int], *, budget_tokens: int, count: TokenCountFunction
) -> CompressionPlan | None:
    """The plan for `documents` in `budget_tokens` tokens, None where they fit; no document is shortened more than necessary.

    `floors`: document -> the smallest target that it may get, in tokens.
    """
    total = sum(framed_tokens(document, count) for document in documents)
    over, steps = total - budget_tokens, list[CompressionStep]()
    if over <= 0:
        return None
    for _, tokens, document, content_type in _compressible_documents(documents, loaded.recipe.compression.preserve, count):
        target = max(floors.get(document.name, int(tokens * RATIO_FLOORS[0])), _MIN_TARGET_TOKENS, tokens - over)
        if over > 0 and target < tokens:
            steps.append(CompressionStep(document.name, content_type, tokens, target))
            over -= tokens - target
    return CompressionPlan(total, tuple(steps), max(0, over))


def _compressible_documents(
    documents: Sequence[InputDocument], preserve: Collection[str], count: TokenCountFunction
) -> list[tuple[CompressionPriority, int, InputDocument, ContentType]]:
    """Priority, tokens, document and content type of the documents that may be compressed, the first to compress first."""
    entries: list[tuple[CompressionPriority, int, InputDocument, ContentType]] = []
    for document in documents:
        content_type = detect_content_type(document.name, document.text)
        priority = priority_of(document.name, content_type, preserve)
        if document.text and priority is not CompressionPriority.CRITICAL:
            entries.append((priority, count(document.text), document, content_type))
    return sorted(entries, key=lambda entry: (entry[0], -entry[1]))


class SmartSummarizer:
    """Compresses the documents of calls. Only the executor's `call` triggers it (specification 000: `invoke_with_budget`).

    See decision 8: docs/decisions/08-when-compression-runs.md.
    """

    def __init__(self, engine: SummarizationEngine, counter: TokenMeasure, log: CompressionLog) -> None:
        self._engine, self._counter, self._log = engine, counter, log

    async def fit(
        self, documents: Sequence[InputDocument], *, budget_tokens: int, recipe: LoadedRecipe, request: CallRequest
    ) -> FittedDocuments:
        """`documents` in `budget_tokens` tokens with their frames; raises BudgetError, FactLossError where only facts prevent it.

        Where a document's critical facts need more than its plan gives it, the next plan leaves it more; RATIO_FLOORS bounds the plans.
        """
        floors: dict[str, int] = {}
        reason = ""
        while plan := plan_compression(documents, recipe, floors, budget_tokens=budget_tokens, count=self._counter.count):
            if plan.over:
                raise self._over_budget_error(plan, budget_tokens, recipe, reason, request.site)
            result = await self._apply_plan(plan, documents, recipe, request, floors)
            if isinstance(result, FittedDocuments):
                return result
            reason = result
        return FittedDocuments(tuple(documents), 0)

    async def _apply_plan(
        self,
        plan: CompressionPlan,
        documents: Sequence[InputDocument],
        recipe: LoadedRecipe,
        request: CallRequest,
        floors: dict[str, int],
    ) -> FittedDocuments | str:
        """The documents after every step of a plan; or why a step failed, whose floor is raised in `floors`."""
        by_name = {document.name: document for document in documents}
        reports: list[CompressionReport] = []
        for step in plan.steps:
            text = by_name[step.name].text
            outcome = await self._compress_document(text, step, recipe, request)
            if outcome.text is None:
                floors[step.name] = _next_floor(step)
                return outcome.halted
            by_name[step.name] = replace(by_name[step.name], text=outcome.text)
            if outcome.verification:
                name = f"{recipe.name}: {step.name}"
                reports.append(self._engine.report(CompressionRequest(text, name, step.content_type, target=step.target), outcome))
        fitted = tuple(by_name[document.name] for document in documents)
        return FittedDocuments(fitted, self._tokens(documents) - self._tokens(fitted), tuple(reports))

    async def _compress_document(self, text: str, step: CompressionStep, recipe: LoadedRecipe, request: CallRequest) -> CompressionOutcome:
        """Compress one document to its target; the sections of context.md that the recipe preserves stay verbatim."""
        preserve = recipe.recipe.compression.preserve
        if step.name == CONTEXT_DOCUMENT and CITED_PASSAGES in preserve:
            return self._select_passages(text, step)
        query = self._focus_query(step, request)
        preserved = _preserved_sections(text, preserve) if step.name == CONTEXT_DOCUMENT else ()
        other_text = _remove_sections(text, preserved)
        target = step.target - sum(self._counter.count(s.text) for s in preserved)
        if target < 1:
            return CompressionOutcome(None, 0, step.tokens, halted=f"{step.name}: the preserved sections alone exceed {step.target} tokens")
        rest = CompressionRequest(
            other_text, step.name, step.content_type, query=query, preserve=preserve, target=target, recipe=recipe.name
        )
        outcome = await self._engine.compress(rest, site=request.site)
        return outcome if outcome.text is None else replace(outcome, text=_restore_sections(outcome.text, preserved))

    def _select_passages(self, text: str, step: CompressionStep) -> CompressionOutcome:
        """context.md of a call that judges section 5; raises BudgetError where section 5 does not fit whole."""
        selected = select_for_judgement(text, step.target, self._counter.count)
        if selected is None:
            answer_tokens = self._counter.count(ContextDocument.parse(text).body(5))
            raise BudgetError(
                f"{step.name}: section 5 with {answer_tokens} tokens and the list of its sources are judged whole: "
                f"expected at most {step.target} tokens",
                over=step.tokens - step.target,
                hint="Ask for a shorter answer, or give the recipe a larger token_budget.input.",
            )
        return CompressionOutcome(selected, self._counter.count(selected), step.tokens)

    def _focus_query(self, step: CompressionStep, request: CallRequest) -> str:
        """The query that focuses a compression; "" for documents whose content was chosen for the query already."""
        is_chosen = step.content_type in (ContentType.CONTEXT_DOC, ContentType.TOOL_RESULT)
        return "" if is_chosen else short_query(request.query, _MAX_QUERY_TOKENS, self._counter.count)

    def _over_budget_error(
        self, plan: CompressionPlan, budget_tokens: int, recipe: LoadedRecipe, reason: str, site: CallSite
    ) -> BudgetError:
        self._log.record_overflow(recipe.name, plan.over, site=site, loaded=recipe)
        message = f"{plan.total_tokens} tokens of documents are {plan.over} over even when compressed: expected at most {budget_tokens}"
        hint = "Give the recipe a larger token_budget.input, or shorten what cannot be compressed."
        if reason:
            return FactLossError(f"{message}: {reason}", over=plan.over, hint=hint)
        return BudgetError(message, over=plan.over, hint=hint)

    def _tokens(self, documents: Sequence[InputDocument]) -> int:
        return sum(self._counter.count(d.text) for d in documents)


def _next_floor(step: CompressionStep) -> int:
    """The smallest floor over the target of a step that failed; all tokens of the document after the last one."""
    return next((int(step.tokens * share) for share in RATIO_FLOORS if int(step.tokens * share) > step.target), step.tokens)


def _preserved_sections(text: str, preserve: Sequence[str]) -> tuple[Section, ...]:
    """The sections that the recipe preserves; section 0 is not among them, since every method keeps it."""
    numbers = {name.removeprefix("section_") for name in preserve if name.startswith("section_")} - {"0"}
    return tuple(s for s in ContextDocument.parse(text).sections if str(s.number) in numbers)


def _remove_sections(text: str, removed: Sequence[Section]) -> str:
    parsed = ContextDocument.parse(text)
    return ContextDocument(parsed.preamble, tuple(s for s in parsed.sections if s not in removed)).render() if removed else text


def _restore_sections(text: str, preserved: Sequence[Section]) -> str:
    parsed = ContextDocument.parse(text)
    sections = sorted((*parsed.sections, *preserved), key=lambda s: s.number)
    return ContextDocument(parsed.preamble, tuple(sections)).render() if preserved else text
