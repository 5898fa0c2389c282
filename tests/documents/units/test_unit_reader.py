"""Units of texts: whole, in order, each at its place in the source."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units

MAIL = "Hello Ann,\n\nthe boiler was repaired on 3 May. It costs 90 € a month.\n\n> When will it be repaired?\n\nRegards\nBob"
TALK = "user: Where is my order 4417?\nassistant: It was shipped on Monday. It arrives on Thursday.\nuser: Thanks!"
WRAPPED = (
    "An archived turn has a manifest, and a missing object without\na tombstone is reported. The next sentence is one that goes on\n"
    "in another line.\n"
)
LISTED = "Gifts\n=====\n\nForbidden:\n\n- tickets to a park\n- cash of any amount\n\nAllowed:\n\n1. a book\n2. a pen, if it is\n   cheap\n"
TABLE = "| name | price |\n|---|---|\n| chair | 90 € |\n| desk | 300 € |\n"
CSV = 'part,stock,price\nbolt,4,0.20\nnut,"1,200",0.10\nscrew,12"",0.05\nwasher,7,0.01\n'
RECORDS = '{"flights": [{"id": "HAT001", "seats": 4}, {"id": "HAT002", "seats": 0}], "note": "Do not rebook. Ask first."}'
LOG = "2024-05-01 10:00:01 INFO started\n2024-05-01 10:00:02 ERROR disk full\n  at store.write\n2024-05-01 10:00:03 INFO stopped\n"
DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n import os\n-limit = 5\n+limit = 6\n"
FENCE = "Run this:\n\n```sh\nmake install\nmake test\n```\n\nThen wait.\n"
TEXTS = [
    MAIL,
    TALK,
    WRAPPED,
    LISTED,
    TABLE,
    CSV,
    RECORDS,
    LOG,
    DIFF,
    FENCE,
    "\n\n".join((MAIL, LOG, "So it broke.", DIFF, RECORDS, "Why?")),
]


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", text))


def placed(text: str, units: tuple[Unit, ...]) -> None:
    """The words of each unit stand at its place; those of the text in the units."""
    for unit in units:
        assert 0 <= unit.start <= unit.end <= len(text)
        there = words(text[unit.start : unit.end])
        if unit.kind is not UnitKind.HEADER:
            assert words(unit.text) <= there, (unit, text[unit.start : unit.end])
        assert all(0 <= needed < len(units) and needed != unit.order for needed in unit.needs)
    assert [unit.order for unit in units] == list(range(len(units)))
    covered = bytearray(len(text))
    for unit in units:
        covered[unit.start : unit.end] = b"\x01" * (unit.end - unit.start)
    for fence in re.finditer(r"^[ >]*(```|~~~).*$", text, re.MULTILINE):
        covered[fence.start() : fence.end()] = b"\x01" * len(fence[0])
    lost = "".join(sign if not covered[i] else " " for i, sign in enumerate(text))
    assert not words(lost), lost


@pytest.mark.parametrize("text", TEXTS)
def test_every_word_is_in_a_unit_that_stands_at_its_place(text: str) -> None:
    placed(text, read_units(text))


PIECES = [
    *"\n\n\n  -*>#|`~=:;,.{}[]\"'+@1aAé会。\t\r\x00",
    *("word ", "user: ", "- ", "```\n", "\n> ", "2024-05-01 10:00:01 x\n", '{"a": 1}', '{"key": "value one"}', "Ann: ", "a,b,c\n", "===\n"),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_text_raises_or_loses_a_word(text: str) -> None:
    units = read_units(text)
    placed(text, units)


def test_hard_wrapped_lines_are_sentences() -> None:
    assert [u.text for u in read_units(WRAPPED)] == [
        "An archived turn has a manifest, and a missing object without a tombstone is reported.",
        "The next sentence is one that goes on in another line.",
    ]


def test_items_need_the_line_that_introduces_them_and_their_heading() -> None:
    units = read_units(LISTED)
    by_text = {u.text: u for u in units}
    cash, book = by_text["- cash of any amount"], by_text["1. a book"]
    assert [units[n].text for n in cash.needs] == ["Gifts", "Forbidden:"]
    assert [units[n].text for n in book.needs] == ["Gifts", "Allowed:"]


def test_a_sentence_belongs_to_its_speaker() -> None:
    units = read_units(TALK)
    arrives = next(u for u in units if "Thursday" in u.text)
    assert (arrives.speaker, arrives.message, [units[n].kind for n in arrives.needs]) == ("assistant", 2, [UnitKind.SPEAKER])


def test_records_are_rows_under_one_header() -> None:
    units = read_units('[{"id": "HAT001", "seats": 4}, {"id": "HAT002", "seats": 0}]')
    assert [u.text for u in units] == ["# id | seats", "HAT001 | 4", "HAT002 | 0"]
    assert [u.needs for u in units] == [(), (0,), (0,)]


def test_pasted_logs_and_diffs_are_no_sentences() -> None:
    kinds = Counter(u.kind for u in read_units(TEXTS[-1]))
    assert kinds[UnitKind.LOG] == 3 and kinds[UnitKind.ERROR] == 1 and kinds[UnitKind.HUNK] == 1
