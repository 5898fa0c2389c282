"""Marks are written, found again and summed; every other character keeps its place."""

import pytest

from pandora_dagster.compression.selection.omission_marks import omission_mark, without_marks
from pandora_dagster.documents.units.unit import UnitKind


@pytest.mark.parametrize(
    ("count", "kind", "is_first", "mark"),
    [
        (3, UnitKind.SENTENCE, True, "[3 left out]"),
        (12, UnitKind.ROW, True, "[12 rows left out]"),
        (1, UnitKind.LOG, True, "[1 line left out]"),
        (1, UnitKind.ROW, True, "[1 row left out]"),
        (40, UnitKind.ROW, False, "[…40]"),
    ],
)
def test_a_mark_is_read_as_it_was_written(count: int, kind: UnitKind, is_first: bool, mark: str) -> None:
    """The first one says it in words, later ones are short."""
    assert omission_mark(count, kind, is_first=is_first) == mark
    plain, found = without_marks(f"A.\n{mark}: B.")
    assert [o.count for o in found] == [count]
    assert plain.split() == ["A.", "B."] and len(plain) == len(f"A.\n{mark}: B.")


def test_places_that_earlier_versions_marked_are_marks_only_beside_a_count() -> None:
    """An ellipsis of the text itself stays where nothing was ever left out."""
    assert without_marks("... and so on.\nB.") == ("... and so on.\nB.", ())
    plain, found = without_marks("[5 left out]: A.\n... B.")
    assert plain.split() == ["A.", "B."]
    assert sum(o.count for o in found) == 5


def test_a_line_after_a_mark_begins_at_its_beginning() -> None:
    """Blanks in front would make it a part of the list item above."""
    plain, _ = without_marks("- a\n[…2]: - b")
    assert plain.endswith("\n- b")
