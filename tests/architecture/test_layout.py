"""Fences around the tests: they mirror the package.

A folder of tests is named by a package, or holds scenarios of the whole program and is one of `SCENARIOS`. A package with modules has
a folder of tests, or tests of a folder above it import it.
A test module is named by a module of its package, `test_<module>` or `test_<module>_<aspect>`; any other is a scenario of its package,
which it imports, and no module elsewhere has its name.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.architecture.sources import REPOSITORY, ROOT, Source, package_sources

TESTS = REPOSITORY / "tests"
SCENARIOS = frozenset({"architecture", "benchmarks", "docs", "faults", "sglang", "web"})
"""The folders at the top that mirror no package."""


def read_tests() -> list[Source]:
    """Every test module, named by its path below `tests`."""
    files = (path for path in sorted(TESTS.rglob("test_*.py")) if "data" not in path.relative_to(TESTS).parts)
    return [Source(".".join(path.relative_to(TESTS).with_suffix("").parts), path.read_text(encoding="utf-8")) for path in files]


def misplaced_tests(tests: Iterable[Source], sources: Sequence[Source]) -> list[str]:
    modules = {source.name for source in sources if not source.package}
    packages = {source.name for source in sources if source.package}
    faults = ((test.name, _fault(test, modules, packages)) for test in tests)
    return [f"{name}: {fault}" for name, fault in faults if fault]


def _fault(test: Source, modules: set[str], packages: set[str]) -> str:
    folder, _, name = test.name.rpartition(".")
    top, subject = folder.split(".")[0], name.removeprefix("test_")
    if top in SCENARIOS:
        return ""
    if folder not in packages:
        return f"expected a package {folder}"
    own = {module.rpartition(".")[2] for module in modules if module.rpartition(".")[0] == folder}
    if any(subject == module or subject.startswith(f"{module}_") for module in own):
        return ""
    elsewhere = sorted(module for module in modules if module.rpartition(".")[2] == subject)
    if elsewhere:
        return f"expected beside the tests of {elsewhere[0]}"
    package = f"{ROOT}.{top}"
    return "" if any(f"{name}.".startswith(f"{package}.") for name in _imports(test)) else f"expected an import of {package}"


def _imports(test: Source) -> Iterator[str]:
    for node in test.nodes(ast.Import, ast.ImportFrom):
        yield from (alias.name for alias in node.names) if isinstance(node, ast.Import) else [f"{node.module}"]
        yield from (f"{node.module}.{alias.name}" for alias in node.names if isinstance(node, ast.ImportFrom))


def packages_without_tests(sources: Iterable[Source], tests: Sequence[Source]) -> list[str]:
    """Packages with modules of their own that neither their folder of tests nor a test of a folder above it knows."""
    packages = {source.name.rpartition(".")[0] for source in sources if not source.package} - {""}
    imports = [(_folder(test), set(_imports(test))) for test in tests]
    return sorted(name for name in packages if not any(_tests_package(name, folder, imported) for folder, imported in imports))


def _folder(test: Source) -> str:
    return test.name.rpartition(".")[0]


def _tests_package(package: str, folder: str, imported: Iterable[str]) -> bool:
    if not folder or folder == package:
        return folder == package
    return package.startswith(f"{folder}.") and any(f"{name}.".startswith(f"{ROOT}.{package}.") for name in imported)


def test_tests_mirror_the_package() -> None:
    assert misplaced_tests(read_tests(), package_sources()) == []
    assert packages_without_tests(package_sources(), read_tests()) == []


def test_each_folder_of_scenarios_is_needed() -> None:
    packages = {source.name for source in package_sources() if source.package}
    assert SCENARIOS - packages == SCENARIOS == SCENARIOS & {_folder(test).split(".")[0] for test in read_tests()}


SOURCES = [Source(name, "", package=True) for name in ("", "stores", "stores.user", "contracts")]
SOURCES += [Source(name, "") for name in ("errors", "stores.user.source_files", "contracts.images")]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("stores.user.test_source_files", "", False),
        ("stores.user.test_source_files_damage", "", False),
        ("stores.user.test_two_users", "from pandora_dagster.stores.user.source_files import SourceFiles", False),
        ("test_errors", "", False),
        ("faults.test_killed_users", "", False),
        ("stores.users.test_source_files", "", True),
        ("stores.test_source_files", "from pandora_dagster.stores.user import source_files", True),
        ("stores.user.test_images", "from pandora_dagster.stores.user.source_files import SourceFiles", True),
        ("stores.user.test_two_users", "from pandora_dagster.contracts.images import Image", True),
        ("test_images", "", True),
        ("storage.test_source_files", "from pandora_dagster.stores.user.source_files import SourceFiles", True),
        ("fault.test_killed_users", "", True),
    ],
)
def test_a_misplaced_test_is_found(name: str, text: str, fault: bool) -> None:
    assert len(misplaced_tests([Source(name, text)], SOURCES)) == fault


@pytest.mark.parametrize(
    ("tests", "untested"),
    [
        ({"stores.user.test_source_files": "", "contracts.test_images": ""}, []),
        ({"stores.user.test_source_files": "", "faults.test_images": "import pandora_dagster.contracts.images"}, ["contracts"]),
        ({"stores.test_two_users": "from pandora_dagster.stores.user import source_files", "contracts.test_images": ""}, []),
        ({"stores.test_two_users": "from pandora_dagster.stores import users", "contracts.test_images": ""}, ["stores.user"]),
        ({"test_errors": "import pandora_dagster.contracts.images, pandora_dagster.stores.user"}, ["contracts", "stores.user"]),
    ],
)
def test_a_package_without_tests_is_found(tests: dict[str, str], untested: list[str]) -> None:
    assert packages_without_tests(SOURCES, [Source(name, text) for name, text in tests.items()]) == untested
