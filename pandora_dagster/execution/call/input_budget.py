"""The input of one call within its budget (000 section 15, step 3): shared parts counted, fixed input compressed, items chosen.

What does not fit is never cut: the call stops.
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

# A query over its limits, in a pack only: the user's words stay verbatim, pasted blocks travel as attached documents. Knows the
# input of one call; context.md on the disk keeps every word (DECISIONS 3).

MIN_ATTACHED_TOKENS = 60
"""Tokens under which a pasted block stays among the words: a reference saves nothing there."""


def with_attachments(inputs: CallInputs, count: TokenCountFunction) -> CallInputs:
    """The input with every pasted block once, as a document that may be compressed; as it is where nothing was pasted."""
    words, blocks = split_pasted(inputs.query, least=MIN_ATTACHED_TOKENS, count=count)
    if not blocks:
        return inputs
    documents = tuple(_reference_blocks(document, blocks) for document in inputs.documents)
    attached = tuple(InputDocument(block.name, block.text) for block in blocks)
    return replace(inputs, query=words, documents=(*documents, *attached))


def _reference_blocks(document: InputDocument, blocks: Sequence[PastedBlock]) -> InputDocument:
    """A document that repeats the query (an analysis in JSON) refers to its blocks as the words do."""
    text = document.text
    for block in blocks:
        for spelled in (
            block.text,
            escape_headings(block.text),
            json.dumps(block.text, ensure_ascii=False)[1:-1],
            json.dumps(block.text)[1:-1],
        ):
            text = text.replace(spelled, block.reference)
    return replace(document, text=text)


_LARGER_CONTEXT_HINT = "serve the layer's model with a larger context (pandora doctor says where) and raise context_length in runtime.yaml"
_LONG_QUERY_SHARE = 0.25
"""Share of the input room from which a query is long for its call."""


@dataclass(frozen=True, slots=True)
class PackTarget:
    """The layer a pack is made for, as the runtime serves it."""

    layer: ModelLayer
    served: int | None
    """Tokens of its context, None where it is unbounded."""
    ratio: float
    """Of its tokens for one of cl100k."""
    temperature: float
    tools: tuple[str, ...]
    budget: TokenBudget | None = None
    """Takes the place of the recipe's own where a larger layer takes the call for its size."""


