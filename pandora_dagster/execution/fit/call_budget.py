"""Step 3 of 000 section 15: how many tokens a call has, and which items fit. Knows numbers and items; knows no recipe file.

Recipe budgets are planned in cl100k tokens; `plannable_tokens` says how many of them the served model takes (DECISIONS 22).
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
from pandora_dagster.contracts.recipe_schema import TokenBudget
from pandora_dagster.errors import DocumentError, StoreError

TokenCountFunction = Callable[[str], int]
TEMPLATE_TOKENS = 64
"""Allowed for a chat template around two messages; Qwen3 and Llama 3 templates take 10 to 40."""
FIRST_RATIO = 1.1
"""Served tokens per cl100k token until a layer's model has answered once."""
_SMALLEST_SAMPLE = 200
_MAX_SAMPLES = 64
"""Calls whose highest ratio holds: one odd prompt does not narrow a layer for ever."""


@dataclass(frozen=True, slots=True)
class MessageBudget:
    """Tokens for the two messages of one call on one layer."""

    prompt: int
    """For the shared parts."""
    both: int
    """For shared parts and input together; feedback may use what they leave."""
    input: int
    """Largest input the recipe allows, whatever the prompt takes."""

    def input_tokens_beside(self, prompt_tokens: int) -> int:
        """What is left for the input beside a prompt of `prompt_tokens`; negative where nothing is."""
        return min(self.input, self.both - prompt_tokens)


def message_budget(budget: TokenBudget, *, served: int | None, ratio: float) -> MessageBudget:
    """The room of a call: prompt + input + output + reserve stays within `total` and the served context (DECISIONS 21).

    `served`: the context in the model's own tokens, None where it is unbounded; `ratio`: of them for one cl100k token.
    """
    both = budget.total - budget.output - budget.response_reserve
    if served is not None:
        both = min(both, plannable_tokens(served - budget.output - budget.response_reserve, ratio))
    return MessageBudget(prompt=budget.prompt, both=both, input=budget.input)


@dataclass(frozen=True, slots=True)
class CallLimit:
    """The budget of a call that its recipe's own does not bound (000 "Configuration"): a larger layer took it for its size."""

    total: int = 12_000
    reserve: int = 2_000

    def larger_budget(self, own: TokenBudget) -> TokenBudget | None:
        """The budget on the larger layer; None where it gives no more input than `own`."""
        kept = max(self.reserve, own.output + own.response_reserve)
        room = self.total - own.prompt - kept
        if room <= own.input:
            return None
        return own.model_copy(update={"total": self.total, "input": room, "response_reserve": kept - own.output})


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Documents with the items that fit, and the names of those that stay out (DECISIONS 2)."""

    documents: tuple[InputDocument, ...]
    left_out: tuple[str, ...] = ()


def document_text(document: InputDocument) -> str:
    """A document as its part says it: header, text, items; "" for a header alone.

    Items that are single lines (JSON lines) are joined line under line, others with a blank line between.
    """
    between = "\n\n" if any("\n" in item.text for item in document.items) else "\n"
    items = between.join(item.text for item in document.items)
    said = [piece for piece in (document.text, items) if piece]
    return "\n\n".join([document.header, *said] if document.header and said else said)


def framed_tokens(document: InputDocument, count: TokenCountFunction) -> int:
    """Tokens of a document in its frame with the blank line after it; 0 for one that says nothing."""
    text = document_text(document)
    return count(frame_text("document", document.name, text) + "\n\n") if text else 0


def without_items(document: InputDocument) -> InputDocument:
    """The part of a document that is no choice: its text, under its header."""
    return replace(document, items=()) if document.items else document


def select_items(documents: Sequence[InputDocument], *, room: int, count: TokenCountFunction) -> ItemSelection:
    """As many whole items as `room` tokens let in: highest priority first, ties as given; order in the documents stays as given.

    An item too large for what is left is passed over and the next one tried. The documents' own texts must fit already.
    """
    if sum(framed_tokens(d, count) for d in documents) <= room:
        return ItemSelection(tuple(documents))
    return _ItemSelector(documents, room, count).selection()


class _ItemSelector:
    """One choice in the making. Items are added by what each counts alone; the whole is then counted."""

    def __init__(self, documents: Sequence[InputDocument], room: int, count: TokenCountFunction) -> None:
        self._documents, self._count, self._room = documents, count, room
        self._in: list[set[int]] = [set() for _ in documents]
        self._taken: list[tuple[int, int]] = []
        self._left = room - self._cost()

    def selection(self) -> ItemSelection:
        order = sorted((-item.priority, d, i) for d, document in enumerate(self._documents) for i, item in enumerate(document.items))
        for _, d, i in order:
            self._take_item(d, i)
        while self._taken and self._cost() > self._room:
            d, i = self._taken.pop()
            self._in[d].remove(i)
        names = [self._item_name(d, i) for d, i in sorted((d, i) for _, d, i in order if i not in self._in[d])]
        return ItemSelection(tuple(self._selected_document(d) for d in range(len(self._documents))), tuple(names))

    def _take_item(self, d: int, i: int) -> None:
        document = self._documents[d]
        cost = self._count(document.items[i].text + "\n\n")
        if not self._in[d]:
            cost += 0 if document.text else self._count(frame_text("document", document.name, document.header + "\n\n") + "\n\n")
        if cost <= self._left:
            self._left -= cost
            self._in[d].add(i)
            self._taken.append((d, i))

    def _cost(self) -> int:
        return sum(framed_tokens(self._selected_document(d), self._count) for d in range(len(self._documents)))

    def _item_name(self, d: int, i: int) -> str:
        return self._documents[d].items[i].name or f"{self._documents[d].name}#{i + 1}"

    def _selected_document(self, d: int) -> InputDocument:
        document = self._documents[d]
        if not document.items:
            return document
        items = tuple(item for i, item in enumerate(document.items) if i in self._in[d])
        return replace(document, items=items)


# Served tokens per cl100k token: learned from what the servers count, and stored over restarts (DECISIONS 22).


def plannable_tokens(served: int, ratio: float) -> int:
    """The cl100k tokens that fit into `served` tokens of a model that has `ratio` of them for each."""
    return max(0, math.floor((served - TEMPLATE_TOKENS) / ratio))


def observed_ratio(counted: int, served: int) -> float:
    """What one prompt says: `served` tokens, its template's among them, for `counted` of cl100k; never below 1."""
    return max(1.0, (served - TEMPLATE_TOKENS) / max(1, counted))


