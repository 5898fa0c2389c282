"""Answers within the tokens a call may write: fewer pieces, never a cut one."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel

from pandora_dagster.contracts.ports.measurement import TokenMeasure

Draft = BaseModel | str


def render_draft(draft: Draft) -> str:
    """An answer as the runtime sends it; a query analysis leaves `original_query` to the code."""
    return draft if isinstance(draft, str) else draft.model_dump_json(exclude={"original_query"})


def fit_draft(make: Callable[[int], Draft], most: int, limit: int, counter: TokenMeasure) -> Draft:
    """`make(n)` for the largest n from `most` down to 0 whose answer has at most `limit` tokens; `make(0)` where none has.

    A larger n must not make a shorter answer.
    """
    return make(_largest_fitting(make, most, limit, counter))


def fit_pieces(make: Callable[[frozenset[int]], Draft], ends: Sequence[bool], limit: int, counter: TokenMeasure) -> Draft:
    """`make` of the pieces that its answer of at most `limit` tokens has room for: whole ones, the first before the last.

    A piece that has no room is passed over; where `ends` holds for it, so are those after it for which it holds too.
    """
    first = _largest_fitting(lambda n: make(frozenset(range(n))), len(ends), limit, counter)
    taken, ended = frozenset(range(first)), False
    for place in range(first, len(ends)):
        if ends[place] and ended:
            continue
        if counter.count(render_draft(make(taken | {place}))) <= limit:
            taken |= {place}
        else:
            ended = ended or ends[place]
    return make(taken)


def _largest_fitting(make: Callable[[int], Draft], most: int, limit: int, counter: TokenMeasure) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter.count(render_draft(make(middle))) <= limit else (low, middle - 1)
    return low
