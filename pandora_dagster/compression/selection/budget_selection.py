"""The best text of a reading that a budget holds."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pandora_dagster.compression.selection.coverage import Candidates, CoverageChoice
from pandora_dagster.compression.selection.omission_marks import Omission
from pandora_dagster.compression.selection.rendering import render
from pandora_dagster.compression.selection.term_weights import Term
from pandora_dagster.contracts.ports.measurement import TokenMeasure

_TRIES = 12
"""Units that are tried one by one for the tokens that a choice leaves over."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Units that are kept, and their text."""

    text: str
    kept: frozenset[int]


def select(
    candidates: Candidates,
    target: int,
    counter: TokenMeasure,
    *,
    forced: dict[Term, float] | None = None,
    forced_share: float = 0.0,
    earlier: dict[int, list[Omission]] | None = None,
) -> Selection:
    """The longest prefix of the choice whose text fits, then what else still fits. Empty where not one unit does."""
    order = CoverageChoice(candidates, forced=forced).fill(int(target * 1.15) + 8, forced_share=forced_share)
    write = _Writer(candidates, counter, earlier or {})
    return write.filled(longest_prefix(order, target, lambda kept: counter.count(write.text(kept))), target)


def longest_prefix(order: Sequence[Iterable[int]], target: int, tokens: Callable[[frozenset[int]], int]) -> frozenset[int]:
    """The units of the longest prefix of a choice that takes at most `target` tokens."""

    def units(number: int) -> frozenset[int]:
        return frozenset(chain.from_iterable(order[:number]))

    return units(bisect_right(range(1, len(order) + 1), target, key=lambda number: tokens(units(number))))


class _Writer:
    def __init__(self, candidates: Candidates, counter: TokenMeasure, earlier: dict[int, list[Omission]]) -> None:
        self._given = candidates
        self._count = counter.count
        self._earlier = earlier

    def text(self, kept: frozenset[int]) -> str:
        return render(self._given.units, kept, self._earlier)

    def filled(self, kept: frozenset[int], target: int) -> Selection:
        """With what still fits, best first: a choice estimates what it takes, here the text itself is counted."""
        text = self.text(kept) if kept else ""
        left = target - self._count(text)
        tries = _TRIES
        while tries > 0 and left > 0:
            used = sum(self._given.costs[k] for k in kept)
            found = CoverageChoice(replace(self._given, always=kept)).fill(used + left)
            added = 0
            for needs in found[bool(kept) :][:tries]:
                tries -= 1
                more = kept | frozenset(needs)
                made = self.text(more)
                if (tokens := self._count(made)) <= target:
                    kept, text, left, added = more, made, target - tokens, added + 1
            if not added:
                break
        return Selection(text, kept)
