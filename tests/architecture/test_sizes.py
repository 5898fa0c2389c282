"""Fences around size: modules, functions, packages, and a docstring for each module."""

import ast
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.architecture.sources import Source, package_sources

MAX_MODULE_LINES = 350
MAX_MODULE_LINES_ONE_NOUN = 450
MAX_FUNCTION_LINES = 60
MAX_MODULES_PER_PACKAGE = 15


def long_modules(sources: Iterable[Source]) -> list[str]:
    faults: list[str] = []
    for source in sources:
        limit = MAX_MODULE_LINES_ONE_NOUN if len(source.public_classes()) == 1 else MAX_MODULE_LINES
        if len(source.lines) > limit:
            faults.append(f"{source.name}: {len(source.lines)} lines: expected at most {limit}")
    return faults


def long_functions(sources: Iterable[Source]) -> list[str]:
    return [
        f"{source.name}: {node.name}: {node.end_lineno - node.lineno + 1} lines: expected at most {MAX_FUNCTION_LINES}"
        for source in sources
        for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def full_packages(sources: Iterable[Source]) -> list[str]:
    """Packages, except the root, with more modules beside their sub-packages than a reader surveys."""
    counts = Counter(source.name.rpartition(".")[0] for source in sources if not source.package)
    return [f"{package}: {n} modules" for package, n in sorted(counts.items()) if package and n > MAX_MODULES_PER_PACKAGE]


def modules_without_docstring(sources: Iterable[Source]) -> list[str]:
    return [source.name for source in sources if not ast.get_docstring(source.tree)]


FENCES: list[tuple[Callable[[Iterable[Source]], list[str]], list[Source]]] = [
    (long_modules, [Source("app.long", "x = 1\n" * 351)]),
    (long_modules, [Source("app.long", "class Long:\n" + "    x = 1\n" * 450)]),
    (long_functions, [Source("app.long", "def long():\n" + "    x = 1\n" * 60)]),
    (long_functions, [Source("app.long", "class A:\n    async def long():\n" + "        x = 1\n" * 60)]),
    (full_packages, [Source(f"app.module_{n}", "") for n in range(16)]),
    (modules_without_docstring, [Source("app.bare", "# A comment is no docstring.\nx = 1")]),
    (modules_without_docstring, [Source("app", "", package=True)]),
]


@pytest.mark.parametrize("fence", dict(FENCES))
def test_the_package_keeps_to_the_size(fence: Callable[[Iterable[Source]], list[str]]) -> None:
    assert fence(package_sources()) == []


@pytest.mark.parametrize(("fence", "sources"), FENCES)
def test_a_planted_fault_of_size_is_found(fence: Callable[[Iterable[Source]], list[str]], sources: list[Source]) -> None:
    assert len(fence(sources)) == 1
