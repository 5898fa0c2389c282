"""Texts that nobody reads: every word is in a unit, nothing raises, and four times the text takes about four times as long."""

from time import process_time

import pytest

from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_reader import read_units

SHAPES = {
    "no sentence end": "word ",
    "one word": "a",
    "list items": "- item\n",
    "unclosed fence": "```\ncode line\n",
    "unclosed table": "| a | b |\n",
    "open brackets": "[",
    "open records": '[{"a": ',
    "records on one line": '{"a": 1, "b": "text"} ',
    "records with words between": '{"a": 1, "b": "text"} x: ',
    "quotation marks": "> ",
    "mail headers": "From: a\n",
    "mail threads": "From: a\nTo: b\n",
    "quotation headers": "On 3 May 2024, Ann Bee wrote:\n",
    "speakers": "Ann: hi\nBob: ho\n",
    "log lines": "2024-05-01 10:00:01 x\n",
    "broken quoting": 'a,"b,c\n',
    "printed columns": "a   b   c\n",
    "heads of files": "--- a\n",
    "underlines": "Title\n=====\n",
    "headings": "# h\n",
    "keys without values": "a:\n",
    "sections": "[a]\n",
    "right to left": "שלום עולם. ",
    "mixed scripts": "Привет мир 会議 hello. ",
    "control characters": "\x00\x01\x1b[0m a ",
    "sentences without blanks": "会議は三時。",
    "numbers with points": "1. ",
    "abbreviations": "z. B. ",
    "speech": "and i think it is ",
    "paragraphs": "a\n\n",
    "blank lines": "\n",
}


def _seconds(text: str) -> float:
    started = process_time()
    read_units(text)
    return process_time() - started


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_as_the_text_does(shape: str) -> None:
    """Measured at a size at which a quadratic reader takes seconds."""
    base = SHAPES[shape]
    small, large = (base * (size // len(base)) for size in (5_000, 20_000))
    best = min(_seconds(large) / max(_seconds(small), 0.02) for _ in range(2))
    assert best < 10


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
