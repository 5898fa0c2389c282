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
    """`needed` is False where everything fits; `over` counts the tokens that no step can save."""

    needed: bool
    total_tokens: int = 0
    available: int = 0
    steps: tuple[CompressionStep, ...] = ()
    over: int = 0


class BudgetChecker:
    """Plans compression: lowest priority first, of equals the largest, as little as is enough."""

    def __init__(self, count: TokenCountFunction) -> None:
        self._count = count

    def plan(
        self, documents: Sequence[InputDocument], loaded: LoadedRecipe, *, room: int, floors: Mapping[str, int] | None = None
    ) -> CompressionPlan:
        """The plan for `documents` in `room` tokens. `floors`: document -> the tokens below which it cannot go."""
        total = sum(framed_tokens(document, self._count) for document in documents)
        if total <= room:
            return CompressionPlan(False, total, room)
        steps, over = self._steps(documents, total - room, loaded.recipe.compression.preserve, floors or {})
        return CompressionPlan(True, total, room, steps, over)

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
