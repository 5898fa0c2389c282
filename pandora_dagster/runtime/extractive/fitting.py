"""Answers within the tokens a call may write: fewer pieces, never a cut one."""

from collections.abc import Callable

from pydantic import BaseModel

from pandora_dagster.contracts.ports import CountsTokens

Draft = BaseModel | str


def written(draft: Draft) -> str:
    """An answer as the runtime sends it; a query analysis leaves `original_query` to the code."""
    return draft if isinstance(draft, str) else draft.model_dump_json(exclude={"original_query"})


def largest(make: Callable[[int], Draft], most: int, limit: int, counter: CountsTokens) -> Draft:
    """`make(n)` for the largest n from `most` down to 0 whose answer has at most `limit` tokens; `make(0)` where none has.

    A larger n must not make a shorter answer.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter.count(written(make(middle))) <= limit else (low, middle - 1)
    return make(low)
