"""Fences around docstrings: the modules, classes and ports that they name exist."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.architecture.sources import Source, package_sources

DOTTED = re.compile(r"`([a-z]\w*(?:\.\w+)+)`")
# Names of ports, `Clock` port, port `Clock`, Fills the `Clock`, and a class at the beginning: `Clock` over ..., A `Clock` of ...
PORTS = re.compile(
    r"`?\b([A-Z]\w+)`? ports?\b|\bports? `?([A-Z]\w+)|\b[Ff]ills the `([A-Z]\w+)`"
    r"|\A(?:(?:An?|The) )?`([A-Z]\w+)`(?= (?:by|of|over|as|for|that)\b)"
)
CAMEL_CASE = re.compile(r"`([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)`")
ARTICLES = {"A", "An", "Each", "Every", "The"}
# `runtime.yaml` and `errors.py` name files, also where a package has the name of the file.
DATA_SUFFIXES = {"json", "jsonl", "md", "yaml"}


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, those of fields and constants included."""
    for node in source.nodes(ast.Expr):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def bound_names(source: Source) -> set[str]:
    """What a module binds and imports, with the fields and methods of its classes as `Class.field`."""
    names = {alias.asname or alias.name for node in source.nodes(ast.Import, ast.ImportFrom) for alias in node.names}
    names |= {node.id for node in source.nodes(ast.Name) if isinstance(node.ctx, ast.Store)}
    definitions = [*source.nodes(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)]
    names |= {node.name for node in definitions}
    for node in definitions:
        names |= {f"{node.name}.{name}" for child in node.body for name in _names_of(child)}
    return names


def _names_of(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return [*names, node.name] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else names


def names_of_nothing(sources: Sequence[Source]) -> list[str]:
    modules = {source.name for source in sources}
    bound = {f"{source.name}.{name}" for source in sources for name in bound_names(source)}
    known = {name for source in sources for name in bound_names(source) if "." not in name}
    top = {name.split(".")[0] for name in modules}
    faults: list[str] = []
    for source in sources:
        for line, text in docstrings(source):
            dotted = [name for name in DOTTED.findall(text) if name.split(".")[0] in top and name.rpartition(".")[2] not in DATA_SUFFIXES]
            unknown = [name for name in dotted if name not in modules | bound]
            unknown += [name for name in _class_names(text) if name not in known]
            faults += [f"{source.name}:{line}: {name}: expected a name of the package" for name in unknown]
    return faults


def _class_names(text: str) -> Iterable[str]:
    ports = {name for found in PORTS.finditer(text) for name in found.groups() if name}
    return sorted((ports - ARTICLES) | set(CAMEL_CASE.findall(text)))


def test_docstrings_name_what_exists() -> None:
    assert names_of_nothing(package_sources()) == []


SOURCES = [
    Source("stores", "", package=True),
    Source("stores.clock_file", "class ClockFile:\n    path: str\n\n    def now(self):\n        pass\n\nLIMIT = 1"),
    Source("contracts.measurement", "class Clock(Protocol):\n    pass"),
]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The file of `stores.clock_file`, its `stores.clock_file.ClockFile.now` and `stores.clock_file.LIMIT`.", False),
        ("Fills the `Clock` port: what `stores` keeps, `ClockFile` reads.", False),
        ("The port that a turn uses; `turn.json` and `runtime.yaml` are files.", False),
        ("Reads what `stores.clock` wrote.", True),
        ("Reads by `stores.clock_file.ClockFile.later`.", True),
        ("Fills the `Watch` port.", True),
        ("The Watch port over one store.", True),
        ("`Watch` by a file of the store.", True),
        ("Fills the port `Watch`.", True),
        ("Takes any `ClockFolder`.", True),
    ],
)
def test_a_name_of_nothing_is_found(text: str, fault: bool) -> None:
    described = Source("stores.described", f'class Described:\n    """{text}"""')
    assert len(names_of_nothing([*SOURCES, described])) == fault
