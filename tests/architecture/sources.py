"""The source files that the fences read, as text and syntax trees.

A fence is a function from sources to faults: the package has none, and each fence finds the violation that its test plants.
"""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

REPOSITORY = Path(__file__).parents[2]
ROOT = "pandora_dagster"
PACKAGE = REPOSITORY / ROOT

N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True)
class Source:
    """A module or package of the product: its dotted name without the root package, and its text."""

    name: str
    text: str
    package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        gc.disable()  # before Python 3.11.8 a collection while parsing, with another thread that parses, is a SystemError (gh-106905)
        try:
            return ast.parse(self.text, self.name)
        finally:
            gc.enable()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def nodes(self, *kinds: type[N]) -> Iterator[N]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, kinds))

    def public_classes(self) -> list[str]:
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


@cache
def package_sources() -> tuple[Source, ...]:
    """Every module and package of the product, sorted by name; the root package has the empty name."""
    return tuple(_source(path) for path in sorted(PACKAGE.rglob("*.py")))


def _source(path: Path) -> Source:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    package = parts[-1] == "__init__"
    return Source(".".join(parts[:-1] if package else parts), path.read_text(encoding="utf-8"), package)
