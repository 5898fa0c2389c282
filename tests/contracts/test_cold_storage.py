"""What every cold storage must do, asked of the files and of the fake in memory."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdLocation, ColdObject
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.archive_storage import ColdStorage
from pandora_dagster.contracts.retention import DeletedFile, Tombstone
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import DocumentError, OriginalsDeletedError, StoreError
from pandora_dagster.stores.turns.cold_files import ColdFiles
from pandora_dagster.stores.turns.manifests import render_manifest
from tests.fakes.cold_storage import MemoryColdStorage

FIRST, SECOND = TurnKey(UserId("anna"), 1), TurnKey(UserId("anna"), 2)
AT, DAY = "2026-01-04T14:30:00Z", "2026-01-04"

Damage = Callable[[ColdLocation, bytes | None], None]
"""Puts other bytes in the place of an object; None takes it away."""


def originals(key: TurnKey = FIRST) -> dict[str, bytes]:
    manifest = Manifest(user_id=key.user, turn_id=key.turn_id, session_id="s", mode="chat", created_at=AT, last_activity=AT)
    return {"turn.json": render_manifest(manifest).encode(), "context.md": b"## 0. User Query\n\nwhat?\n", "webpage_cache/p/a.json": b""}


def item(key: TurnKey = FIRST, files: Mapping[str, bytes] | None = None) -> ColdObject:
    return ColdObject(key, DAY, originals(key) if files is None else files)


def record(place: ColdLocation, files: Mapping[str, bytes] | None = None) -> ArchiveRecord:
    hashes = {name: sha256(data).hexdigest() for name, data in (originals() if files is None else files).items()}
    return ArchiveRecord(
        archived_at="2026-02-04T02:00:00Z", day=DAY, was="saved", cold=place.path, sha256=place.sha256, size=place.size, files=hashes
    )


def tombstone(of: ArchiveRecord, day: str = DAY) -> Tombstone:
    files = {name: DeletedFile(sha256=digest, size=1) for name, digest in of.files.items()}
    return Tombstone(sha256=of.sha256, turn=str(FIRST), day=day, files=files, deleted_at=AT, why="older than 365 days", by="a test")


@pytest.fixture(params=["memory", "files"])
def cold(request: pytest.FixtureRequest, tmp_path: Path) -> ColdStorage:
    return MemoryColdStorage() if request.param == "memory" else ColdFiles(tmp_path)


@pytest.fixture
def damage(cold: ColdStorage, tmp_path: Path) -> Damage:
    def put(place: ColdLocation, data: bytes | None) -> None:
        if not isinstance(cold, MemoryColdStorage):
            (tmp_path / place.path).unlink()
            if data is not None:
                (tmp_path / place.path).write_bytes(data)
        elif data is None:
            del cold.tars[place.path]
        else:
            cold.tars[place.path] = data

    return put


def test_originals_come_back_as_they_were_put(cold: ColdStorage) -> None:
    """Several at once, each under its hash below its user and month; the same one again is the same object."""
    one, two = cold.put([item(), item(SECOND)])
    assert one.path == f"cold/anna/2026/01/{one.sha256}.tar.zst" and one.size > 0
    assert cold.put([item()]) == (one,) and cold.put([]) == ()
    for place, key in ((one, FIRST), (two, SECOND)):
        known = record(place, originals(key))
        assert cold.read(known) == originals(key) and cold.verify(known) == "" and cold.exists(known)
        assert cold.unpack(place) == (key, originals(key)) and cold.tombstone(known) is None
    assert cold.remove_partial_objects() == 0


def test_objects_are_listed_by_their_age(cold: ColdStorage) -> None:
    """Whether a turn names them or not."""
    assert list(cold.objects(before=datetime.now(UTC) + timedelta(days=1))) == []
    places = cold.put([item(), item(SECOND)])
    assert set(cold.objects(before=datetime.now(UTC) + timedelta(days=1))) == set(places)
    assert list(cold.objects(before=datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=9_000))) == []


def test_an_object_that_is_gone_is_missing(cold: ColdStorage, damage: Damage) -> None:
    (place,) = cold.put([item()])
    damage(place, None)
    for ask in (lambda: cold.read(record(place)), lambda: cold.unpack(place)):
        with pytest.raises(DocumentError) as caught:
            ask()
        assert caught.value.missing
    assert "missing" in cold.verify(record(place)) and not cold.exists(record(place))


@pytest.mark.parametrize("data", [b"", b"no object"])
def test_a_damaged_object_is_reported_until_it_is_put_again(cold: ColdStorage, damage: Damage, data: bytes) -> None:
    """It still counts as there, and the others are unaffected."""
    one, two = cold.put([item(), item(SECOND)])
    damage(one, data)
    for ask in (lambda: cold.read(record(one)), lambda: cold.unpack(one)):
        with pytest.raises(DocumentError, match="damaged") as caught:
            ask()
        assert not caught.value.missing
    assert "damaged" in cold.verify(record(one)) and cold.exists(record(one))
    assert cold.verify(record(two, originals(SECOND))) == ""
    assert cold.put([item()]) == (one,) and cold.verify(record(one)) == ""


@pytest.mark.parametrize(
    "files", [{}, {**originals(), "more.md": b""}, {**originals(), "context.md": b"other"}], ids=["no", "more", "other"]
)
def test_an_object_must_hold_what_its_record_names(cold: ColdStorage, files: Mapping[str, bytes]) -> None:
    (place,) = cold.put([item()])
    with pytest.raises(DocumentError):
        cold.read(record(place, files))
    assert cold.verify(record(place, files))


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "users/anna/turns/turn_000001/context.md", "cold/../users/x/y/z"])
def test_a_record_cannot_lead_out_of_cold_storage(cold: ColdStorage, path: str) -> None:
    (place,) = cold.put([item()])
    known = record(place).model_copy(update={"cold": path})
    for ask in (lambda: cold.read(known), lambda: cold.exists(known), lambda: cold.delete(known.location)):
        with pytest.raises(DocumentError, match="expected a path below cold/"):
            ask()


def test_an_object_says_whose_it_is(cold: ColdStorage) -> None:
    """One below another user, and one without a manifest, are refused."""
    ben = TurnKey(UserId("ben"), 1)
    astray, empty = cold.put([item(ben, originals(FIRST)), item(FIRST, {"context.md": b""})])
    for place in (astray, empty):
        with pytest.raises(DocumentError):
            cold.unpack(place)


def test_originals_are_deleted_from_their_tombstone_on(cold: ColdStorage) -> None:
    """Without one nothing is deleted; the object goes later, and may go twice; that is no damage."""
    (place,) = cold.put([item()])
    known = record(place)
    with pytest.raises(StoreError, match="tombstone"):
        cold.delete(place)
    cold.write_tombstone(place, tombstone(known))
    for _ in range(2):
        assert cold.tombstone(known) == tombstone(known) and cold.verify(known) == ""
        with pytest.raises(OriginalsDeletedError) as caught:
            cold.read(known)
        assert caught.value.missing and "older than 365 days" in str(caught.value)
        cold.delete(place)
        assert not cold.exists(known) and list(cold.objects(before=datetime.now(UTC) + timedelta(days=1))) == []


def test_originals_that_are_archived_again_are_deleted_no_more(cold: ColdStorage) -> None:
    (place,) = cold.put([item()])
    cold.write_tombstone(place, tombstone(record(place)))
    cold.delete(place)
    assert cold.put([item()]) == (place,)
    assert cold.tombstone(record(place)) is None and cold.read(record(place)) == originals()


def test_a_tombstone_of_other_originals_proves_nothing(cold: ColdStorage) -> None:
    (place,) = cold.put([item()])
    cold.write_tombstone(place, tombstone(record(place), day="2026-01-05"))
    for ask in (cold.tombstone, cold.read):
        with pytest.raises(DocumentError) as caught:
            ask(record(place))
        assert not isinstance(caught.value, OriginalsDeletedError)
    assert cold.verify(record(place))