class TokenRatioEstimator:
    """The highest of a layer's last ratios, for the model that answers there. What was kept counts as one of them.

    A store that fails costs the memory, not the call: it is said, and learned again.
    """

    def __init__(self, kept: TokenRatios | None = None) -> None:
        self._kept = kept
        self._recent: dict[tuple[ModelLayer, str], deque[float]] = {}

    def ratio(self, layer: ModelLayer, model: str) -> float:
        """What to plan with."""
        return max(self._samples(layer, model), default=FIRST_RATIO)

    def learn(self, layer: ModelLayer, model: str, *, counted: int, served: int) -> None:
        """Take in one answer's usage; small prompts say too little."""
        if counted < _SMALLEST_SAMPLE or served <= 0:
            return
        recent = self._samples(layer, model)
        before = max(recent, default=0.0)
        recent.append(round(observed_ratio(counted, served), 4))
        if self._kept and max(recent) != before:
            try:
                self._kept.keep(layer, model, max(recent))
            except (StoreError, DocumentError) as error:
                _warn(f"the token ratio of {layer} was not kept: {error}")

    def _samples(self, layer: ModelLayer, model: str) -> deque[float]:
        if (layer, model) not in self._recent:
            self._recent[layer, model] = deque(self._stored_ratio(layer, model), maxlen=_MAX_SAMPLES)
        return self._recent[layer, model]

    def _stored_ratio(self, layer: ModelLayer, model: str) -> tuple[float, ...]:
        if self._kept is None:
            return ()
        try:
            found = self._kept.find(layer, model)
        except DocumentError as error:
            _warn(f"the token ratio of {layer} is learned again: {error}")
            return ()
        return () if found is None else (found,)


def _warn(message: str) -> None:
    logging.getLogger(__name__).warning(message)


async def served_tokens_if_over(runtime: ModelRuntime, pack: PromptPack, *, room: int | None) -> int | None:
    """The served model's tokens of `pack` where they are over `room`; None where it fits, and where the runtime cannot count.

    Asks the runtime only where the pack could be over: no tokenizer has more tokens than bytes.
    """
    most = sum(len(text.encode(errors="surrogatepass")) for text in (pack.system, pack.user)) + image_tokens(pack.images)
    if room is None or most + TEMPLATE_TOKENS <= room:
        return None
    served = await runtime.count(pack)
    return served if served is not None and served > room else None
