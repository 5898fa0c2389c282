"""What holds for every test: laws are judged by what they find, not by how busy the machine is; no test meets another's instance."""

import gc
from contextvars import copy_context

import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage
from hypothesis import settings

from tests import startup_caches
from tests.skip_summary import skip_lines

startup_caches.install()

settings.register_profile("pandora", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("pandora")
"""One tree has one verdict: the same examples each time. Other ones are looked for with `pytest --hypothesis-profile=search`."""

gc.set_threshold(20_000, 20, 20)
"""Thousands of tests in one process: with Python's own numbers a fifth of their time went to looking for cycles."""


def pytest_configure(config: pytest.Config) -> None:
    """The markers of these tests."""
    config.addinivalue_line("markers", "stored: over a whole application with its files and indexes, not over stores in memory")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not run, in the last lines."""
    for line in skip_lines(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """In a context of its own. Definitions are loaded with what the last entered instance left there (Dagster 1.13): after two that
    overlap, and after one of an earlier test that is collected now, one that is gone."""
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    def run() -> None:
        with set_defs_state_storage(None):
            pyfuncitem.obj(**arguments)

    copy_context().run(run)
    return True
