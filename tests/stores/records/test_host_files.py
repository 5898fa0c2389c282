"""One holder of a host at a time, and what the last one noted."""

import os
from pathlib import Path

import pytest

from pandora_dagster.contracts.web.fetched import HostRecord
from pandora_dagster.errors import FetchFailedError
from pandora_dagster.stores.records.host_files import HostFiles


def test_a_host_has_one_holder_and_another_host_another(tmp_path: Path) -> None:
    hosts, others = HostFiles(tmp_path), HostFiles(tmp_path)
    with hosts.hold("a.test:80", wait_s=1) as held, others.hold("b.test:80", wait_s=1):
        held.record = HostRecord(released_at=7.0)
        with pytest.raises(FetchFailedError, match=r"a\.test:80") as failed, others.hold("a.test:80", wait_s=0.05):
            pass
        assert failed.value.retryable
    with others.hold("a.test:80", wait_s=1) as held:
        assert held.record.released_at == 7.0


def test_what_was_noted_is_kept_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), HostFiles(tmp_path).hold("a.test:80", wait_s=1) as held:
        held.record = HostRecord(not_before=9.0)
        _ = 1 / 0
    with HostFiles(tmp_path).hold("a.test:80", wait_s=1) as held:
        assert held.record.not_before == 9.0


def test_what_is_noted_is_stored_before_the_host_is_released(tmp_path: Path) -> None:
    """A process that is killed while it waits as long as a host asked for leaves that to the next one."""
    with HostFiles(tmp_path).hold("a.test:80", wait_s=1) as held:
        held.record = HostRecord(not_before=9.0)
        (file,) = (tmp_path / "web" / "hosts").glob("*.json")
        assert HostRecord.model_validate_json(file.read_bytes()).not_before == 9.0


@pytest.mark.parametrize("damage", [b"", b"{", b"\0", b'{"released_at": -1}', b'{"released_at": Infinity}', b'{"more": 1}'])
def test_a_damaged_record_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    with HostFiles(tmp_path).hold("../../x:80", wait_s=1) as held:
        held.record = HostRecord(not_before=9.0)
    (file,) = tmp_path.rglob("*.json")
    assert file.parent == tmp_path / "web" / "hosts"
    file.write_bytes(damage)
    with HostFiles(tmp_path).hold("../../x:80", wait_s=1) as held:
        assert held.record == HostRecord()


def test_old_records_are_swept_and_a_held_one_stays(tmp_path: Path) -> None:
    hosts = HostFiles(tmp_path)
    for name in ("old.test:80", "held.test:80", "new.test:80"):
        with hosts.hold(name, wait_s=1) as held:
            held.record = HostRecord(released_at=7.0)
    with hosts.hold("held.test:80", wait_s=1):
        for file in (tmp_path / "web" / "hosts").iterdir():
            os.utime(file, (100, 100))
        with hosts.hold("new.test:80", wait_s=1) as held:
            held.record = HostRecord(released_at=8.0)
        hosts.sweep(before=1_000)
    left = {name: hosts.hold(name, wait_s=1) for name in ("old.test:80", "held.test:80", "new.test:80")}
    records = {}
    for name, holding in left.items():
        with holding as held:
            records[name] = held.record.released_at
    assert records == {"old.test:80": 0.0, "held.test:80": 7.0, "new.test:80": 8.0}
    HostFiles(tmp_path / "none").sweep(before=1_000)
