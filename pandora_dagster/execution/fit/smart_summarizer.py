"""The SmartSummarizer of 000 section 21.4: the documents of a call that are too large, compressed by the engine as a plan says.

Fills the `DocumentFitter` port: the executor calls it where a call's fixed documents exceed its budget.
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
from pandora_dagster.documents.sections import ContextDocument, Section
from pandora_dagster.errors import BudgetError, FactLossError
from pandora_dagster.execution.call_inputs import CONTEXT_DOCUMENT
from pandora_dagster.execution.fit.call_budget import TokenCountFunction, framed_tokens
from pandora_dagster.execution.fit.compression_log import CompressionLog, CompressionOutcome
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine

_LONGEST_QUERY = 200
"""Tokens of a query by which documents are focused; a longer one is a text of its own."""


# Whether the documents of a call must be compressed, which of them, and to what size (000 sections 21.2 and 24).
#
# What is compressed first, and what never (000 section 24.2). What 000 ranks as high, addresses, prices and errors, are facts of the
# ledger wherever they are.


class CompressionPriority(IntEnum):
    """The lower, the earlier it is compressed."""

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
_HISTORY = frozenset({"turn_summaries", "prior_turns", "conversation"})
_CRITICAL = frozenset({"raw_query", "tools", "command"})
"""Documents that a call cannot do without: the words of the user, what may be called, what is to be done."""


def priority_of(name: str, content_type: ContentType, preserve: Collection[str] = ()) -> CompressionPriority:
    """The priority of a whole document; one that its recipe's compression policy names in `preserve` is never compressed."""
    if name in preserve or name in _CRITICAL:
        return CompressionPriority.CRITICAL
    return CompressionPriority.LOW if name in _HISTORY else _PRIORITIES[content_type]


RATIO_FLOORS = (0.15, 0.4, 0.7, 1.0)
"""Shares of a document below which it is not compressed; the next one holds where its critical facts needed more."""
_SMALLEST = 40


@dataclass(frozen=True, slots=True)
class CompressionStep:
    """One document to compress to `target` tokens of its own text."""

    name: str
    content_type: ContentType
    tokens: int
    target: int


@dataclass(frozen=True, slots=True)
class CompressionPlan:
    """What is to be compressed of documents that do not fit; `over` counts the tokens that no step can save."""

    total_tokens: int
    steps: tuple[CompressionStep, ...]
    over: int


def plan_compression(
    documents: Sequence[InputDocument], loaded: LoadedRecipe, floors: Mapping[str, int], *, room: int, count: TokenCountFunction
) -> CompressionPlan | None:
    """The plan for `documents` in `room` tokens, None where they fit: lowest priority first, of equals the largest, as little as is enough.

    `floors`: document -> the tokens below which it cannot go.
    """
    total = sum(framed_tokens(document, count) for document in documents)
    over, steps = total - room, list[CompressionStep]()
    if over <= 0:
        return None
    for _, tokens, document, kind in _in_order(documents, loaded.recipe.compression.preserve, count):
        target = max(floors.get(document.name, int(tokens * RATIO_FLOORS[0])), _SMALLEST, tokens - over)
        if over > 0 and target < tokens:
            steps.append(CompressionStep(document.name, kind, tokens, target))
            over -= tokens - target
    return CompressionPlan(total, tuple(steps), max(0, over))


def _in_order(
    documents: Sequence[InputDocument], preserve: Collection[str], count: TokenCountFunction
) -> list[tuple[CompressionPriority, int, InputDocument, ContentType]]:
    found: list[tuple[CompressionPriority, int, InputDocument, ContentType]] = []
    for document in documents:
        kind = detect_content_type(document.name, document.text)
        priority = priority_of(document.name, kind, preserve)
        if document.text and priority is not CompressionPriority.CRITICAL:
            found.append((priority, count(document.text), document, kind))
    return sorted(found, key=lambda entry: (entry[0], -entry[1]))


