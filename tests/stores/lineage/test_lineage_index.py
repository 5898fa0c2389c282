"""Rows of lineage in their DuckDB file."""

from pathlib import Path

import duckdb
import pytest

from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.errors import BadIdError, DamagedIndexError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.lineage.lineage_index import LINEAGE_SCHEMA, DuckLineageIndex


def _edge(child: str, parent: str, *, user: str = "ann", **more: object) -> LineageEdge:
    plain = {"user_id": user, "parent": f"{user}:{parent}", "child": f"{user}:{child}", "relation": Relation.CITED}
    return LineageEdge.model_validate({**plain, "parent_sha": "a" * 64, "child_sha": "b" * 64, "at": "2026-01-04T00:00:00Z", **more})


@pytest.fixture
def index(tmp_path: Path) -> DuckLineageIndex:
    return DuckLineageIndex(DuckDBFile(tmp_path / "lineage.duckdb", LINEAGE_SCHEMA, 10.0))


def test_a_row_comes_back_as_it_was(index: DuckLineageIndex) -> None:
    """Every field, with a span and without."""
    figures = {"recipe": "r", "recipe_version": "v", "prompt_hash": "p", "runtime": "sglang", "model": "m", "call_id": "c", "run_id": "u"}
    full = _edge(
        "turn_000001/context.md", "turn_000002/context.md", span=(3, 9), parent_tokens=7, child_tokens=5, verdicts={"total": 2}, **figures
    )
    plain = _edge("turn_000001/context.md#2", "notes/a b.md")
    index.put([full, plain])
    assert sorted(index.rows_of("ann", ["ann:turn_000001"]), key=lambda e: e.child) == [full, plain]


def test_rows_take_the_place_of_older_ones(index: DuckLineageIndex) -> None:
    """Rows of a document, or of all of a turn's; another turn's, another user's stay; twice changes nothing."""
    old = [_edge("turn_000001/context.md", "turn_000001/context.md#0"), _edge("turn_000001/summary", "turn_000001/context.md")]
    other = _edge("turn_000002/context.md", "turn_000002/context.md#0")
    theirs = _edge("turn_000001/context.md", "turn_000001/context.md#0", user="ben")
    index.put([*old, other, theirs])
    new = _edge("turn_000001/context.md", "turn_000001/cold/context.md")
    index.put([new])
    assert index.rows_of("ann", ["ann:turn_000001"]) == (new, old[1])
    for _ in range(2):
        index.put([new], owners=["ann:turn_000001"])
    assert index.rows_of("ann", ["ann:turn_000001", "ann:turn_000002"]) == (new, other)
    assert index.rows_of("ben", ["ben:turn_000001"]) == (theirs,)
    index.put([], owners=["ann:turn_000001"])
    assert index.owners() == (("ann", "ann:turn_000002"), ("ben", "ben:turn_000001"))


def test_parents_are_of_one_user(index: DuckLineageIndex) -> None:
    """Parents of many documents at once, never another's."""
    up, down = _edge("session/s1", "turn_000001/summary"), _edge("digest", "session/s1")
    index.put([up, down, _edge("session/s1", "turn_000001/summary", user="ben")])
    assert index.parents("ann", ["ann:digest", "ann:session/s1"]) == (down, up)
    assert index.parents("ann", ["ben:session/s1"]) == ()


def test_a_missing_file_has_no_rows_and_a_damaged_one_says_so(index: DuckLineageIndex) -> None:
    """Reading makes no file; what is no index, or has a row of two users, is named with the remedy."""
    assert index.owners() == index.parents("ann", ["ann:digest"]) == () and not index.is_complete() and not index.file.path.exists()
    index.put([_edge("digest", "session/s1")])
    assert not index.is_complete()
    index.mark_complete("2026-01-04T00:00:00Z")
    assert index.is_complete()
    with duckdb.connect(index.file.path) as db:
        db.execute("UPDATE lineage SET parent = 'ben:session/s1'")
    with pytest.raises(DamagedIndexError, match="documents of one user"):
        index.parents("ann", ["ann:digest"])
    index.file.path.write_bytes(b"no index" * 500)
    with pytest.raises(DamagedIndexError):
        index.parents("ann", ["ann:digest"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "ann:",
        "ann:turn_1/context.md",
        "ann:turn_000001/../x.md",
        "ann:turn_000001/context.md#9",
        "../ann:digest",
        "ann:session/../../x",
        "ann:notes/../../etc/passwd",
        "ann:/etc/passwd",
        "ann:turn_000001/cold/turn_000002/context.md",
        "ann:notes/a\nb.md",
        "ann:digest ",
        "ann:turn_000001/webpage_cache/../../x.md",
    ],
)
def test_what_names_no_document_is_refused(text: str) -> None:
    """An id is checked before it becomes anything."""
    with pytest.raises(BadIdError):
        DocumentId.parse(text)


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("ann:turn_000001/context.md", "ann:turn_000001"),
        ("ann:turn_000001@2/cold/section_4_whole.md", "ann:turn_000001"),
        ("ann:turn_000001/context.md#5", "ann:turn_000001"),
        ("ann:turn_000001/webpage_cache/shop/page.html", "ann:turn_000001"),
        ("ann:turn_000001/summary", "ann:turn_000001"),
        ("ann:session/conv-1", "ann:session/conv-1"),
        ("ann:digest", "ann:digest"),
        ("ann:notes/My desk, 2026.md", "ann:notes/My desk, 2026.md"),
    ],
)
def test_an_id_says_what_it_belongs_to(text: str, owner: str) -> None:
    """It reads back as it is."""
    assert DocumentId.parse(text).owner == owner and str(DocumentId.parse(text)) == text
