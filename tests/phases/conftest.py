"""The rigs of the phases' tests: a real house around a scripted runtime, and one on the embedded runtime."""

from collections.abc import Iterator

import pytest

from tests.phases.embedded import Embedded
from tests.phases.rig import Rig, open_rig


@pytest.fixture
def rig(tmp_path) -> Iterator[Rig]:
    """A house in a folder of its own."""
    made = open_rig(tmp_path / "store")
    yield made
    made.app.close()


@pytest.fixture
def anna(tmp_path) -> Iterator[Embedded]:
    """A person with sources of her own, on the embedded runtime."""
    made = Embedded(tmp_path / "store")
    yield made
    made.app.close()
