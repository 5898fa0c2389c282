"""The time of the reader of documents grows as the text does, whatever stands in it."""

from time import process_time

import pytest

from pandora_dagster.documents.units.unit_reader import read_units
from tests.fakes.hostile_texts import SHAPES

_RATIO, _NOTHING = 6.0, 0.05


def _seconds(text: str) -> float:
    started = process_time()
    read_units(text)
    return process_time() - started


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_text_takes_less_than_six_times_as_long(shape: str) -> None:
    """Twice the text is measured on the way: a step from linear to quadratic shows in either half."""
    base = SHAPES[shape]
    for _ in range(3):
        small, middle, large = (_seconds(base * (size // len(base))) for size in (15_000, 30_000, 60_000))
        if large < _RATIO * max(small, _NOTHING) and large < _RATIO / 2 * max(middle, _NOTHING):
            return
    pytest.fail(f"{small:.2f} s, {middle:.2f} s and {large:.2f} s for n, 2n and 4n")
