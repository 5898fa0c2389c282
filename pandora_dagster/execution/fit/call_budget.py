"""The token budget of a call, the selection of items that fit it, and the ratio of a served model's tokens to cl100k tokens.

This is step 3 of specification 000, section 15. Recipe budgets are in cl100k tokens; `plannable_tokens` converts a served model's context
into them (decision 22: docs/decisions/22-token-counts.md).
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import image_tokens
from pandora_dagster.contracts.model_calls import InputDocument, PromptPack, frame_text
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime, TokenRatios
from pandora_dagster.contracts.recipe_schema import MAX_CALL_TOKENS, TokenBudget
from pandora_dagster.errors import DocumentError, StoreError

TokenCountFunction = Callable[[str], int]
TEMPLATE_TOKENS = 64
"""Reserve for a chat template around two messages; the templates of Qwen3 and Llama 3 take 10 to 40."""
FIRST_RATIO = 1.1
"""Served tokens per cl100k token until a layer's model has answered once."""
_MIN_SAMPLE_TOKENS = 200
"""A smaller prompt says too little about the ratio."""
_MAX_SAMPLES = 64
"""The highest ratio of this many newest calls holds, so that one odd prompt does not narrow a layer for ever."""

_MIN_ANSWER_SHARE = 0.5
"""Share of its recipe's tokens that an answer has on the smallest model."""


@dataclass(frozen=True, slots=True)
class MessageBudget:
    """Tokens for the two messages of one call on one layer."""

    prompt: int
    """Limit of the shared parts."""
    both: int
    """Limit of shared parts and input together; feedback may use what they leave."""
    input: int
    """Limit of the input, whatever the prompt takes."""

    def input_tokens_beside(self, prompt_tokens: int) -> int:
        """The limit of the input beside a prompt of `prompt_tokens`; negative where the prompt alone is too large."""
        return min(self.input, self.both - prompt_tokens)


def served_budget(budget: TokenBudget, served: int | None) -> TokenBudget:
    """`budget` on a model that takes `served` tokens: under the recipe's total, the answer keeps its share of them, at least half of its
    tokens, and so does its reserve.

    Otherwise a recipe with a long answer would leave no tokens for its prompt on a small model. The input shrinks in `message_budget`.
    """
    if served is None or served >= budget.total:
        return budget
    share = max(_MIN_ANSWER_SHARE, served / budget.total)
    names = ("output", "response_reserve")
    return budget.model_copy(update={name: math.ceil(getattr(budget, name) * share) for name in names})


def message_budget(budget: TokenBudget, *, served: int | None, ratio: float) -> MessageBudget:
    """The message budget of a call: prompt + input + output + reserve stays within `total` and the served context.

    `served`: the context in the model's own tokens, None where it is unbounded; `ratio`: the model's tokens for one cl100k token.
    See decision 21: docs/decisions/21-response-reserve.md.
    """
    both = budget.total - budget.output - budget.response_reserve
    if served is not None:
        both = min(both, plannable_tokens(served - budget.output - budget.response_reserve, ratio))
    return MessageBudget(prompt=budget.prompt, both=both, input=budget.input)


def can_be_served(budget: TokenBudget, served: int) -> bool:
    """Whether a prompt of the budget's size leaves tokens for an input on a model that takes `served` tokens."""
    limits = message_budget(served_budget(budget, served), served=served, ratio=FIRST_RATIO)
    return limits.input_tokens_beside(budget.prompt) > 0


