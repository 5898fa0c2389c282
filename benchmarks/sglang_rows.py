"""A line of the table, and medians of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, in words, and what was wanted."""

    what: str
    measured: str
    wanted: str
    met: bool

    @property
    def line(self) -> str:
        return f"| {self.what} | {self.measured} | {self.wanted} | {'met' if self.met else 'NOT MET'} |"


def spread(ratios: Sequence[float]) -> str:
    """The median, and between what the pairs lie."""
    return f"{median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
