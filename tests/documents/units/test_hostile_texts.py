"""Texts that nobody reads: every word is in a unit, and nothing raises."""

import json

import pytest

from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_reader import read_units
from tests.fakes.hostile_texts import SHAPES


@pytest.mark.parametrize("shape", SHAPES)
def test_every_sign_of_substance_is_in_a_unit(shape: str) -> None:
    """Words are counted by their letters, as long ones are divided."""
    text = SHAPES[shape] * 40
    units = read_units(text)
    covered = bytearray(len(text))
    for unit in units:
        covered[unit.start : unit.end] = b"\x01" * (unit.end - unit.start)
    lost = {sign for place, sign in enumerate(text) if not covered[place] and sign.isalnum()}
    assert not lost


def test_a_million_characters_in_one_line_are_divided_at_blanks() -> None:
    """The stated exception: what has no end is divided, so that it can be shown."""
    units = read_units("word " * 200_000)
    assert max(len(unit.text) for unit in units) <= 2_000
    assert {word for unit in units[:50] for word in unit.text.split()} == {"word"}


def test_a_bad_line_does_not_spoil_the_records_around_it() -> None:
    """JSON lines are rows of one table; the broken one is kept as it stands."""
    units = read_units('{"id": "A1", "n": 1}\n{"id": "A2", "n": }\n{"id": "A3", "n": 3}\n')
    assert [u.text for u in units if u.kind is UnitKind.ROW] == ["A1 | 1", "A3 | 3"]
    assert any('"A2"' in u.text for u in units)


def test_a_truncated_record_gives_what_is_whole() -> None:
    """A tool's result that was cut off."""
    units = read_units('[{"id": "A1", "n": 1},\n {"id": "A2", "n": 2},\n {"id": "A3", "n"')
    assert [u.text for u in units if u.kind is UnitKind.ROW] == ["A1 | 1", "A2 | 2"]
    assert any("A3" in u.text for u in units)


@pytest.mark.parametrize("given", ["12", '"abc"', "null", "x", "}"])
def test_arguments_that_are_no_record_stand_as_they_are(given: str) -> None:
    """A call whose arguments are one value in a string."""
    units = read_units("user: hi\nassistant: " + json.dumps([{"name": "f", "arguments": given}]))
    assert [u.text for u in units if u.kind is UnitKind.CALL] == [f"f(arguments={given})"]


def test_a_table_with_broken_quoting_keeps_its_rows() -> None:
    """Each line is a row under the header."""
    units = read_units('part,stock,price\nbolt,4,0.20\nnut,7,0.10\nscrew "12,3,0.05\nwasher,7,0.01\n')
    assert [u.kind for u in units] == [UnitKind.HEADER, *[UnitKind.ROW] * 4]
    assert all(u.needs == (0,) for u in units[1:])


def test_a_diff_without_context_keeps_its_signs() -> None:
    """The lines that name the file are the header of its hunks."""
    units = read_units("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-limit = 5\n+limit = 6\n")
    assert [u.kind for u in units] == [UnitKind.HEADER, UnitKind.HUNK]
    assert units[1].text.endswith("-limit = 5\n+limit = 6") and units[1].needs == (0,)