@dataclass(frozen=True, slots=True)
class CallLimit:
    """The budget of a call that a larger layer takes because of its size (specification 000, "Configuration")."""

    total: int = MAX_CALL_TOKENS
    reserve: int = 2_000

    def larger_budget(self, recipe_budget: TokenBudget) -> TokenBudget | None:
        """The budget on the larger layer; None where it gives no more input than `recipe_budget`."""
        reserved = max(self.reserve, recipe_budget.output + recipe_budget.response_reserve)
        input_tokens = self.total - recipe_budget.prompt - reserved
        if input_tokens <= recipe_budget.input:
            return None
        return recipe_budget.model_copy(
            update={"total": self.total, "input": input_tokens, "response_reserve": reserved - recipe_budget.output}
        )


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Documents with the items that fit, and the names of those left out.

    See decision 2: docs/decisions/02-selection-then-compression.md.
    """

    documents: tuple[InputDocument, ...]
    left_out: tuple[str, ...] = ()


def document_text(document: InputDocument) -> str:
    """The text of a document in its part: header, text, items; "" for a header alone.

    Items of one line each (JSON lines) are joined by line breaks, others by blank lines.
    """
    separator = "\n\n" if any("\n" in item.text for item in document.items) else "\n"
    items = separator.join(item.text for item in document.items)
    pieces = [piece for piece in (document.text, items) if piece]
    return "\n\n".join([document.header, *pieces] if document.header and pieces else pieces)


def framed_tokens(document: InputDocument, count: TokenCountFunction) -> int:
    """Tokens of a document in its frame with the blank line after it; 0 for one without text."""
    text = document_text(document)
    return count(frame_text("document", document.name, text) + "\n\n") if text else 0


def without_items(document: InputDocument) -> InputDocument:
    """The document without its items, which are selected separately."""
    return replace(document, items=()) if document.items else document


def select_items(documents: Sequence[InputDocument], *, limit: int, count: TokenCountFunction) -> ItemSelection:
    """The documents with as many whole items as fit into `limit` tokens: by priority, highest first, then in the given order.

    An item that does not fit is left out, and the next one tried. The documents' own texts must fit already. Items stay in their order.
    """
    if sum(framed_tokens(d, count) for d in documents) <= limit:
        return ItemSelection(tuple(documents))
    return _ItemSelector(documents, limit, count).selection()


class _ItemSelector:
    """One selection. Items are added by the tokens of each alone; then the whole is counted, and the last ones are removed if it is over.

    An item is addressed by its document and its position there, both from 0.
    """

    def __init__(self, documents: Sequence[InputDocument], limit: int, count: TokenCountFunction) -> None:
        self._documents, self._count, self._limit = documents, count, limit
        self._selected: list[set[int]] = [set() for _ in documents]
        self._selection_order: list[tuple[int, int]] = []
        self._remaining_tokens = limit - self._cost()

    def selection(self) -> ItemSelection:
        """The documents with the selected items."""
        items = [(doc, pos) for doc, document in enumerate(self._documents) for pos in range(len(document.items))]
        for doc, pos in sorted(items, key=lambda at: -self._documents[at[0]].items[at[1]].priority):
            self._take_item(doc, pos)
        while self._selection_order and self._cost() > self._limit:
            doc, pos = self._selection_order.pop()
            self._selected[doc].remove(pos)
        left_out = [self._item_name(doc, pos) for doc, pos in items if pos not in self._selected[doc]]
        return ItemSelection(tuple(self._selected_document(doc) for doc in range(len(self._documents))), tuple(left_out))

    def _take_item(self, doc: int, pos: int) -> None:
        """Add an item where it fits into the remaining tokens; the first item of a document without text adds its frame."""
        document = self._documents[doc]
        cost = self._count(document.items[pos].text + "\n\n")
        if not self._selected[doc]:
            cost += 0 if document.text else self._count(frame_text("document", document.name, document.header + "\n\n") + "\n\n")
        if cost <= self._remaining_tokens:
            self._remaining_tokens -= cost
            self._selected[doc].add(pos)
            self._selection_order.append((doc, pos))

    def _cost(self) -> int:
        return sum(framed_tokens(self._selected_document(doc), self._count) for doc in range(len(self._documents)))

    def _item_name(self, doc: int, pos: int) -> str:
        return self._documents[doc].items[pos].name or f"{self._documents[doc].name}#{pos + 1}"

    def _selected_document(self, doc: int) -> InputDocument:
        document = self._documents[doc]
        if not document.items:
            return document
        items = tuple(item for pos, item in enumerate(document.items) if pos in self._selected[doc])
        return replace(document, items=items)


# Served tokens per cl100k token: learned from the counts of the servers, and stored over restarts.


def plannable_tokens(served: int, ratio: float) -> int:
    """The cl100k tokens that fit into `served` tokens of a model that has `ratio` of them for each."""
    return max(0, math.floor((served - TEMPLATE_TOKENS) / ratio))


def observed_ratio(counted: int, served: int) -> float:
    """The ratio of one prompt: `served` tokens, including those of its template, for `counted` cl100k tokens; never below 1."""
    return max(1.0, (served - TEMPLATE_TOKENS) / max(1, counted))


class TokenRatioEstimator:
    """Estimates the ratio of a layer's model as the highest of its last ratios; a stored ratio counts as one of them.

    A failure of the store is logged and does not affect the call: the ratio is learned again.
    """

    def __init__(self, store: TokenRatios | None = None) -> None:
        self._store = store
        self._samples_of_model: dict[tuple[ModelLayer, str], deque[float]] = {}

    def ratio(self, layer: ModelLayer, model: str) -> float:
        """The ratio to plan with."""
        return max(self._samples(layer, model), default=FIRST_RATIO)

    def learn(self, layer: ModelLayer, model: str, *, counted: int, served: int) -> None:
        """Add the ratio of one answer, unless its prompt is too small."""
        if counted < _MIN_SAMPLE_TOKENS or served <= 0:
            return
        samples = self._samples(layer, model)
        previous = max(samples, default=0.0)
        samples.append(round(observed_ratio(counted, served), 4))
        if self._store and max(samples) != previous:
            try:
                self._store.keep(layer, model, max(samples))
            except (StoreError, DocumentError) as error:
                _warn(f"the token ratio of {layer} was not kept: {error}")

    def _samples(self, layer: ModelLayer, model: str) -> deque[float]:
        if (layer, model) not in self._samples_of_model:
            self._samples_of_model[layer, model] = deque(self._stored_ratio(layer, model), maxlen=_MAX_SAMPLES)
        return self._samples_of_model[layer, model]

    def _stored_ratio(self, layer: ModelLayer, model: str) -> tuple[float, ...]:
        if self._store is None:
            return ()
        try:
            ratio = self._store.find(layer, model)
        except DocumentError as error:
            _warn(f"the token ratio of {layer} is learned again: {error}")
            return ()
        return () if ratio is None else (ratio,)


def _warn(message: str) -> None:
    logging.getLogger(__name__).warning(message)


async def served_tokens_if_over(runtime: ModelRuntime, pack: PromptPack, *, limit: int | None) -> int | None:
    """The served model's tokens of `pack` where they are over `limit`; None where it fits, and where the runtime cannot count.

    The runtime counts only where the pack could be over: no tokenizer makes more tokens than there are bytes.
    """
    max_tokens = sum(len(text.encode(errors="surrogatepass")) for text in (pack.system, pack.user)) + image_tokens(pack.images)
    if limit is None or max_tokens + TEMPLATE_TOKENS <= limit:
        return None
    served_tokens = await runtime.count(pack)
    return served_tokens if served_tokens is not None and served_tokens > limit else None
