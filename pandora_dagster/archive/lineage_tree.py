"""A document's lineage as a tree: the document at the root, below each document its sources. `draw_tree` writes it as lines:

    ann:digest
    └─ ann:session/laptops
       └─ ann:turn_000007/summary

A document may be reached twice (turns that cite each other, a turn in two narratives): its sources are listed the first time only, so the
tree is finite. No recursion, so any depth is possible. Rows come from a function; no store is opened.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.lineage import LineageEdge, Relation
from pandora_dagster.language.word_forms import counted

_RELATION_ORDER = (Relation.DIGESTED, Relation.SUMMARIZED, Relation.COMPRESSED, Relation.SECTION, Relation.CITED)
Parents = Callable[[Collection[str]], Sequence[LineageEdge]]
"""All rows whose child is one of these documents."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of a tree. `edges`: how the document above was made from this one, a row for each passage; empty at the root."""

    level: int
    document: str
    sha: str
    edges: tuple[LineageEdge, ...] = ()
    is_again: bool = False
    """It is shown above with its sources."""
    hidden: int = 0
    """Sources below the requested depth."""
    is_last: bool = True
    """It is the last source of the document above."""


def rows_under(root: str, parents: Parents, *, depth: int | None = None) -> dict[str, tuple[LineageEdge, ...]]:
    """Every document from `root` down -> the rows of its sources; read level by level, each document once."""
    rows_of: dict[str, tuple[LineageEdge, ...]] = {}
    frontier, level = [root], 0
    while frontier and (depth is None or level <= depth):
        rows: dict[str, list[LineageEdge]] = {document: [] for document in frontier}
        for edge in parents(frontier):
            rows[edge.child].append(edge)
        rows_of |= {document: tuple(sorted(edges, key=_sort_key)) for document, edges in rows.items()}
        frontier = [p for p in dict.fromkeys(e.parent for edges in rows.values() for e in edges) if p not in rows_of]
        level += 1
    return rows_of


def tree(root: str, rows: dict[str, tuple[LineageEdge, ...]], *, depth: int | None = None) -> Iterator[Branch]:
    """The lines in order: a document, then its sources. `rows`: the result of `rows_under`."""
    shown: set[str] = set()
    shas = {end: sha for edges in rows.values() for e in edges for end, sha in ((e.parent, e.parent_sha), (e.child, e.child_sha))}
    stack = [Branch(0, root, shas.get(root, ""))]
    while stack:
        branch = stack.pop()
        sources = _group_by_source(rows.get(branch.document, ()))
        if not sources:
            yield branch
        elif branch.document in shown:
            yield Branch(branch.level, branch.document, branch.sha, branch.edges, is_again=True, is_last=branch.is_last)
        elif depth is not None and branch.level >= depth:
            yield Branch(branch.level, branch.document, branch.sha, branch.edges, hidden=len(sources), is_last=branch.is_last)
        else:
            shown.add(branch.document)
            yield branch
            last = len(sources) - 1
            stack += [
                Branch(branch.level + 1, edges[0].parent, edges[0].parent_sha, edges, is_last=index == last)
                for index, edges in reversed(list(enumerate(sources)))
            ]


def _group_by_source(edges: Sequence[LineageEdge]) -> list[tuple[LineageEdge, ...]]:
    """The rows of one document by source and relation: a source with several passages is one line."""
    groups: dict[tuple[str, Relation], list[LineageEdge]] = {}
    for edge in edges:
        groups.setdefault((edge.parent, edge.relation), []).append(edge)
    return [tuple(group) for group in groups.values()]


def _sort_key(edge: LineageEdge) -> tuple[object, ...]:
    return (
        _RELATION_ORDER.index(edge.relation),
        edge.span or (0, 0) if edge.relation is Relation.SECTION else (0, 0),
        edge.parent,
        edge.span or (0, 0),
    )


_MAX_INDENTED_LEVEL = 40
"""A line on a deeper level has the number of its level instead of more indentation."""
_PRESERVED_OUTCOMES = ("kept", "equal", "recoverable")
_CHANGED_OUTCOMES = ("dropped_by_rule", "missing", "mutated", "invented")


def draw_tree(branches: Iterable[Branch]) -> Iterator[tuple[str, Branch]]:
    """Each branch with its indentation and connecting lines, for a terminal or a page."""
    continues: list[bool] = []
    """For each level from 1: whether another branch of that level follows."""
    for branch in branches:
        del continues[max(branch.level - 1, 0) :]
        if branch.level > _MAX_INDENTED_LEVEL:
            yield f"{'   ' * _MAX_INDENTED_LEVEL}({branch.level}) ", branch
        else:
            before = "".join("│  " if follows else "   " for follows in continues[: branch.level - 1])
            yield (before + ("└─ " if branch.is_last else "├─ ") if branch.level else ""), branch
        if branch.level:
            continues += [False] * (branch.level - 1 - len(continues)) + [not branch.is_last]


def describe_branch(branch: Branch) -> str:
    """The text of a line after the document's name: its hash, and how the document above was made from it."""
    parts = [branch.sha[:12]] if branch.sha else []
    if branch.edges:
        parts += [_describe_relation(branch.edges), *_describe_origin(branch.edges[0])]
    if branch.is_again:
        parts.append("shown above")
    if branch.hidden:
        parts.append(f"{counted(branch.hidden, 'source')} below this depth")
    return " · ".join(parts)


def _describe_relation(edges: tuple[LineageEdge, ...]) -> str:
    spans = [f"{edge.span[0]}-{edge.span[1]}" for edge in edges if edge.span]
    where = f" characters {', '.join(spans)}" if spans else ""
    if edges[0].relation is Relation.COMPRESSED and not edges[0].verdicts.get("total") and edges[0].parent_sha == edges[0].child_sha:
        return "unchanged"
    return f"{edges[0].relation}{where}"


def _describe_origin(edge: LineageEdge) -> Iterator[str]:
    """Recipe, prompt, runtime, tokens, facts and run of a link, as far as it has them."""
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
        changed = [f"{edge.verdicts[name]} {name.replace('_', ' ')}" for name in _CHANGED_OUTCOMES if edge.verdicts.get(name)]
        yield ", ".join([f"{sum(edge.verdicts.get(name, 0) for name in _PRESERVED_OUTCOMES)} of {counted(total, 'fact')} kept", *changed])
    if edge.run_id:
        yield f"run {edge.run_id}"
