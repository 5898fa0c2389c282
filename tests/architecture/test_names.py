"""Fences around names: no metaphors, no catch-alls, no participles for types, no two modules of one name."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest

from tests.architecture.sources import Source, package_sources

# Names that say nothing about their content.
CATCH_ALLS = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
# Metaphors of earlier versions; docs/reference/glossary.md has the standard term for each.
METAPHORS = {
    *("bench", "cookbook", "desk", "ear", "floor", "fuse", "house", "keeper", "kit", "kitchen", "ladder", "leash", "night", "nights"),
    *("patience", "person", "people", "room", "shelf", "telegraph", "twins", "wiring"),
}
BANNED = CATCH_ALLS | METAPHORS
# Metaphors that no function, argument, variable or field has in its name either.
BANNED_IDENTIFIERS = {
    *("allowance", "bears", "cookbook", "desk", "house", "kitchen", "leans", "nobody", "people", "shelf", "standing", "stands", "told"),
    *("twin", "twins"),
}
# Participles are no names of types: `CompressionResult`, not `Shrunk`. Nouns that only look like one are listed.
IRREGULAR_PARTICIPLES = {
    *("Begun", "Built", "Chosen", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Left", "Lost", "Made", "Meant"),
    *("Put", "Said", "Seen", "Sent", "Shown", "Shrunk", "Spent", "Split", "Taken", "Told", "Written"),
}
NOUNS_IN_ED = {"Embed", "Feed", "Need", "Seed", "Speed"}


def words_of(name: str) -> list[str]:
    """`CallLog_files` -> call, log, files."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def identifiers(source: Source) -> set[str]:
    """Names that a module binds: functions, classes, arguments, variables and fields."""
    found: set[str] = {node.name for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)}
    found |= {node.arg for node in source.nodes(ast.arg)}
    stored = (node for node in source.nodes(ast.Name, ast.Attribute) if isinstance(node.ctx, ast.Store))
    return found | {node.id if isinstance(node, ast.Name) else node.attr for node in stored}


def banned_names(sources: Iterable[Source]) -> list[str]:
    """Modules, packages and public classes named by a metaphor or by nothing."""
    named = [(source, one) for source in sources for one in (*source.name.split("."), *source.public_classes())]
    return sorted({f"{source.name}: {one}" for source, one in named if BANNED & set(words_of(one))})


def banned_identifiers(sources: Iterable[Source]) -> list[str]:
    names = ((source.name, one) for source in sources for one in identifiers(source))
    return sorted(f"{name}: {one}" for name, one in names if BANNED_IDENTIFIERS & set(words_of(one)))


def participles(sources: Iterable[Source]) -> list[str]:
    faults: list[str] = []
    for source in sources:
        for node in source.nodes(ast.ClassDef):
            last = (re.findall(r"[A-Z][a-z]*|[A-Z]+", node.name) or [node.name])[-1]
            if last in IRREGULAR_PARTICIPLES or (last.endswith("ed") and last not in NOUNS_IN_ED):
                faults.append(f"{source.name}: {node.name}")
    return faults


def shared_names(sources: Iterable[Source]) -> list[str]:
    by_name: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        if not source.package:
            by_name[source.name.rpartition(".")[2]].append(source.name)
    return [f"{base}: {where}" for base, where in sorted(by_name.items()) if len(where) > 1]


FENCES: list[tuple[Callable[[Iterable[Source]], list[str]], list[Source]]] = [
    (banned_names, [Source("app.turn_utils", "")]),
    (banned_names, [Source("app.house.turns", "")]),
    (banned_names, [Source("app.turns", "class TurnManager:\n    pass")]),
    (banned_identifiers, [Source("app.turns", "def turn(cookbook):\n    pass")]),
    (banned_identifiers, [Source("app.turns", "self.desk_of_turns = 1")]),
    (banned_identifiers, [Source("app.turns", "def admit(allowance):\n    pass")]),
    (banned_identifiers, [Source("app.turns", "standing = find()")]),
    (banned_identifiers, [Source("app.turns", "MOST_TOLD = 4")]),
    (participles, [Source("app.turns", "class Shrunk:\n    pass")]),
    (participles, [Source("app.turns", "def f():\n    class _TextCompressed:\n        pass")]),
    (shared_names, [Source("app.turns", ""), Source("stores.turns", "")]),
]


@pytest.mark.parametrize("fence", dict(FENCES))
def test_the_package_has_plain_names(fence: Callable[[Iterable[Source]], list[str]]) -> None:
    assert fence(package_sources()) == []


@pytest.mark.parametrize(("fence", "sources"), FENCES)
def test_a_planted_name_is_found(fence: Callable[[Iterable[Source]], list[str]], sources: list[Source]) -> None:
    assert len(fence(sources)) == 1
