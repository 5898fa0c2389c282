"""Whether one share is lower than another by more than chance: Fisher's exact test, one-sided. Knows counts; knows nothing of prompts."""

from math import exp, lgamma


def fisher_lower_tail(before_good: int, before: int, after_good: int, after: int) -> float:
    """How likely `after` calls of the same quality have at most `after_good` good ones (the hypergeometric lower tail), 0 to 1.

    Exact, however small or uneven the samples are, which is what the first calls of a new version are. 1.0 where a side is empty.
    """
    good, every = before_good + after_good, before + after
    if not before or not after:
        return 1.0
    fewest = max(0, good - before)
    return min(1.0, sum(exp(_log_probability(k, after, good, every)) for k in range(fewest, after_good + 1)))


def _log_probability(k: int, drawn: int, good: int, every: int) -> float:
    """The logarithm of the chance that `drawn` out of `every` hold exactly `k` of the `good` ones."""
    return _log_binomial(good, k) + _log_binomial(every - good, drawn - k) - _log_binomial(every, drawn)


def _log_binomial(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
