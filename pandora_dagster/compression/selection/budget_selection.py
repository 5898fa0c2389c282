"""The units of a text that fit a number of tokens, and their text.

The coverage choice estimates what each unit takes; here the written text is counted. The longest prefix of the choice whose text fits is
kept; then single units that fit into the tokens left over are added.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pandora_dagster.compression.selection.coverage import Candidates, CoverageChoice
from pandora_dagster.compression.selection.omission_marks import Omission
from pandora_dagster.compression.selection.rendering import render
from pandora_dagster.compression.selection.term_weights import Term
from pandora_dagster.contracts.ports.measurement import TokenMeasure

_MAX_TRIES = 12
"""Units that are tried one by one for the tokens left over: each try renders and counts the whole text."""
_OVERSHOOT, _OVERSHOOT_TOKENS = 1.15, 8
"""How far a choice goes over the target, so that its estimates may be too high."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Units that are kept, and their text; both empty where not one fits."""

    text: str
    kept: frozenset[int]


class BudgetSelector:
    """Selects units of one text for any number of tokens. `earlier`: what earlier compressions left out before each unit."""

    def __init__(self, candidates: Candidates, counter: TokenMeasure, earlier: Mapping[int, Sequence[Omission]]) -> None:
        self._candidates = candidates
        self._count = counter.count
        self._earlier = earlier

    def select(self, target: int, *, mandatory: Mapping[Term, float] | None = None, mandatory_share: float = 0.0) -> Selection:
        """The longest prefix of the choice whose text has at most `target` tokens, then what else still fits."""
        choice = CoverageChoice(self._candidates, mandatory=mandatory)
        order = choice.fill(int(target * _OVERSHOOT) + _OVERSHOOT_TOKENS, mandatory_share=mandatory_share)
        kept = longest_prefix(order, target, lambda units: self._count(self._render(units)))
        selection = self._fill_up(self._candidates, Selection(self._render(kept) if kept else "", kept), target)
        return self._fill_up(replace(self._candidates, last=frozenset()), selection, target) if self._candidates.last else selection

    def _render(self, kept: frozenset[int]) -> str:
        return render(self._candidates.units, kept, self._earlier)

    def _fill_up(self, candidates: Candidates, selection: Selection, target: int) -> Selection:
        """The selection with further units in the tokens that its text leaves free, best first."""
        free_tokens = target - self._count(selection.text)
        tries = _MAX_TRIES
        while tries > 0 and free_tokens > 0:
            kept = selection.kept
            used_tokens = sum(candidates.costs[i] for i in kept)
            further = CoverageChoice(replace(candidates, always=kept)).fill(used_tokens + free_tokens)[bool(kept) :][:tries]
            tries -= len(further)
            for added in further:
                wider = selection.kept | frozenset(added)
                text = self._render(wider)
                if (tokens := self._count(text)) <= target:
                    selection, free_tokens = Selection(text, wider), target - tokens
            if selection.kept == kept:
                break
        return selection


def longest_prefix(order: Sequence[Iterable[int]], target: int, count: Callable[[frozenset[int]], int]) -> frozenset[int]:
    """The units of the longest prefix of a choice whose text has at most `target` tokens, as `count` counts them."""

    def units_of(length: int) -> frozenset[int]:
        return frozenset(chain.from_iterable(order[:length]))

    return units_of(bisect_right(range(1, len(order) + 1), target, key=lambda length: count(units_of(length))))
