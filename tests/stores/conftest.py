"""A turn store over an empty folder."""

import pytest

from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.stores.turns.turn_rig import EFFECTS, Ticking, Words


@pytest.fixture
def turns(tmp_path) -> TurnStore:
    return TurnFiles(tmp_path, counter=Words(), clock=Ticking(), phases=EFFECTS, lock_seconds=0.3)
