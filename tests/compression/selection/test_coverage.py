"""What a unit brings along."""

import pytest

from pandora_dagster.compression.selection.coverage import closure
from pandora_dagster.documents.units.unit_reader import read_units


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
