"""Fences of the architecture that import-linter does not express. docs/explanation/architecture.md states the rules.

They read the source as text and syntax trees and import nothing of the product: `make check` runs them in about two seconds.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "pandora_dagster"

MAX_MODULE_LINES = 350
MAX_MODULE_LINES_ONE_NOUN = 450
MAX_FUNCTION_LINES = 60
MAX_MODULES_PER_PACKAGE = 15

# Names that say nothing about their content.
CATCH_ALLS = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
# Metaphors of earlier versions; docs/reference/glossary.md has the standard term for each.
METAPHORS = {
    *("bench", "cookbook", "desk", "ear", "floor", "fuse", "house", "keeper", "kit", "kitchen", "ladder", "leash", "night", "nights"),
    *("patience", "person", "people", "room", "shelf", "telegraph", "twins", "wiring"),
}
BANNED = CATCH_ALLS | METAPHORS
# Metaphors that no function, argument, variable or field has in its name either.
BANNED_IDENTIFIERS = {"cookbook", "desk", "house", "kitchen", "people", "shelf"}
# Phrases that docstrings, comments and messages do not use: `verified against`, `recipes`, `released`, `kept under another name`.
BANNED_PHRASES = re.compile(r"\b(held against|cookbook|kitchen|(set|kept) aside)\b", re.IGNORECASE)
# Participles are no names of types: `CompressionResult`, not `Shrunk`. Nouns that only look like one are listed.
IRREGULAR_PARTICIPLES = {
    *("Begun", "Built", "Chosen", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Kept", "Known", "Left", "Lost", "Made", "Meant"),
    *("Put", "Said", "Seen", "Sent", "Shown", "Shrunk", "Spent", "Split", "Taken", "Told", "Written"),
}
NOUNS_IN_ED = {"Embed", "Feed", "Need", "Seed", "Speed"}


@cache
def modules() -> dict[str, Path]:
    """Dotted name without the package -> file, without `__init__`."""
    files = (p for p in sorted(PACKAGE.rglob("*.py")) if p.name != "__init__.py")
    return {".".join(p.relative_to(PACKAGE).with_suffix("").parts): p for p in files}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def public_classes(path: Path) -> list[str]:
    return [node.name for node in tree(path).body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def words_of(name: str) -> list[str]:
    """`CallLog_files` -> call, log, files."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def identifiers(path: Path) -> set[str]:
    """Names that a module binds: functions, classes, arguments, variables and fields."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def uses_environment(path: Path) -> bool:
    """Whether the module reads the process's environment: `os.environ`, `os.getenv`, or one of them imported by name."""
    attributes = (n for n in ast.walk(tree(path)) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "os")
    by_attribute = any(n.attr in ("environ", "environb", "getenv", "putenv") for n in attributes)
    return by_attribute or any(name in ("os.environ", "os.getenv") for name in imported(path))


def test_no_module_is_longer_than_one_subject_needs() -> None:
    faults: list[str] = []
    for name, path in modules().items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        limit = MAX_MODULE_LINES_ONE_NOUN if len(public_classes(path)) == 1 else MAX_MODULE_LINES
        if lines > limit:
            faults.append(f"{name}: {lines} lines: expected at most {limit}")
    assert faults == []


def test_no_function_is_longer_than_a_screen() -> None:
    faults = [
        f"{name}: {node.name}: {node.end_lineno - node.lineno + 1} lines: expected at most {MAX_FUNCTION_LINES}"
        for name, path in modules().items()
        for node in functions(path)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert faults == []


def test_a_package_holds_few_modules_beside_its_sub_packages() -> None:
    counts: dict[str, int] = defaultdict(int)
    for name in modules():
        counts[name.rpartition(".")[0]] += 1
    assert {package: n for package, n in counts.items() if package and n > MAX_MODULES_PER_PACKAGE} == {}


def test_only_the_settings_read_the_environment() -> None:
    assert [name for name, path in modules().items() if uses_environment(path) and not name.startswith("settings")] == []


def test_a_model_is_called_in_one_place() -> None:
    calls = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "complete"
    ]
    assert len(calls) == 1, calls
    assert calls[0].startswith("execution."), calls


def test_no_name_is_a_metaphor_or_says_nothing() -> None:
    packages = {part for name in modules() for part in name.split(".")}
    named = [*packages, *(c for path in modules().values() for c in public_classes(path))]
    assert sorted(name for name in named if BANNED & set(words_of(name))) == []


def test_no_identifier_is_a_metaphor() -> None:
    names = ((name, one) for name, path in modules().items() for one in identifiers(path))
    assert sorted(f"{name}: {one}" for name, one in names if BANNED_IDENTIFIERS & set(words_of(one))) == []


def test_no_text_uses_a_replaced_phrase() -> None:
    faults = [
        f"{name}:{number}: {found[0]}"
        for name, path in modules().items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := BANNED_PHRASES.search(line))
    ]
    assert faults == []


def test_no_type_is_named_by_a_participle() -> None:
    faults: list[str] = []
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                last = re.findall(r"[A-Z][a-z]*|[A-Z]+", node.name)[-1:] or [node.name]
                if last[0] in IRREGULAR_PARTICIPLES or (last[0].endswith("ed") and last[0] not in NOUNS_IN_ED):
                    faults.append(f"{name}: {node.name}")
    assert faults == []


def test_no_two_modules_share_a_name() -> None:
    by_name: dict[str, list[str]] = defaultdict(list)
    for name in modules():
        by_name[name.rpartition(".")[2]].append(name)
    assert {base: where for base, where in by_name.items() if len(where) > 1} == {}


@pytest.mark.parametrize("package", sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"))
def test_tests_mirror_the_package(package: str) -> None:
    assert (REPOSITORY / "tests" / package).is_dir() or package == "contracts"


def test_every_module_says_what_it_is() -> None:
    everything = [*modules().values(), *PACKAGE.rglob("__init__.py")]
    assert [str(p.relative_to(PACKAGE)) for p in everything if not ast.get_docstring(tree(p))] == []
