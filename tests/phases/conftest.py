"""The rig of the phases' tests: a real house around a scripted runtime."""

from collections.abc import Iterator

import pytest

from tests.phases.rig import Rig, open_rig


@pytest.fixture
def rig(tmp_path) -> Iterator[Rig]:
    """A house in a folder of its own."""
    made = open_rig(tmp_path / "store")
    yield made
    made.house.close()
