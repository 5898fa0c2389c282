"""What is kept, in order and under what it needs; the counts are right to the number."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.compression.selection.rendering import render
from pandora_dagster.documents.units.unit_reader import read_units

_MARK = re.compile(r"^\[[^\]]*\](?:: )?")
TEXTS = {
    "prose": "The gate opens at 8. It closes at 9.\n\nDogs are not allowed. Cats are.\n\nThe end is near.",
    "list": "Bring:\n\n- a tent\n- a lamp\n- two ropes\n- water\n\nLeave at noon.",
    "table": "| lamp | price |\n|---|---|\n| A1 | 4 € |\n| B2 | 5 € |\n| C3 | 6 € |\n\nPrices are net.",
    "talk": "Ann: The boat leaves at noon. Bring a coat.\nBob: I will be late.\nAnn: We wait until 7:10.\nBob: Thanks.",
}
CODE = """Run the two commands in this order.

```console
$ pandora import talks.jsonl
7 turns are due; 0 are not
```

The first one reads. Then wait a minute.

~~~~
plain

more of it
~~~~"""


@pytest.mark.parametrize("text", [*TEXTS.values(), CODE], ids=[*TEXTS.keys(), "code"])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_kept_and_counted_units_are_all_units(text: str, data: st.DataObject) -> None:
    """Any choice: the kept units are there, the marks count the others, and nothing else is."""
    units = read_units(text)
    own = [u.order for u in units if not u.is_context]
    chosen = data.draw(st.sets(st.sampled_from(own), min_size=1))
    kept = chosen | {n for i in chosen for n in units[i].needs}
    shown = render(units, kept)
    _, omissions = without_marks(shown)
    assert sum(o.count for o in omissions) == len(own) - len(kept & set(own))
    assert all(u.text in shown for u in units if u.order in kept)
    assert not any(u.text in shown for u in units if u.order not in kept and len(u.text) > 12)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_line_is_a_whole_unit_behind_its_speaker_or_mark(text: str, data: st.DataObject) -> None:
    """A mark is alone on its line only behind a table of Markdown, which it would break."""
    units = read_units(text)
    chosen = data.draw(st.sets(st.sampled_from([u.order for u in units if not u.is_context]), min_size=1))
    kept = chosen | {n for i in chosen for n in units[i].needs}
    known = {u.text for u in units if u.order in kept} | {"|---|---|"}
    known |= {f"{speaker}: {u.text}" for u in units for speaker in [u.speaker] if speaker and u.order in kept}
    for line in filter(None, render(units, kept).split("\n")):
        bare = _MARK.sub("", line)
        assert bare in known or (not bare and units[max(kept)].text.startswith("|"))


def test_code_stays_in_its_fence() -> None:
    """With the language that the fence names; a mark is on a line of its own before it; read again, the code is the same unit."""
    units = read_units(CODE)
    kept = {u.order for u in units if u.fence}
    shown = render(units, kept)
    assert shown.split("\n") == [
        *("```console", "$ pandora import talks.jsonl", "7 turns are due; 0 are not", "```"),
        *("", "[3 left out]", "~~~~", "plain", "", "more of it", "~~~~"),
    ]
    again = read_units(without_marks(shown)[0])
    assert [(u.kind, u.text, u.fence) for u in again] == [(u.kind, u.text, u.fence) for u in units if u.fence]


def test_an_empty_line_is_at_each_place_where_something_is_left_out() -> None:
    """The count before the last one counts both places; none is where the next unit follows, and none at the beginning."""
    units = read_units("Dogs may swim. Cats may not.\n\nRain is near. Boats go home. Buses wait. Snow is far. Trams stop.")
    kept = [u.text in ("Cats may not.", "Rain is near.", "Buses wait.", "Trams stop.") for u in units]
    shown = render(units, {u.order for u, is_kept in zip(units, kept, strict=True) if is_kept})
    assert shown == "Cats may not.\nRain is near.\n\nBuses wait.\n\n[3 left out]: Trams stop."


def test_counts_are_a_thousand_characters_apart() -> None:
    """A long text says now and then how much is left out, and at its last gap."""
    units = read_units("\n\n".join(f"Sentence number {n} is here to be kept or to be left out." for n in range(80)))
    shown = render(units, {u.order for u in units if u.order % 2})
    counts = [match.start() for match in re.finditer(r"\[", shown)]
    assert len(counts) == 3 and all(1_000 < b - a < 1_200 for a, b in zip([0, *counts], counts[:-1], strict=False))
    assert sum(o.count for o in without_marks(shown)[1]) == 40


def test_a_count_at_the_end_leads_the_last_paragraph_or_list() -> None:
    """What is left out behind the last kept unit has no unit that it could lead."""
    units = read_units(TEXTS["list"])
    kept = {u.order for u in units if u.text in ("Bring:", "- a tent", "- a lamp")}
    assert render(units, kept) == "Bring:\n[3 left out]: - a tent\n- a lamp"


def test_rows_stay_a_table_and_are_counted_behind_it() -> None:
    """A mark between the rows would end the table."""
    units = read_units(TEXTS["table"])
    rows = [u for u in units if u.text.startswith(("| A1", "| C3"))]
    shown = render(units, {r.order for r in rows} | {n for r in rows for n in r.needs})
    assert shown.split("\n") == ["| lamp | price |", "|---|---|", "| A1 | 4 € |", "| C3 | 6 € |", "[2 left out]"]


def test_a_speaker_is_before_his_first_unit() -> None:
    """The mark of what is left out before is in front of the name."""
    units = read_units(TEXTS["talk"])
    last = next(u for u in units if u.text.startswith("We wait"))
    assert render(units, {last.order, *last.needs}) == "[4 left out]: Ann: We wait until 7:10."


def test_an_escaped_bar_in_a_header_begins_no_cell() -> None:
    header, row = read_units("| a | c |\n|---|---|\n| 1 | 2 |")
    lines = render([replace(header, text="| a \\| b | c |"), row], {header.order, row.order}).splitlines()
    assert lines[:2] == ["| a \\| b | c |", "|---|---|"]
