"""Rows of the pages: folded, filtered, sorted, in numbered pages."""

from datetime import date

import pytest

from pandora_dagster.api.pages.page_tables import DayTable, PageFilter, Tables
from pandora_dagster.archive.lineage_view import TreeLine
from pandora_dagster.archive.text_comparison import ComparedRow, Excerpt, RowState
from pandora_dagster.contracts.archive_records import ArchivedDay, ArchivedDayRow, ArchivedDocument
from pandora_dagster.contracts.ids import TurnKey, UserId

SAME, LEFT_OUT, REWORDED = RowState.SAME, RowState.LEFT_OUT, RowState.REWORDED


def rows(*states: RowState) -> list[ComparedRow]:
    return [ComparedRow(state, Excerpt(f"unit {n}.", (), n)) for n, state in enumerate(states, 1)]


def test_long_runs_are_folded() -> None:
    """With their count; short ones stay among the others, so that a reader sees them."""
    groups = list(Tables(PageFilter()).compared(rows(SAME, *[LEFT_OUT] * 24, REWORDED, *[SAME] * 3, LEFT_OUT)))
    assert [(g.summary, len(g.rows), g.is_open) for g in groups] == [
        ("Rows 1 to 1", 1, True), ("24 units left out", 24, False), ("Rows 26 to 30", 5, True),
    ]  # fmt: skip


def test_what_is_beyond_the_limit_is_named() -> None:
    """A page of 5,000 rows says how many more there are, and that a search does not see them."""
    *_, last = Tables(PageFilter()).compared(rows(*[REWORDED] * 5_003))
    assert last.summary == "3 more rows are neither shown nor searched: a page has at most 5000" and not last.rows
    *_, last = Tables(PageFilter(text="unit 5002")).compared(rows(*[REWORDED] * 5_003))
    assert last.summary.startswith("3 more rows")


def test_a_page_opens_200_rows_at_most() -> None:
    """However many there are."""
    tables = Tables(PageFilter())
    groups = [*tables.compared(rows(*[SAME, LEFT_OUT] * 400)), *tables.compared(rows(*[REWORDED] * 300))]
    assert sum(len(g.rows) for g in groups if g.is_open) == 200 and sum(len(g.rows) for g in groups) == 1_100
    assert max(len(g.rows) for g in groups) == 100


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (PageFilter("left_out"), 2), (PageFilter("", "UNIT 3"), 1), (PageFilter("left_out", "unit 3"), 0), (PageFilter("mutated"), 0),
        (PageFilter(), 3),
    ],
)  # fmt: skip
def test_rows_are_filtered(chosen: PageFilter, found: int) -> None:
    """By verdict and by text, without a look at upper and lower case."""
    assert sum(len(g.rows) for g in Tables(chosen).compared(rows(LEFT_OUT, LEFT_OUT, SAME))) == found


def test_a_tree_shows_what_is_found_and_what_is_above_it() -> None:
    """All of it where nothing is found."""
    lines = [
        TreeLine("a:digest", "", 0),
        TreeLine("a:session/x", "", 1),
        TreeLine("a:turn_000001/summary", "", 2),
        TreeLine("a:session/y", "", 1),
    ]
    shown = lambda text: [line.document for line, is_shown, _ in Tables(PageFilter("", text)).tree(lines) if is_shown]  # noqa: E731
    assert shown("TURN_000001") == ["a:digest", "a:session/x", "a:turn_000001/summary"]
    assert len(shown("")) == len(shown("nothing")) == 4


def day(number: int) -> ArchivedDay:
    documents = [
        ArchivedDocument(
            name="context.md", original="context.md", sha_before="a", sha_after="b", tokens_before=n * 7 % 101, tokens_after=1, target=1,
            content_type="x", counts={"total": 2, "kept": 1, "missing" if n % 2 else "equal": 1},
        )
        for n in range(1, number + 1)
    ]  # fmt: skip
    archived = tuple(ArchivedDayRow(TurnKey(UserId("ann"), n), document, "cold/x") for n, document in enumerate(documents, 1))
    return ArchivedDay(day=date(2026, 1, 4), rows=archived, documents=number)


def test_a_day_is_sorted_over_all_its_pages() -> None:
    """Both ways; the pages together have each document once."""
    full = day(250)
    parts = [DayTable("before", True, page).part(DayTable("before", True).rows(full, PageFilter())) for page in (1, 2, 3)]
    tokens = [row.document.tokens_before for part in parts for row in part]
    assert [len(part) for part in parts] == [100, 100, 50] and tokens == sorted(tokens, reverse=True)
    assert DayTable(page=9).part(full.rows) == full.rows[200:]
    missing = DayTable().rows(full, PageFilter("missing"))
    assert len(missing) == 125 == DayTable().counts(full)["missing"] and len(DayTable().rows(full, PageFilter("", "turn_000250"))) == 1


@pytest.mark.parametrize("parameters", [{"sort": "__class__", "page": "-1"}, {"page": "9" * 5_000}, {"page": "x", "order": "<b>"}, {}])
def test_a_parameter_that_is_none_is_left_out(parameters: dict[str, str]) -> None:
    """The table is the first page, by document."""
    assert DayTable.of(parameters) == DayTable()
