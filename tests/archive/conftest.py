"""The rig of the archive's tests: archival works on what is stored, so that the whole application is open."""

from collections.abc import Iterator

import pytest

from tests.phases.rig import Rig, open_rig


@pytest.fixture
def rig(tmp_path) -> Iterator[Rig]:
    """An application over a store of its own."""
    made = open_rig(tmp_path / "store")
    yield made
    made.app.close()
