"""Ports that measure: time, tokens, metrics."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

TextScorer = Callable[[str, Sequence[str]], Sequence[float]]
"""(query, texts) -> one score for each text, between 0 and 1; a higher score means a closer match."""


class Clock(Protocol):
    """Time as an argument: an aware UTC datetime."""

    def __call__(self) -> datetime: ...


class TokenMeasure(Protocol):
    """Counts the tokens of texts (specification 000, section 21.1)."""

    def count(self, text: str) -> int: ...


class Metrics(Protocol):
    """Figures of the running system under Prometheus' names. Never raises: a lost figure fails no call."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter, whose name ends in `_total`, `_sum` or `_count`."""
        ...

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge to `value`."""
        ...