@dataclass(frozen=True, slots=True)
class InputFitter:
    """Makes calls fit."""

    count: TokenCountFunction
    fitter: DocumentFitter | None

    async def pack_contents(self, request: CallRequest, loaded: LoadedRecipe, inputs: CallInputs, target: PackTarget) -> PackContents:
        """Everything for a pack within every budget; raises CallFaultError `budget_exceeded` naming the part and the tokens."""
        budget = target.budget or loaded.recipe.token_budget
        room = message_budget(budget, served=target.served, ratio=target.ratio)
        shared, prompt_tokens = shared_parts(loaded, inputs.prompts, self.count)
        _check_prompt(loaded, prompt_tokens, room, _served_context_note(target, budget))
        input_room = room.input_tokens_beside(prompt_tokens) - image_tokens(request.images)
        inputs = self._attach_blocks(inputs, input_room)
        around = sum(part.tokens for part in input_parts(inputs.variables, (), inputs.query, self.count))
        fitted = await self._fit_documents(request, loaded, inputs, input_room - around, _served_context_note(target, budget))
        choice = select_items(fitted.documents, room=input_room - around, count=self.count)
        parts = input_parts(inputs.variables, choice.documents, inputs.query, self.count)
        tokens = sum(part.tokens for part in parts) + image_tokens(request.images)
        return PackContents(
            request=request,
            loaded=loaded,
            layer=target.layer,
            temperature=target.temperature,
            tools=target.tools,
            shared=shared,
            input=parts,
            prompt_tokens=prompt_tokens,
            input_tokens=tokens,
            feedback_room=room.both - prompt_tokens - tokens,
            left_out=choice.left_out,
            tokens_saved=fitted.tokens_saved,
            compressions=fitted.reports,
        )

    def _attach_blocks(self, inputs: CallInputs, room: int) -> CallInputs:
        """The input as it is where it fits, or where the query is short; else with pasted blocks attached (DECISIONS 3)."""
        around = sum(part.tokens for part in input_parts(inputs.variables, (), inputs.query, self.count))
        is_long = self.count(inputs.query) > _LONG_QUERY_SHARE * max(1, room)
        if not is_long or self._document_tokens(inputs.documents) + around <= room:
            return inputs
        return with_attachments(inputs, self.count)

    async def _fit_documents(
        self, request: CallRequest, loaded: LoadedRecipe, inputs: CallInputs, room: int, served: str
    ) -> FittedDocuments:
        """The documents, their own texts fitting `room`: as they are, or compressed, with what that saved."""
        if self._document_tokens(inputs.documents) <= room:
            return FittedDocuments(inputs.documents, 0)
        if self.fitter is None or not loaded.recipe.compression.enabled or room <= 0:
            raise self._over_budget_error(loaded, inputs, room, served)
        whole = [without_items(d) for d in inputs.documents if d.text]
        try:
            fitted = await self.fitter.fit(whole, budget_tokens=room, recipe=loaded, request=request)
        except BudgetError as error:
            kind = InterventionType.FACT_LOSS if isinstance(error, FactLossError) else InterventionType.BUDGET_EXCEEDED
            raise unrecoverable_fault(kind, f"{loaded.name}: input: {error}", hint=error.hint, wider=True) from error
        documents = _replace_texts(inputs.documents, fitted.documents)
        if self._document_tokens(documents) > room:
            raise self._over_budget_error(loaded, CallInputs(inputs.prompts, inputs.variables, documents, inputs.query), room, served)
        return replace(fitted, documents=documents)

    def _document_tokens(self, documents: Sequence[InputDocument]) -> int:
        return sum(framed_tokens(without_items(d), self.count) for d in documents)

    def _over_budget_error(self, loaded: LoadedRecipe, inputs: CallInputs, room: int, served: str) -> CallFaultError:
        """Says what takes the tokens, largest first, and how many are too many."""
        fixed = tuple(without_items(d) for d in inputs.documents)
        parts = input_parts(inputs.variables, fixed, inputs.query, self.count)
        around = sum(p.tokens for p in parts if p.kind != "document")
        tokens = sum(p.tokens for p in parts)
        listed = ", ".join(f"{p.name} {p.tokens}" for p in sorted(parts, key=lambda p: -p.tokens))
        return unrecoverable_fault(
            InterventionType.BUDGET_EXCEEDED,
            f"{loaded.name}: input: {tokens} tokens ({listed}) are {tokens - room - around} over{served}: "
            f"expected at most {max(0, room + around)}",
            hint=f"Shorten the largest part, give the recipe a larger token_budget.input, or {_LARGER_CONTEXT_HINT}.",
            wider=True,
        )


def _check_prompt(loaded: LoadedRecipe, tokens: int, room: MessageBudget, served: str) -> None:
    allowed = min(room.prompt, max(0, room.both))
    if tokens > allowed:
        message = f"{loaded.name}: prompt: {tokens} tokens are {tokens - allowed} over{served}: expected at most {allowed}"
        raise unrecoverable_fault(InterventionType.BUDGET_EXCEEDED, message, hint=f"Shorten the prompt files, or {_LARGER_CONTEXT_HINT}.")


def _served_context_note(target: PackTarget, budget: TokenBudget) -> str:
    """Says where a served context leaves less than the budget; "" where it does not."""
    if target.served is None or target.served >= budget.total:
        return ""
    return f" ({target.layer.value} serves {target.served} tokens, the budget is {budget.total})"


def _replace_texts(given: Sequence[InputDocument], fitted: Sequence[InputDocument]) -> tuple[InputDocument, ...]:
    """The given documents in their order, with the texts that compression gave them; their items stay a choice."""
    texts = {document.name: document.text for document in fitted}
    return tuple(InputDocument(d.name, texts.get(d.name, d.text), d.items, d.header) for d in given)
