"""Reads the package from its source files: which modules there are, what each says it is for, which top-level parts import which.

Knows only file names, docstrings and import statements, so that it follows the package wherever modules move.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SENTENCE = re.compile(r"^.*?[.!?](?=\s+[^\sa-z]|$)", re.DOTALL)
"""Up to a point that no lower-case letter follows, as one follows "e.g."."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module or package: its dotted name below the root package, the first sentence of its docstring, and the modules it imports."""

    name: str
    purpose: str
    package: bool
    imports: frozenset[str]

    @property
    def top(self) -> str:
        """The top-level package or module that it belongs to."""
        return self.name.split(".")[0]


def read_package(root: Path) -> list[Module]:
    """Every module below the folder `root`, sorted by name; the root's own `__init__` has the empty name."""
    return sorted((_module(root, file) for file in root.rglob("*.py") if "__pycache__" not in file.parts), key=lambda m: m.name)


def top_level_imports(modules: Sequence[Module], root: str) -> dict[str, frozenset[str]]:
    """For each top-level part, the other top-level parts that any module of it imports."""
    parts = {module.top for module in modules if module.name}
    found: dict[str, set[str]] = {part: set() for part in parts}
    for module in modules:
        if module.name:
            targets = {name.removeprefix(f"{root}.").split(".")[0] for name in module.imports if name.startswith(f"{root}.")}
            found[module.top] |= (targets & parts) - {module.top}
    return {part: frozenset(targets) for part, targets in sorted(found.items())}


def without_implied(imports: dict[str, frozenset[str]]) -> list[tuple[str, str]]:
    """The imports that no chain of other imports implies (the transitive reduction)."""
    reachable: dict[str, frozenset[str]] = {}

    def below(part: str, above: tuple[str, ...] = ()) -> frozenset[str]:
        if part in above:
            raise SystemExit(f"import cycle: {' -> '.join((*above, part))}: expected none between top-level packages")
        if part not in reachable:
            reachable[part] = imports[part].union(*(below(target, (*above, part)) for target in imports[part]))
        return reachable[part]

    lower = {part: below(part) for part in imports}
    return [
        (part, target)
        for part, targets in imports.items()
        for target in sorted(targets)
        if not any(target in lower[other] for other in targets - {target})
    ]


def _module(root: Path, file: Path) -> Module:
    package = file.name == "__init__.py"
    parts = file.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if package else parts)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    above = [root.name, *parts[:-1]]
    return Module(name, _first_sentence(ast.get_docstring(tree)), package, frozenset(_imports(tree, above)))


def _imports(tree: ast.Module, above: Sequence[str]) -> Iterator[str]:
    """Absolute names; `from package import module` gives both, as only one of them need be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = [*above[: len(above) - node.level + 1], *([node.module] if node.module else [])] if node.level else [node.module or ""]
            yield ".".join(parent)
            yield from (".".join([*parent, alias.name]) for alias in node.names)


def _first_sentence(docstring: str | None) -> str:
    paragraph = " ".join((docstring or "").split("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found.group() if found else paragraph
