"""The input of one call within its budget (specification 000, section 15, step 3).

    1 count the shared parts (policy, prompts, schema)     too many tokens: the call halts
    2 attach the pasted blocks of a long query as documents, which may be compressed; the user's own words stay verbatim
    3 compress the texts of the documents where they are over the remaining tokens
    4 select items by priority into the tokens that the texts leave

What does not fit is never cut: the call halts. `context.md` on disk keeps every word of the query.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pandora_dagster.contracts.enums import InterventionType, ModelLayer
from pandora_dagster.contracts.images import image_tokens
from pandora_dagster.contracts.model_calls import CallRequest, InputDocument
from pandora_dagster.contracts.ports.recipe_execution import DocumentFitter, FittedDocuments
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, TokenBudget
from pandora_dagster.documents.pasted_blocks import PastedBlock, split_pasted
from pandora_dagster.documents.sections import escape_headings
from pandora_dagster.errors import BudgetError, FactLossError
from pandora_dagster.execution.call.prompt_packs import PackContents, input_parts, shared_parts
from pandora_dagster.execution.call_faults import CallFaultError, unrecoverable_fault
from pandora_dagster.execution.call_inputs import CallInputs
from pandora_dagster.execution.fit.call_budget import (
    MessageBudget,
    TokenCountFunction,
    framed_tokens,
    message_budget,
    select_items,
    without_items,
)

# Pasted blocks of a long query (decision 3: docs/decisions/03-a-query-over-its-limits.md).

MIN_ATTACHED_TOKENS = 60
"""A shorter pasted block stays in the query: a reference would save nothing."""


def with_attachments(inputs: CallInputs, count: TokenCountFunction) -> CallInputs:
    """The input with every pasted block as a document, once; unchanged where nothing was pasted."""
    words, blocks = split_pasted(inputs.query, min_tokens=MIN_ATTACHED_TOKENS, count=count)
    if not blocks:
        return inputs
    documents = tuple(_reference_blocks(document, blocks) for document in inputs.documents)
    attached = tuple(InputDocument(block.name, block.text) for block in blocks)
    return replace(inputs, query=words, documents=(*documents, *attached))


def _reference_blocks(document: InputDocument, blocks: Sequence[PastedBlock]) -> InputDocument:
    """A document that repeats the query, such as an analysis in JSON, with references in place of the pasted blocks."""
    text = document.text
    for block in blocks:
        for spelling in (
            block.text,
            escape_headings(block.text),
            json.dumps(block.text, ensure_ascii=False)[1:-1],
            json.dumps(block.text)[1:-1],
        ):
            text = text.replace(spelling, block.reference)
    return replace(document, text=text)


_LARGER_CONTEXT_HINT = "serve the layer's model with a larger context (pandora doctor says where) and raise context_length in runtime.yaml"
_LONG_QUERY_SHARE = 0.25
"""Share of the input budget over which a query is long."""


@dataclass(frozen=True, slots=True)
class PackTarget:
    """The layer a pack is made for, as the runtime serves it."""

    layer: ModelLayer
    served: int | None
    """Tokens of the served model's context, None where it is unbounded."""
    ratio: float
    """Tokens of the served model for one cl100k token."""
    temperature: float
    tools: tuple[str, ...]
    budget: TokenBudget
    """The recipe's own, or the larger one of a larger layer that takes the call because of its size, on the served model."""


