"""A tree of lineage in words: its lines as people read them, on a terminal or a page. Pure."""

from collections.abc import Iterable, Iterator

from pandora_dagster.contracts.lineage import LineageEdge, Relation
from pandora_dagster.selection.lineage_tree import Branch

_DEEPEST = 40
"""Levels that are drawn; what lies deeper is told with its level's number."""
_TOLD = ("kept", "equal", "recoverable")
_NOT_TOLD = ("dropped_by_rule", "missing", "mutated", "invented")


def draw_tree(branches: Iterable[Branch]) -> Iterator[tuple[str, Branch]]:
    """Each branch with the lines that stand before it."""
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
        gone = [f"{edge.verdicts[name]} {name.replace('_', ' ')}" for name in _NOT_TOLD if edge.verdicts.get(name)]
        yield ", ".join([f"{sum(edge.verdicts.get(name, 0) for name in _TOLD)} of {total} facts kept", *gone])
    if edge.run_id:
        yield f"run {edge.run_id}"
