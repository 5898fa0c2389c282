"""A store of two users with turns, runs and records, furnished once in a test process and copied for each test."""

import shutil
from pathlib import Path

import pytest

from tests.app.two_user_store import furnished


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that is copied; no test writes to it."""
    root = tmp_path_factory.mktemp("erasing") / "store"
    furnished(root)
    return root


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    """A copy of its own."""
    return shutil.copytree(prepared, tmp_path / "store")
