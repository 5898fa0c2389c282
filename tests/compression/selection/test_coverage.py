"""What a unit brings along."""

import pytest

from pandora_dagster.compression.selection.coverage import Candidates, CoverageChoice, closure
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.tokens import TokenKind


@pytest.mark.parametrize(
    ("parent", "headings"),
    [
        ("## Upgrading", ["### Fixed"]),
        ("## 2.31.0", ["## 2.31.0", "### Fixed"]),
    ],
)
def test_a_unit_brings_its_nearest_heading_and_numbered_ones(parent: str, headings: list[str]) -> None:
    """The title of a document says little about one item; its version does."""
    units = read_units(f"# Changes\n\n{parent}\n\n### Fixed\n\n- A crash of the parser.\n")
    assert [units[n].text for n in sorted(closure(units, len(units) - 1))] == [*headings, "- A crash of the parser."]


def test_units_under_a_heading_that_is_kept_are_cheaper() -> None:
    """The second of two units that say as much is the one whose heading is there."""
    units = read_units(
        "## Prices of all the old lamps\n\nOak costs 4 €.\n\nElm costs 5 €.\n\n## Prices of all the new lamps\n\nAsh costs 6 €.\n"
    )
    terms = [{(TokenKind.WORD, u.text): 1.0} for u in units]
    order = CoverageChoice(Candidates(units, terms, [8] * len(units), [1.0] * len(units))).fill(40)
    assert [units[chosen[0]].text for chosen in order] == ["Oak costs 4 €.", "Elm costs 5 €.", "Ash costs 6 €."]


def test_a_mandatory_term_comes_before_a_better_unit() -> None:
    """Up to its share of the target."""
    units = read_units("Oak is old.\n\nElm is new.\n")
    terms = [{(TokenKind.WORD, "oak"): 9.0}, {(TokenKind.WORD, "elm"): 1.0}]
    choice = CoverageChoice(Candidates(units, terms, [4, 4], [1.0, 1.0]), mandatory={(TokenKind.WORD, "elm"): 1.0})
    assert choice.fill(4, mandatory_share=1.0) == [(1,)]
