"""What every lineage index and its file must do, asked of the DuckDB adapter and of the fake in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.contracts.lineage import LineageEdge, Relation
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.lineage.lineage_index import LINEAGE_SCHEMA, DuckLineageIndex
from tests.fakes.lineage import MemoryIndexFile, MemoryLineageIndex

Index = MemoryLineageIndex | DuckLineageIndex


def edge(child: str, parent: str, *, user: str = "ann", **more: Any) -> LineageEdge:
    plain = {"user_id": user, "parent": f"{user}:{parent}", "child": f"{user}:{child}", "relation": Relation.CITED}
    return LineageEdge.model_validate({**plain, "parent_sha": "a" * 64, "child_sha": "b" * 64, "at": "2026-01-04T00:00:00Z", **more})


ANSWER = edge("turn_000002/context.md", "turn_000001/context.md")
SUMMARY = edge("turn_000002/summary", "turn_000002/context.md")
NARRATIVE = edge("session/s1", "turn_000002/summary", relation=Relation.SUMMARIZED)
THEIRS = edge("turn_000002/context.md", "turn_000001/context.md", user="ben")


@pytest.fixture(params=["memory", "duckdb"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    if request.param == "memory":
        return MemoryLineageIndex(MemoryIndexFile(tmp_path / "lineage"))
    return DuckLineageIndex(DuckDBFile(tmp_path / "lineage.duckdb", LINEAGE_SCHEMA, 10.0))


@pytest.fixture
def damage(index: Index) -> Callable[[], None]:
    def write() -> None:
        if isinstance(index, MemoryLineageIndex):
            index.file.damage = "damaged"
        else:
            index.file.path.write_bytes(b"no index" * 500)

    return write


def test_rows_are_found_by_child_by_parent_and_by_owner(index: Index) -> None:
    """Of one user alone; a turn owns its documents, a narrative itself."""
    index.put([NARRATIVE, SUMMARY, ANSWER, THEIRS])
    assert index.parents("ann", [SUMMARY.child, NARRATIVE.child]) == (NARRATIVE, SUMMARY)
    assert index.parents("ann", [THEIRS.child]) == () and index.parents("ann", []) == ()
    assert index.derived_from("ann", "ann:turn_000001/") == (ANSWER,)
    assert index.derived_from("ann", "ann:turn_000002/") == (NARRATIVE, SUMMARY)
    assert index.rows_of("ann", ["ann:turn_000002"]) == (ANSWER, SUMMARY)
    assert index.owners() == (("ann", "ann:session/s1"), ("ann", "ann:turn_000002"), ("ben", "ben:turn_000002"))


def test_rows_of_one_child_are_in_the_order_of_their_parents(index: Index) -> None:
    """Of one parent, in the order of their spans; a row without a span comes first. Every field comes back."""
    figures: dict[str, Any] = {"recipe": "r", "model": "m", "parent_tokens": 7, "child_tokens": 5, "verdicts": {"total": 2}, "run_id": "u"}
    late, early = (edge("digest", "session/s1", span=span, **figures) for span in ((9, 12), (3, 9)))
    whole, other = edge("digest", "session/s1"), edge("digest", "session/s2")
    index.put([other, late, whole, early])
    assert index.parents("ann", ["ann:digest"]) == (whole, early, late, other)


def test_rows_take_the_place_of_those_of_their_children_and_owners(index: Index) -> None:
    """Other documents of the turn keep theirs, unless the turn is among `owners`; other turns and users always do."""
    index.put([ANSWER, SUMMARY, NARRATIVE, THEIRS])
    new = edge("turn_000002/context.md", "turn_000002/cold/context.md", relation=Relation.COMPRESSED)
    index.put([new])
    assert index.rows_of("ann", ["ann:turn_000002"]) == (new, SUMMARY)
    for _ in range(2):
        index.put([ANSWER], owners=["ann:turn_000002"])
    assert index.rows_of("ann", ["ann:turn_000002", "ann:session/s1"]) == (NARRATIVE, ANSWER)
    index.put([], owners=["ann:turn_000002"])
    assert index.owners() == (("ann", "ann:session/s1"), ("ben", "ben:turn_000002"))


def test_rows_are_found_by_the_run_that_made_them(index: Index) -> None:
    """Of all users; rows without a run belong to none."""
    ran = {"run_id": "run-1", "relation": Relation.COMPRESSED}
    ours = edge("turn_000001/context.md", "turn_000001/cold/context.md", **ran)
    theirs = edge("turn_000001/context.md", "turn_000001/cold/context.md", user="ben", **{**ran, "at": "2026-02-04T00:00:00Z"})
    older = edge("turn_000003/context.md", "turn_000003/cold/context.md", **{**ran, "run_id": "run-0"})
    index.put([ANSWER, ours, theirs, older])
    assert index.runs() == (("run-0", "2026-01-04T00:00:00Z"), ("run-1", "2026-02-04T00:00:00Z"))
    assert index.rows_of_run("run-1") == (ours, theirs) and index.rows_of_run("run-2") == ()


def test_an_index_is_complete_once_that_was_said(index: Index) -> None:
    """Rows alone do not say it."""
    index.put([ANSWER])
    assert not index.is_complete()
    index.mark_complete("2026-01-04T00:00:00Z")
    assert index.is_complete() and index.owners() == (("ann", "ann:turn_000002"),)


def test_reading_makes_no_file(index: Index) -> None:
    """Nor does writing nothing; an index that was never written has no rows."""
    index.put([])
    assert index.owners() == index.parents("ann", ["ann:digest"]) == index.rows_of("ann", ["ann:digest"]) == index.runs() == ()
    assert not index.is_complete() and not index.file.exists() and index.file.fault() is None


def test_a_damaged_file_is_named_and_raises(index: Index, damage: Callable[[], None]) -> None:
    index.put([ANSWER])
    assert index.file.exists() and index.file.fault() is None
    damage()
    assert str(index.file.path) in str(index.file.fault())
    for use in (lambda: index.parents("ann", ["ann:digest"]), index.owners, index.is_complete, lambda: index.put([SUMMARY])):
        with pytest.raises(StoreError):
            use()
