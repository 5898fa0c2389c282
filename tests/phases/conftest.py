"""The rigs of the phases' tests: over stores in memory, or with the marker `stored` over a whole application."""

from collections.abc import Iterator

import pytest

from tests.phases.embedded import Embedded
from tests.phases.rig import Rig, open_light_rig, open_rig


def _is_stored(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("stored") is not None


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path) -> Iterator[Rig]:
    """Turns around a scripted runtime."""
    made = open_rig(tmp_path / "store") if _is_stored(request) else open_light_rig()
    yield made
    made.app.close()


@pytest.fixture
def anna(request: pytest.FixtureRequest, tmp_path) -> Iterator[Embedded]:
    """A user with sources, on the embedded runtime."""
    made = Embedded(tmp_path / "store" if _is_stored(request) else None)
    yield made
    made.app.close()
