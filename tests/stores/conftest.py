"""A turn store over an empty folder."""

import pytest

from pandora_dagster.contracts.ports import TurnStore
from pandora_dagster.stores.revisions import PhaseTable
from pandora_dagster.stores.turns import TurnFiles
from tests.stores.turn_rig import SECTIONS, Ticking, Words


@pytest.fixture
def turns(tmp_path) -> TurnStore:
    return TurnFiles(tmp_path, counter=Words(), clock=Ticking(), phases=PhaseTable(SECTIONS), lock_seconds=0.3)
