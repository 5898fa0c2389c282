"""Whether the documents of a call must be compressed, which of them, and to what size (000 sections 21.2 and 24).

Knows sizes and priorities; compresses nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.fit.call_budget import TokenCountFunction, framed_tokens

# What is compressed first, and what never (000 section 24.2). Knows names and content types; counts nothing.


class CompressionPriority(IntEnum):
    """The lower, the earlier it is compressed."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


PRIORITY_ORDER: tuple[tuple[str, CompressionPriority], ...] = (
    ("section_0", CompressionPriority.CRITICAL),
    ("error", CompressionPriority.CRITICAL),
    ("url", CompressionPriority.HIGH),
    ("price", CompressionPriority.HIGH),
    ("section_N", CompressionPriority.MEDIUM),
    ("claim", CompressionPriority.MEDIUM),
    ("description", CompressionPriority.LOW),
    ("history", CompressionPriority.LOW),
)
"""What -> its priority. Errors, addresses and prices are facts: the ledger holds on to them wherever they stand."""

_KINDS = {
    ContentType.PRIOR_TURN: "history",
    ContentType.GENERIC: "description",
    ContentType.PAGE_DOC: "description",
    ContentType.RESEARCH_DOC: "claim",
    ContentType.TOOL_RESULT: "claim",
    ContentType.CONTEXT_DOC: "section_N",
}
_HISTORY = frozenset({"turn_summaries", "prior_turns", "conversation"})
_CRITICAL = frozenset({"raw_query", "tools", "command"})
"""Documents that a call can not do without: the person's words, what may be called, what is to be done."""


def priority_of(name: str, content_type: ContentType, preserve: Collection[str] = ()) -> CompressionPriority:
    """The priority of a whole document; one that its recipe's `compression.preserve` names is never compressed."""
    if name in preserve or name in _CRITICAL:
        return CompressionPriority.CRITICAL
    what = "history" if name in _HISTORY else _KINDS[content_type]
    return dict(PRIORITY_ORDER)[what]


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
    """`needed` is False where everything fits; `over` counts the tokens that no step can save."""

    needed: bool
    total_tokens: int = 0
    available: int = 0
    steps: tuple[CompressionStep, ...] = ()
    over: int = 0

    @property
    def overflow(self) -> int:
        return max(0, self.total_tokens - self.available)

    @property
    def compression_ratio(self) -> float:
        return self.available / self.total_tokens if self.total_tokens else 1.0


class BudgetChecker:
    """Plans compression: lowest priority first, of equals the largest, as little as is enough."""

    def __init__(self, count: TokenCountFunction) -> None:
        self._count = count

    def available_tokens(self, loaded: LoadedRecipe) -> int:
        """Tokens that the documents of a recipe's call may take, its prompt as it stands."""
        budget = loaded.recipe.token_budget
        prompt = sum(self._count(text) for _, text in loaded.prompts) + self._count(loaded.policy)
        return max(0, min(budget.input, budget.total - budget.output - budget.response_reserve - prompt))

    def plan(
        self,
        documents: Sequence[InputDocument],
        loaded: LoadedRecipe,
        *,
        room: int | None = None,
        floors: Mapping[str, int] | None = None,
    ) -> CompressionPlan:
        """The plan for `documents` in `room` tokens, the recipe's own room unless told.

        `floors`: document -> the tokens below which it cannot go.
        """
        available = self.available_tokens(loaded) if room is None else room
        total = sum(framed_tokens(document, self._count) for document in documents)
        if total <= available:
            return CompressionPlan(False, total, available)
        steps, over = self._steps(documents, total - available, loaded.recipe.compression.preserve, floors or {})
        return CompressionPlan(True, total, available, steps, over)

    def _steps(
        self, documents: Sequence[InputDocument], over: int, preserve: Collection[str], floors: Mapping[str, int]
    ) -> tuple[tuple[CompressionStep, ...], int]:
        steps: list[CompressionStep] = []
        for _, tokens, document, kind in self._in_order(documents, preserve):
            if over <= 0:
                break
            floor = floors.get(document.name, int(tokens * RATIO_FLOORS[0]))
            target = max(floor, _SMALLEST, tokens - over)
            if target < tokens:
                steps.append(CompressionStep(document.name, kind, tokens, target))
                over -= tokens - target
        return tuple(steps), max(0, over)

    def _in_order(
        self, documents: Sequence[InputDocument], preserve: Collection[str]
    ) -> list[tuple[CompressionPriority, int, InputDocument, ContentType]]:
        found: list[tuple[CompressionPriority, int, InputDocument, ContentType]] = []
        for document in documents:
            kind = detect_content_type(document.name, document.text)
            priority = priority_of(document.name, kind, preserve)
            if document.text and priority is not CompressionPriority.CRITICAL:
                found.append((priority, self._count(document.text), document, kind))
        return sorted(found, key=lambda entry: (entry[0], -entry[1]))
