"""What the package uses of Dagster's private modules is there, in the version that is installed and required."""

import ast
import importlib
import importlib.util
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import pandora_dagster.defs

FOLDER = Path(pandora_dagster.defs.__file__).parent
"""The module itself is read, not imported: an import of a name that moved would fail before a test could say so."""


def private_names() -> list[tuple[str, str]]:
    """Module and name of each private import of the module."""
    tree = ast.parse((FOLDER / "dagster_internals.py").read_text(encoding="utf-8"))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return [(f"{node.module}", alias.name) for node in imports for alias in node.names]


@pytest.mark.parametrize(("module", "name"), private_names())
def test_a_private_name_of_dagster_is_where_it_was(module, name):
    where = f"dagster {version('dagster')}: {module}.{name} moved: correct pandora_dagster/defs/dagster_internals.py"
    assert importlib.util.find_spec(module), where
    assert hasattr(importlib.import_module(module), name), where


def test_the_modules_that_dagster_opens_by_name_are_there():
    from pandora_dagster.defs.dagster_internals import DAEMON_MODULE, NO_COMPUTE_LOGS

    assert importlib.util.find_spec(f"{DAEMON_MODULE}.__main__")
    assert hasattr(importlib.import_module(NO_COMPUTE_LOGS["module"]), NO_COMPUTE_LOGS["class"])


def test_the_installed_version_is_the_required_one():
    """The private names were tested with this version alone, so that no other is allowed."""
    required = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"dagster=={version('dagster')}" in required
