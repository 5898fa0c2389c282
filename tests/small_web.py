"""The small web of `shared/data/small_web` beside the checkout: a web with known truth, started for a test."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "small_web"
NEEDS_SMALL_WEB = pytest.mark.skipif(not FOLDER.is_dir(), reason="shared/data/small_web is not beside the checkout")
_MODULES = ("kit", "site_pages", "serve", "check")


@dataclass(frozen=True)
class SmallWeb:
    """The running web: its scorer, its log and its tables."""

    check: Any
    state: Any
    """`log` has every request, `canary` the connections to the server that must never be reached."""
    table: dict[str, Any]
    folder: Path = FOLDER

    def truth(self) -> Any:
        """A new copy, as tests change it."""
        return self.check.Truth(self.folder / "truth.json")


@contextmanager
def small_web(folder: Path = FOLDER) -> Iterator[SmallWeb]:
    """Start the web of `folder`, and leave no module of it behind."""
    before = {name: sys.modules.get(name) for name in _MODULES}
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(folder))
    try:
        modules = {name: _load(name, folder) for name in _MODULES}
        server, canary, state, table = modules["serve"].start(folder)
        try:
            yield SmallWeb(modules["check"], state, table, folder)
        finally:
            state.stop.set()
            for running in (server, canary):
                running.shutdown()
                running.server_close()
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def _load(name: str, folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
