"""Whether rewritten statements mean what their source says: asked of a model by a recipe that the caller names (DECISIONS 36).

Only statements that are not verbatim are asked for, a bounded number of them. What no model judged stays listed as unchecked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pandora_dagster.compression.verification.facts import Statement
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument
from pandora_dagster.execution.fit.compression_calls import CompressionCalls

MAX_STATEMENTS = 8
"""Statements of one call; one rewritten piece is one call, and its further statements stay unchecked."""
MAX_CALLS_PER_TEXT = 12


@dataclass(frozen=True, slots=True)
class MeaningVerdict:
    """What a model found about one statement; `unclear` also where none judged it."""

    statement: Statement
    verdict: Literal["same", "changed", "unclear"] = "unclear"
    reason: str = ""


class MeaningCheck:
    """Asks for verdicts, at most `MAX_CALLS_PER_TEXT` times."""

    def __init__(self, calls: CompressionCalls, recipe: str, site: CallSite) -> None:
        self._calls, self._recipe, self._site, self._left = calls, recipe, site, MAX_CALLS_PER_TEXT

    async def verdicts(self, statements: Sequence[Statement]) -> tuple[MeaningVerdict, ...]:
        """A verdict for each statement, in order. Raises CallFaultError where the model is down."""
        asked = statements[:MAX_STATEMENTS] if self._left else ()
        answers: Mapping[int, Mapping[str, Any]] = {}
        if asked:
            self._left -= 1
            documents = (InputDocument("pairs", statement_pairs(asked)),)
            result = await self._calls.ask(CallRequest(recipe=self._recipe, query="", site=self._site, documents=documents))
            answers = {entry["number"]: entry for entry in result.parsed["verdicts"]} if result else {}
        return tuple(_verdict(one, answers.get(number)) for number, one in enumerate(statements, start=1))


def statement_pairs(statements: Sequence[Statement]) -> str:
    """The document `pairs`: each statement under its source, numbered; further lines are indented, so that no text looks like a pair."""
    return "\n".join(
        f"[{number}] source: {_indented(' '.join(unit.text for unit in one.sources))}\n    statement: {_indented(one.text)}"
        for number, one in enumerate(statements, start=1)
    )


def _verdict(statement: Statement, answer: Mapping[str, Any] | None) -> MeaningVerdict:
    return MeaningVerdict(statement, answer["verdict"], answer["reason"]) if answer else MeaningVerdict(statement)


def _indented(text: str) -> str:
    return "\n      ".join(text.strip().splitlines())
