"""Tables as compression packs them."""

import pytest

from pandora_dagster.runtime.extractive.spans.structured_records import packed_table

_TABLE = (
    "# id|flights[from,to,price]|owner(first,last)|note ; user=ann\n"
    "A1|JFK ATL 74; ATL LAX 90|Ann Lee|paid in full\nB2|JFK SEA 12|Bo|\n\nend"
)


def test_rows_become_records_with_what_the_header_shares() -> None:
    """Lists and groups are named where their words can be told apart, else kept as they stand."""
    found = packed_table(_TABLE, 0)
    assert found is not None
    first, second = found[0]
    assert first == {
        "id": "A1",
        "flights": [{"from": "JFK", "to": "ATL", "price": "74"}, {"from": "ATL", "to": "LAX", "price": "90"}],
        "owner": {"first": "Ann", "last": "Lee"},
        "note": "paid in full",
        "user": "ann",
    }
    assert second["owner"] == "Bo" and "note" not in second
    assert _TABLE[found[1] :] == "\n\nend"


@pytest.mark.parametrize("text", ["# A heading\ntext", "a|b\nc|d", "# a|b", "## a|b\nc|d", "# a|b\n\nc|d", "# a|b\nc|d|e"])
def test_what_is_no_packed_table_is_left_alone(text: str) -> None:
    """Headings, plain rows, a header without rows, rows that do not fit."""
    assert packed_table(text, 0) is None


def test_the_list_and_the_marks_of_what_is_left_out_are_read() -> None:
    """The record that a list belongs to is shared by its rows; a cut row has fewer cells, and the count is no row."""
    text = "# orders of C-77: id|total|status ; kind=new\nA1|5|paid\nA2|…\n(58 more rows left out)\nend"
    found = packed_table(text, 0)
    assert found is not None
    shared = {"orders of": "C-77", "kind": "new"}
    assert found[0] == [{"id": "A1", "total": "5", "status": "paid"} | shared, {"id": "A2"} | shared]
    assert text[found[1] :] == "\nend"
