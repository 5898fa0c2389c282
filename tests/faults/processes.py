"""`pandora` in processes of its own, with the arguments and the environment that a user gives it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fork_server import ForkedProcess, forked

REPOSITORY = Path(__file__).parents[2]
PANDORA = "from pandora_dagster.cli.program import run; run()"


def environment(root: Path, settings: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """This process's, with the store at `root`, `settings`, and nothing else of the machine's settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PANDORA_", "DAGSTER_"))}
    return {**kept, **settings, "PANDORA_ROOT": str(root), "PYTHONPATH": str(REPOSITORY)}


def started(root: Path, *arguments: str, code: str = PANDORA, settings: Mapping[str, str] = MappingProxyType({})) -> ForkedProcess:
    return forked(code, *arguments, env=environment(root, settings), cwd=root.parent)


def ended(process: ForkedProcess) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=180)
    return process.wait(), out, err


def pandora(root: Path, *arguments: str, code: str = PANDORA) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of one command."""
    return ended(started(root, *arguments, code=code))


def asked(root: Path, text: str, user: str = "anna") -> dict[str, Any]:
    """`ask --json`, which must succeed."""
    code, out, err = pandora(root, "ask", text, "--user", user, "--json")
    assert code == 0, err
    return json.loads(out)