@dataclass(frozen=True, slots=True)
class InputFitter:
    """Fits the inputs of calls into their budgets."""

    count: TokenCountFunction
    fitter: DocumentFitter | None

    async def pack_contents(self, request: CallRequest, loaded: LoadedRecipe, inputs: CallInputs, target: PackTarget) -> PackContents:
        """The contents of a pack within every budget; raises CallFaultError `budget_exceeded` that names the parts and their tokens."""
        budget = target.budget
        limits = message_budget(budget, served=target.served, ratio=target.ratio)
        shared, prompt_tokens = shared_parts(loaded, inputs.prompts, self.count)
        _check_prompt(loaded, prompt_tokens, limits, _served_context_note(target, budget))
        input_limit = limits.input_tokens_beside(prompt_tokens) - image_tokens(request.images)
        inputs = self._attach_blocks(inputs, input_limit)
        fixed_tokens = sum(part.tokens for part in input_parts(inputs.variables, (), inputs.query, self.count))
        fitted = await self._fit_documents(request, loaded, inputs, input_limit - fixed_tokens, _served_context_note(target, budget))
        selection = select_items(fitted.documents, limit=input_limit - fixed_tokens, count=self.count)
        parts = input_parts(inputs.variables, selection.documents, inputs.query, self.count)
        used_tokens = sum(part.tokens for part in parts) + image_tokens(request.images)
        return PackContents(
            request=request,
            loaded=loaded,
            layer=target.layer,
            budget=budget,
            temperature=target.temperature,
            tools=target.tools,
            shared=shared,
            input=parts,
            prompt_tokens=prompt_tokens,
            input_tokens=used_tokens,
            feedback_limit=limits.both - prompt_tokens - used_tokens,
            left_out=selection.left_out,
            tokens_saved=fitted.tokens_saved,
            compressions=fitted.reports,
        )

    def _attach_blocks(self, inputs: CallInputs, limit: int) -> CallInputs:
        """The input with pasted blocks attached; unchanged where it fits, or where the query is short."""
        fixed_tokens = sum(part.tokens for part in input_parts(inputs.variables, (), inputs.query, self.count))
        is_long = self.count(inputs.query) > _LONG_QUERY_SHARE * max(1, limit)
        if not is_long or self._document_tokens(inputs.documents) + fixed_tokens <= limit:
            return inputs
        return with_attachments(inputs, self.count)

    async def _fit_documents(
        self, request: CallRequest, loaded: LoadedRecipe, inputs: CallInputs, limit: int, context_note: str
    ) -> FittedDocuments:
        """The documents with their texts in `limit` tokens: unchanged, or compressed, with the saved tokens."""
        if self._document_tokens(inputs.documents) <= limit:
            return FittedDocuments(inputs.documents, 0)
        if self.fitter is None or not loaded.recipe.compression.enabled or limit <= 0:
            raise self._over_budget_error(loaded, inputs, limit, context_note)
        texts = [without_items(d) for d in inputs.documents if d.text]
        try:
            fitted = await self.fitter.fit(texts, budget_tokens=limit, recipe=loaded, request=request)
        except BudgetError as error:
            fault_type = InterventionType.FACT_LOSS if isinstance(error, FactLossError) else InterventionType.BUDGET_EXCEEDED
            raise unrecoverable_fault(fault_type, f"{loaded.name}: input: {error}", hint=error.hint, suits_larger_layer=True) from error
        documents = _replace_texts(inputs.documents, fitted.documents)
        if self._document_tokens(documents) > limit:
            raise self._over_budget_error(loaded, replace(inputs, documents=documents), limit, context_note)
        return replace(fitted, documents=documents)

    def _document_tokens(self, documents: Sequence[InputDocument]) -> int:
        return sum(framed_tokens(without_items(d), self.count) for d in documents)

    def _over_budget_error(self, loaded: LoadedRecipe, inputs: CallInputs, limit: int, context_note: str) -> CallFaultError:
        """The fault of an input over `limit`: it names the parts, the largest first, and the tokens that are too many."""
        texts = tuple(without_items(d) for d in inputs.documents)
        parts = input_parts(inputs.variables, texts, inputs.query, self.count)
        fixed_tokens = sum(p.tokens for p in parts if p.kind != "document")
        used_tokens = sum(p.tokens for p in parts)
        listed = ", ".join(f"{p.name} {p.tokens}" for p in sorted(parts, key=lambda p: -p.tokens))
        return unrecoverable_fault(
            InterventionType.BUDGET_EXCEEDED,
            f"{loaded.name}: input: {used_tokens} tokens ({listed}) are {used_tokens - limit - fixed_tokens} over{context_note}: "
            f"expected at most {max(0, limit + fixed_tokens)}",
            hint=f"Shorten the largest part, give the recipe a larger token_budget.input, or {_LARGER_CONTEXT_HINT}.",
            suits_larger_layer=True,
        )


def _check_prompt(loaded: LoadedRecipe, tokens: int, limits: MessageBudget, context_note: str) -> None:
    """Raise CallFaultError where the shared parts are over their budget."""
    allowed = min(limits.prompt, max(0, limits.both))
    if tokens > allowed:
        message = f"{loaded.name}: prompt: {tokens} tokens are {tokens - allowed} over{context_note}: expected at most {allowed}"
        raise unrecoverable_fault(InterventionType.BUDGET_EXCEEDED, message, hint=f"Shorten the prompt files, or {_LARGER_CONTEXT_HINT}.")


def _served_context_note(target: PackTarget, budget: TokenBudget) -> str:
    """The note for messages that the served context is smaller than the budget; "" where it is not."""
    if target.served is None or target.served >= budget.total:
        return ""
    return f" ({target.layer.value} serves {target.served} tokens, the budget is {budget.total})"


def _replace_texts(documents: Sequence[InputDocument], fitted: Sequence[InputDocument]) -> tuple[InputDocument, ...]:
    """The documents with the texts that compression gave them; their items are selected later."""
    texts = {document.name: document.text for document in fitted}
    return tuple(InputDocument(d.name, texts.get(d.name, d.text), d.items, d.header) for d in documents)
