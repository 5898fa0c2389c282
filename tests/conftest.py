"""What holds for every test: laws are judged by what they find, not by how busy the machine is; no test meets another's instance."""

from collections.abc import Iterator

import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage
from hypothesis import settings

settings.register_profile("pandora", deadline=None)
settings.load_profile("pandora")


@pytest.fixture(autouse=True)
def no_instance_of_another_test() -> Iterator[None]:
    """Definitions are loaded with what the last entered instance left (Dagster 1.13): after two that overlap, one that is gone."""
    with set_defs_state_storage(None):
        yield
