"""What every adapter of the Locks port does, the fake included."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pandora_dagster.contracts.ports.object_storage import Locks
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.file_locks import FileLocks
from tests.fakes.storage import FakeLocks


@pytest.fixture(params=["files", "fake"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> Locks:
    return FileLocks(tmp_path) if request.param == "files" else FakeLocks()


def test_a_lock_has_one_holder(locks: Locks) -> None:
    """A second one waits as long as it says; another name is free; afterwards the lock is free."""
    with locks.lease("users/ann/.lock", what="ann's work", wait_s=1):
        with locks.lease("users/bob/.lock", what="bob's work", wait_s=0):
            pass
        second = locks.lease("users/ann/.lock", what="ann's work", wait_s=0.05)
        with pytest.raises(StoreError, match=r"another process works on ann's work for more than 0\.05 s"), second:
            pass
    with locks.lease("users/ann/.lock", what="ann's work", wait_s=0):
        pass


def test_a_holder_that_fails_lets_go(locks: Locks) -> None:
    """An error within ends the lease."""
    with pytest.raises(ValueError, match="within"), locks.lease("a", what="a", wait_s=0):
        raise ValueError("within")
    with locks.lease("a", what="a", wait_s=0):
        pass


def test_fencing_numbers_grow(locks: Locks) -> None:
    """A later lease has a greater number than every earlier one that asked; one lease has one number."""
    numbers: list[int] = []
    for ask in (True, False, True, True):
        with locks.lease("a/.lock", what="a", wait_s=0) as lease:
            if ask:
                numbers += [lease.number(), lease.number()]
    assert numbers[0] == numbers[1] < numbers[2] == numbers[3] < numbers[4] == numbers[5]


def test_holders_at_once_come_one_after_the_other(locks: Locks) -> None:
    """Eight threads that read and write without the lock would lose counts."""
    count = [0]

    def add(_: int) -> None:
        with locks.lease("a", what="a", wait_s=10):
            count[0] = count[0] + 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(80)))
    assert count == [80]


def test_a_damaged_number_is_a_store_error(tmp_path) -> None:
    (tmp_path / "x.lock.number").write_bytes(b"\xff")
    with FileLocks(tmp_path).lease("x.lock", what="x", wait_s=1.0) as lease, pytest.raises(StoreError, match="expected a whole number"):
        lease.number()
