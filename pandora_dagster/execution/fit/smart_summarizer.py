"""The SmartSummarizer of 000 section 21.4: the documents of a call that are too large, compressed by the engine as a plan says.

Fills the `DocumentFitter` port: the executor calls it where a call's fixed documents exceed its budget.
"""

from collections.abc import Sequence
from dataclasses import replace

from pandora_dagster.contracts.compression_results import CompressionReport, CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.recipe_execution import FittedDocuments
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.sections import ContextDocument, Section
from pandora_dagster.errors import BudgetError, FactLossError
from pandora_dagster.execution.call_inputs import CONTEXT_DOCUMENT
from pandora_dagster.execution.fit.compression_log import CompressionLog, CompressionOutcome
from pandora_dagster.execution.fit.compression_plan import RATIO_FLOORS, BudgetChecker, CompressionPlan, CompressionStep
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine

_LONGEST_QUERY = 200
"""Tokens of a query by which documents are focused; a longer one is a text of its own."""


class SmartSummarizer:
    """Transparent compression of calls. `execution` is the only room that triggers it (DECISIONS 8): what 000 calls
    `invoke_with_budget` is the executor's own `call`, which comes here by itself."""

    def __init__(self, engine: SummarizationEngine, checker: BudgetChecker, counter: TokenMeasure, log: CompressionLog) -> None:
        self._engine, self._checker, self._counter, self._log = engine, checker, counter, log

    async def fit(self, documents: Sequence[InputDocument], *, room: int, recipe: LoadedRecipe, request: CallRequest) -> FittedDocuments:
        """`documents` in `room` tokens with their frames; raises BudgetError, FactLossError where only facts stand in the way.

        Where a document's critical facts need more than its plan gives it, the next plan leaves it more; bounded by FLOORS.
        """
        floors: dict[str, int] = {}
        reason = ""
        while (plan := self._checker.plan(documents, recipe, room=room, floors=floors)).needed:
            if plan.over:
                raise self._over_budget_error(plan, recipe, reason, request.site)
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

    def _over_budget_error(self, plan: CompressionPlan, recipe: LoadedRecipe, reason: str, site: CallSite) -> BudgetError:
        self._log.record_overflow(recipe.name, plan.over, site=site, loaded=recipe)
        message = f"{plan.total_tokens} tokens of documents are {plan.over} over even when compressed: expected at most {plan.available}"
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
