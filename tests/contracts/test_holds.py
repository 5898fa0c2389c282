"""What every store of holds must do, asked of one on the disk and of one in memory."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.archive_records import Hold
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.archive_storage import Holds
from pandora_dagster.contracts.ports.object_storage import Storage
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.record_files import storage_of
from pandora_dagster.stores.turns.archive_folders import HoldFiles
from tests.fakes.storage import fake_storage

FIRST, SECOND = TurnKey(UserId("ann"), 1), TurnKey(UserId("ann"), 2)
PIN = Hold(why="a dispute", at="2026-01-04T14:30:00Z")
WEEK = Hold(until="2026-01-11T14:30:00Z", why="a visit", at="2026-01-04T14:30:00Z")


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return fake_storage() if request.param == "memory" else storage_of(tmp_path)


@pytest.fixture
def holds(storage: Storage) -> Holds:
    return HoldFiles(storage)


def test_a_hold_is_found_until_it_is_removed(holds: Holds) -> None:
    """It is of one turn and of one user; a second removal finds none."""
    assert holds.find(FIRST) is None and not holds.remove(FIRST)
    holds.put(FIRST, PIN)
    assert holds.find(FIRST) == PIN and holds.find(SECOND) is None and holds.find(TurnKey(UserId("ben"), 1)) is None
    assert not holds.remove(SECOND) and holds.remove(FIRST) and not holds.remove(FIRST) and holds.find(FIRST) is None


def test_a_second_hold_takes_the_place_of_the_first(holds: Holds) -> None:
    holds.put(FIRST, PIN)
    holds.put(FIRST, WEEK)
    assert holds.find(FIRST) == WEEK and holds.remove(FIRST) and holds.find(FIRST) is None


@pytest.mark.parametrize("data", [b"", b'{"why": "a dis', b"[]", b'{"why": "x", "at": "2026", "till": "2027"}'])
def test_a_damaged_hold_is_never_taken_for_none(holds: Holds, storage: Storage, data: bytes) -> None:
    """It may be a pin: it is reported until it is removed, and other turns are unaffected."""
    holds.put(SECOND, PIN)
    storage.blobs.put("users/ann/turns/turn_000001/hold.json", data)
    with pytest.raises(DocumentError, match=r"hold\.json"):
        holds.find(FIRST)
    assert holds.find(SECOND) == PIN and holds.remove(FIRST) and holds.find(FIRST) is None
