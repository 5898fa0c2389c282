"""Which stretches of a sequence to keep: contiguous spans of best score within a budget, by dynamic programming.

Knows scores and costs; knows nothing of texts. Linear in the number of units for a fixed number of bisection steps.
"""

from collections.abc import Mapping, Sequence

_STEPS = 18


def smoothed(hits: Mapping[int, float], decay: Sequence[float], length: int) -> list[float]:
    """Two-sided exponential smoothing of `hits`; `decay[i]` is what is left from unit i to unit i + 1."""
    values = [0.0] * length
    level = 0.0
    for i in range(length):
        if i:
            level *= decay[i - 1]
        level += hits.get(i, 0.0)
        values[i] = level
    level = 0.0
    for i in range(length - 1, -1, -1):
        if i < length - 1:
            level *= decay[i]
        values[i] += level
        level += hits.get(i, 0.0)
    return values


def best_spans(scores: Sequence[float], costs: Sequence[int], budget: float, start_penalty: float) -> set[int]:
    """Units of the best spans that cost at most `budget`: the price of a token is bisected, gaps are filled by score."""
    most = max(scores, default=0.0)
    level = [s / most for s in scores] if most > 0 else [1.0] * len(scores)
    low, high = 0.0, 1.0
    best: list[int] = []
    spent = 0
    for _ in range(_STEPS):
        price = (low + high) / 2
        chosen = _viterbi([(s - price) * c for s, c in zip(level, costs, strict=True)], start_penalty)
        cost = sum(costs[i] for i in chosen)
        if cost > budget:
            low = price
        else:
            high = price
            if cost > spent:
                best, spent = chosen, cost
    kept = set(best)
    for i in sorted((i for i in range(len(level)) if i not in kept), key=lambda i: -level[i]):
        if spent + costs[i] <= budget:
            kept.add(i)
            spent += costs[i]
    return kept


def _viterbi(gains: Sequence[float], start_penalty: float) -> list[int]:
    """The units inside the spans whose gains sum highest; each span costs `start_penalty`."""
    length = len(gains)
    stays = bytearray(length)
    was_inside = bytearray(length)
    inside, outside = float("-inf"), 0.0
    for i, gain in enumerate(gains):
        was_inside[i] = inside > outside
        longer, begun = inside + gain, outside - start_penalty + gain
        outside = max(outside, inside)
        stays[i] = longer >= begun
        inside = max(longer, begun)
    state = inside > outside
    chosen: list[int] = []
    for i in range(length - 1, -1, -1):
        if state:
            chosen.append(i)
            state = bool(stays[i])
        else:
            state = bool(was_inside[i])
    return chosen
