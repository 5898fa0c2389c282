"""Which units of an original a shortened text was made from."""

import pytest

from pandora_dagster.compression.verification.alignment import align, is_mark
from pandora_dagster.compression.verification.unit_index import UnitIndex

ORIGINAL = "The ferry to Lund costs 9 €. The bus to Oslo costs 30 €.\n\n- Bring a tent.\n- Bring a lamp.\n"


def aligned(shortened: str) -> list[tuple[list[str], bool]]:
    original = UnitIndex(ORIGINAL, "en")
    found = align(original, UnitIndex(shortened, "en"))
    return [([original.keys[n] for n in one.sources], one.is_verbatim) for one in found]


@pytest.mark.parametrize(
    ("shortened", "sources", "is_verbatim"),
    [
        ("The bus to Oslo costs 30 €.", ["the bus to oslo costs 30 €"], True),
        ("* Bring a lamp.", ["bring a lamp"], True),
        ("To Oslo it is 30 € by bus.", ["the bus to oslo costs 30 €"], False),
        ("Cats sleep all day.", [], False),
    ],
)
def test_sources(shortened: str, sources: list[str], is_verbatim: bool) -> None:
    """Verbatim first, else by the rarest words; a statement from nowhere has none."""
    assert aligned(shortened) == [(sources, is_verbatim)]


def test_a_statement_of_two_sources() -> None:
    """Both are named, the nearer one first."""
    ((sources, is_verbatim),) = aligned("The ferry to Lund costs 9 € and the bus to Oslo 30 €.")
    assert len(sources) == 2 and not is_verbatim


@pytest.mark.parametrize(
    ("line", "expected"), [("[3 sentences left out]", True), ("(12 more rows left out)", True), ("3 seats left", False)]
)
def test_marks(line: str, expected: bool) -> None:
    """A line that counts what was left out."""
    assert is_mark(line) is expected
