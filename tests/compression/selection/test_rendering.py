"""What is kept, in order and under what it needs; the counts are right to the number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.compression.selection.rendering import render
from pandora_dagster.documents.units.unit_reader import read_units

TEXTS = {
    "prose": "The gate opens at 8. It closes at 9.\n\nDogs are not allowed. Cats are.\n\nThe end is near.",
    "list": "Bring:\n\n- a tent\n- a lamp\n- two ropes\n- water\n\nLeave at noon.",
    "table": "| lamp | price |\n|---|---|\n| A1 | 4 € |\n| B2 | 5 € |\n| C3 | 6 € |\n\nPrices are net.",
    "talk": "Ann: The boat leaves at noon. Bring a coat.\nBob: I will be late.\nAnn: We wait until 7:10.\nBob: Thanks.",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
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
