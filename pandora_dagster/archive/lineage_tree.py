"""A document's lineage as a tree, from the document down to its sources. Pure: rows come from a function, any depth, no recursion.

What is in it twice (two narratives of one turn, turns that cite each other) is shown once, and referred to where it comes again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.lineage import LineageEdge, Relation

_FIRST = (Relation.DIGESTED, Relation.SUMMARIZED, Relation.COMPRESSED, Relation.SECTION, Relation.CITED)
Parents = Callable[[Collection[str]], Sequence[LineageEdge]]
"""All rows whose child is one of these documents."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of a tree. `edges`: how the document above came from this one, a row for each passage; empty at the root."""

    level: int
    document: str
    sha: str
    edges: tuple[LineageEdge, ...] = ()
    is_again: bool = False
    """It is shown above, with what it came from."""
    hidden: int = 0
    """Sources that lie below the depth asked for."""
    is_last: bool = True
    """No other source of the document above follows."""


def rows_under(root: str, parents: Parents, *, depth: int | None = None) -> dict[str, tuple[LineageEdge, ...]]:
    """The rows of every document from `root` down, by child; each document is asked for once, a level at a time."""
    found: dict[str, tuple[LineageEdge, ...]] = {}
    frontier, level = [root], 0
    while frontier and (depth is None or level <= depth):
        rows: dict[str, list[LineageEdge]] = {document: [] for document in frontier}
        for edge in parents(frontier):
            rows[edge.child].append(edge)
        found |= {document: tuple(sorted(edges, key=_order)) for document, edges in rows.items()}
        frontier = [p for p in dict.fromkeys(e.parent for edges in rows.values() for e in edges) if p not in found]
        level += 1
    return found


def tree(root: str, rows: dict[str, tuple[LineageEdge, ...]], *, depth: int | None = None) -> Iterator[Branch]:
    """The lines in order: a document, then what it came from."""
    shown: set[str] = set()
    shas = {end: sha for edges in rows.values() for e in edges for end, sha in ((e.parent, e.parent_sha), (e.child, e.child_sha))}
    waiting = [Branch(0, root, shas.get(root, ""))]
    while waiting:
        branch = waiting.pop()
        below = _merged(rows.get(branch.document, ()))
        if not below:
            yield branch
        elif branch.document in shown:
            yield Branch(branch.level, branch.document, branch.sha, branch.edges, is_again=True, is_last=branch.is_last)
        elif depth is not None and branch.level >= depth:
            yield Branch(branch.level, branch.document, branch.sha, branch.edges, hidden=len(below), is_last=branch.is_last)
        else:
            shown.add(branch.document)
            yield branch
            last = len(below) - 1
            waiting += [
                Branch(branch.level + 1, edges[0].parent, edges[0].parent_sha, edges, is_last=place == last)
                for place, edges in reversed(list(enumerate(below)))
            ]


def _merged(edges: Sequence[LineageEdge]) -> list[tuple[LineageEdge, ...]]:
    """The rows of one document by source and relation: a source with several passages is one line."""
    groups: dict[tuple[str, Relation], list[LineageEdge]] = {}
    for edge in edges:
        groups.setdefault((edge.parent, edge.relation), []).append(edge)
    return [tuple(group) for group in groups.values()]


def _order(edge: LineageEdge) -> tuple[object, ...]:
    return (
        _FIRST.index(edge.relation),
        edge.span or (0, 0) if edge.relation is Relation.SECTION else (0, 0),
        edge.parent,
        edge.span or (0, 0),
    )


# A tree of lineage in words: its lines as people read them, on a terminal or a page. Pure.

_DEEPEST = 40
"""Levels that are drawn; what lies deeper is shown with its level's number."""
_PRESERVED = ("kept", "equal", "recoverable")
_CHANGED = ("dropped_by_rule", "missing", "mutated", "invented")


def draw_tree(branches: Iterable[Branch]) -> Iterator[tuple[str, Branch]]:
    """Each branch with the lines before it."""
    going_on: list[bool] = []
    for branch in branches:
        del going_on[max(branch.level - 1, 0) :]
        if branch.level > _DEEPEST:
            yield f"{'   ' * _DEEPEST}({branch.level}) ", branch
        else:
            before = "".join("│  " if more else "   " for more in going_on[: branch.level - 1])
            yield (before + ("└─ " if branch.is_last else "├─ ") if branch.level else ""), branch
        if branch.level:
            going_on += [False] * (branch.level - 1 - len(going_on)) + [not branch.is_last]


def describe_branch(branch: Branch) -> str:
    """What a line says of a document beside its name: its hash, and how the one above came from it."""
    parts = [branch.sha[:12]] if branch.sha else []
    if branch.edges:
        parts += [_relation(branch.edges), *_maker(branch.edges[0])]
    if branch.is_again:
        parts.append("told above")
    if branch.hidden:
        parts.append(f"{branch.hidden} sources below this depth")
    return " · ".join(parts)


def _relation(edges: tuple[LineageEdge, ...]) -> str:
    spans = [f"{edge.span[0]}-{edge.span[1]}" for edge in edges if edge.span]
    where = f" characters {', '.join(spans)}" if spans else ""
    if edges[0].relation is Relation.COMPRESSED and not edges[0].verdicts.get("total") and edges[0].parent_sha == edges[0].child_sha:
        return "stands whole"
    return f"{edges[0].relation}{where}"


def _maker(edge: LineageEdge) -> Iterator[str]:
    if edge.recipe:
        yield edge.recipe + (f"@{edge.recipe_version}" if edge.recipe_version else "")
    if edge.prompt_hash:
        yield f"prompt {edge.prompt_hash[:12]}"
    if edge.runtime:
        yield edge.runtime if edge.model in ("", edge.runtime) else f"{edge.runtime}, {edge.model}"
    if edge.relation is Relation.SECTION:
        yield f"{edge.parent_tokens} tokens"
    elif edge.parent_tokens or edge.child_tokens:
        yield f"{edge.parent_tokens} -> {edge.child_tokens} tokens"
    if total := edge.verdicts.get("total", 0):
        gone = [f"{edge.verdicts[name]} {name.replace('_', ' ')}" for name in _CHANGED if edge.verdicts.get(name)]
        yield ", ".join([f"{sum(edge.verdicts.get(name, 0) for name in _PRESERVED)} of {total} facts kept", *gone])
    if edge.run_id:
        yield f"run {edge.run_id}"
