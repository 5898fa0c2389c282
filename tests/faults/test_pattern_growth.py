"""The long form of `tests/architecture/test_patterns.py`: texts four times as long, with every end."""

from tests.architecture.patterns import package_patterns, slow_text
from tests.architecture.sources import package_sources


def test_every_pattern_takes_linear_time_for_long_texts() -> None:
    patterns = package_patterns(package_sources())
    assert {found.where: text for found in patterns if (text := slow_text(found, 16_000, at_most=0.01))} == {}
