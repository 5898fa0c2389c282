"""A document's lineage as a tree: everything that leads to it, each thing told once, at any depth."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.archive.lineage_tree import Branch, describe_branch, draw_tree, rows_under, tree
from pandora_dagster.contracts.lineage import LineageEdge, Relation


def _doc(number: int) -> str:
    return f"ann:turn_{number:06d}/context.md"


def _edge(child: int, parent: int, relation: Relation = Relation.CITED, /, **more: object) -> LineageEdge:
    plain = {"user_id": "ann", "parent": _doc(parent), "child": _doc(child), "relation": relation, "at": "2026-01-04T00:00:00Z"}
    return LineageEdge.model_validate({**plain, "parent_sha": f"{parent:064x}", "child_sha": f"{child:064x}", **more})


def _tree(edges: Collection[LineageEdge], root: int = 1, depth: int | None = None) -> tuple[Branch, ...]:
    rows = rows_under(_doc(root), lambda wanted: [e for e in edges if e.child in wanted], depth=depth)
    return tuple(tree(_doc(root), rows, depth=depth))


_GRAPHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=40)


@given(_GRAPHS)
def test_everything_that_leads_to_a_document_is_there_and_opened_once(pairs: list[tuple[int, int]]) -> None:
    """Whatever the graph: diamonds, cycles, a document that cites itself."""
    branches = _tree([_edge(child, parent) for child, parent in pairs])
    reached, waiting = {1}, [1]
    while waiting:
        here = waiting.pop()
        new = {parent for child, parent in pairs if child == here} - reached
        reached |= new
        waiting += new
    assert {b.document for b in branches} == {_doc(n) for n in reached}
    links = {(child, parent) for child, parent in pairs if child in reached}
    assert len(branches) == 1 + len(links)
    for number in reached:
        whole = [b for b in branches if b.document == _doc(number) and not b.is_again]
        has_sources = any(child == number for child, _ in pairs)
        assert len(whole) == 1 or not has_sources


@given(_GRAPHS, st.integers(0, 4))
def test_a_depth_cuts_and_says_what_it_hides(pairs: list[tuple[int, int]], depth: int) -> None:
    """No line lies deeper, and a line that was cut says how many sources it has."""
    branches = _tree([_edge(child, parent) for child, parent in pairs], depth=depth)
    assert max(b.level for b in branches) <= depth
    for branch in (b for b in branches if b.hidden):
        assert branch.level == depth and branch.hidden == len({p for c, p in pairs if _doc(c) == branch.document})


def test_a_diamond_is_referred_to_where_it_comes_again() -> None:
    """The second way to a document says that it is shown above, and does not open it."""
    branches = _tree([_edge(1, 2), _edge(1, 3), _edge(2, 4), _edge(3, 4), _edge(4, 5)])
    assert [(b.level, b.document[-12], b.is_again) for b in branches] == [
        (0, "1", False),
        (1, "2", False),
        (2, "4", False),
        (3, "5", False),
        (1, "3", False),
        (2, "4", True),
    ]
    assert "shown above" in describe_branch(branches[-1])


def test_a_chain_of_thousands_is_no_deeper_than_memory() -> None:
    """No recursion: five thousand turns, each citing the one before."""
    edges = {_doc(n): [_edge(n, n + 1)] for n in range(1, 5_001)}
    rows = rows_under(_doc(1), lambda wanted: [e for d in wanted for e in edges.get(d, ())])
    lines = list(draw_tree(tree(_doc(1), rows)))
    assert len(lines) == 5_001 and lines[-1][1].level == 5_000 and "(5000)" in lines[-1][0]


def test_lines_of_a_tree() -> None:
    """Lines lead from a document to its sources; several passages of one source are one line."""
    edges = [_edge(1, 2, span=(5, 9)), _edge(1, 2, span=(20, 30)), _edge(1, 3, Relation.COMPRESSED), _edge(3, 4), _edge(3, 5)]
    shown = [f"{before}{b.document[9:11]}" for before, b in draw_tree(_tree(edges))]
    assert [line[:-2] for line in shown] == ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ "]
    assert "characters 5-9, 20-30" in describe_branch(_tree(edges)[-1])


def test_what_a_line_says_of_a_compression() -> None:
    """Recipe and version, prompt, runtime and model, tokens, verdicts, the run."""
    figures = {"total": 9, "kept": 5, "equal": 1, "missing": 3, "invented": 0}
    maker = {"recipe": "compress_context", "recipe_version": "64a1", "prompt_hash": "2b4a", "runtime": "sglang", "model": "mind-7b"}
    counts = {"parent_tokens": 285, "child_tokens": 179, "verdicts": figures, "run_id": "run-7"}
    line = describe_branch(_tree([_edge(1, 2, Relation.COMPRESSED, **maker, **counts)])[1])
    for part in (
        "compressed",
        "compress_context@64a1",
        "prompt 2b4a",
        "sglang, mind-7b",
        "285 -> 179 tokens",
        "6 of 9 facts kept, 3 missing",
        "run run-7",
    ):
        assert part in line


@pytest.mark.parametrize("end", ["parent", "child"])
def test_a_link_is_of_one_person(end: str) -> None:
    """No row leads from one person's document to another's."""
    with pytest.raises(ValueError, match="a document of ben: expected one of ann"):
        _edge(1, 2, **{end: "ben:turn_000001/context.md"})