class SmartSummarizer:
    """Transparent compression of calls. `execution` is the only room that triggers it (DECISIONS 8): what 000 calls
    `invoke_with_budget` is the executor's own `call`, which comes here by itself."""

    def __init__(self, engine: SummarizationEngine, counter: TokenMeasure, log: CompressionLog) -> None:
        self._engine, self._counter, self._log = engine, counter, log

    async def fit(
        self, documents: Sequence[InputDocument], *, budget_tokens: int, recipe: LoadedRecipe, request: CallRequest
    ) -> FittedDocuments:
        """`documents` in `budget_tokens` tokens with their frames; raises BudgetError, FactLossError where only facts prevent it.

        Where a document's critical facts need more than its plan gives it, the next plan leaves it more; bounded by FLOORS.
        """
        floors: dict[str, int] = {}
        reason = ""
        while plan := plan_compression(documents, recipe, floors, room=budget_tokens, count=self._counter.count):
            if plan.over:
                raise self._over_budget_error(plan, budget_tokens, recipe, reason, request.site)
            made = await self._apply_plan(plan, documents, recipe, request, floors)
            if isinstance(made, FittedDocuments):
                return made
            reason = made
        return FittedDocuments(tuple(documents), 0)

    async def _apply_plan(
        self,
        plan: CompressionPlan,
        documents: Sequence[InputDocument],
        recipe: LoadedRecipe,
        request: CallRequest,
        floors: dict[str, int],
    ) -> FittedDocuments | str:
        """The documents with every step of a plan done, or why one could not be; its floor is raised then."""
        done = {document.name: document for document in documents}
        reports: list[CompressionReport] = []
        for step in plan.steps:
            before = done[step.name].text
            made = await self._compress_document(before, step, recipe, request)
            if made.text is None:
                floors[step.name] = _next_floor(step)
                return made.halted
            done[step.name] = replace(done[step.name], text=made.text)
            if made.verification:
                name = f"{recipe.name}: {step.name}"
                reports.append(self._engine.report(CompressionRequest(before, name, step.content_type, target=step.target), made))
        fitted = tuple(done[document.name] for document in documents)
        return FittedDocuments(fitted, self._tokens(documents) - self._tokens(fitted), tuple(reports))

    async def _compress_document(self, text: str, step: CompressionStep, recipe: LoadedRecipe, request: CallRequest) -> CompressionOutcome:
        """One document at its target; the sections of context.md that the recipe preserves stay verbatim."""
        preserve = recipe.recipe.compression.preserve
        query = self._focus_query(step, request)
        kept = _preserved_sections(text, preserve) if step.name == CONTEXT_DOCUMENT else ()
        loose = _remove_sections(text, kept)
        target = step.target - sum(self._counter.count(s.text) for s in kept)
        if target < 1:
            return CompressionOutcome(None, 0, step.tokens, halted=f"{step.name}: the preserved sections alone exceed {step.target} tokens")
        made = await self._engine.compress(
            CompressionRequest(loose, step.name, step.content_type, query=query, preserve=preserve, target=target), site=request.site
        )
        return made if made.text is None else replace(made, text=_restore_sections(made.text, kept))

    def _focus_query(self, step: CompressionStep, request: CallRequest) -> str:
        """What the document is read for. What a turn gathered and did was chosen for the query already: all of it counts."""
        is_chosen = step.content_type in (ContentType.CONTEXT_DOC, ContentType.TOOL_RESULT)
        return "" if is_chosen or self._counter.count(request.query) > _LONGEST_QUERY else request.query

    def _over_budget_error(self, plan: CompressionPlan, room: int, recipe: LoadedRecipe, reason: str, site: CallSite) -> BudgetError:
        self._log.record_overflow(recipe.name, plan.over, site=site, loaded=recipe)
        message = f"{plan.total_tokens} tokens of documents are {plan.over} over even when compressed: expected at most {room}"
        hint = "Give the recipe a larger token_budget.input, or shorten what cannot be compressed."
        if reason:
            return FactLossError(f"{message}: {reason}", over=plan.over, hint=hint)
        return BudgetError(message, over=plan.over, hint=hint)

    def _tokens(self, documents: Sequence[InputDocument]) -> int:
        return sum(self._counter.count(d.text) for d in documents)


def _next_floor(step: CompressionStep) -> int:
    return next((int(step.tokens * share) for share in RATIO_FLOORS if int(step.tokens * share) > step.target), step.tokens)


def _preserved_sections(text: str, preserve: Sequence[str]) -> tuple[Section, ...]:
    """Sections that the recipe keeps whole; section 0 is kept by every method and stays where it is."""
    numbers = {name.removeprefix("section_") for name in preserve if name.startswith("section_")} - {"0"}
    return tuple(s for s in ContextDocument.parse(text).sections if str(s.number) in numbers)


def _remove_sections(text: str, kept: Sequence[Section]) -> str:
    parsed = ContextDocument.parse(text)
    return ContextDocument(parsed.preamble, tuple(s for s in parsed.sections if s not in kept)).render() if kept else text


def _restore_sections(text: str, kept: Sequence[Section]) -> str:
    parsed = ContextDocument.parse(text)
    whole = sorted((*parsed.sections, *kept), key=lambda s: s.number)
    return ContextDocument(parsed.preamble, tuple(whole)).render() if kept else text
