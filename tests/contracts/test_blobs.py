"""What every adapter of the Blobs port does, the fake included."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pandora_dagster.contracts.ports.object_storage import Blobs
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.stores.disk.file_blobs import FileBlobs
from tests.fakes.storage import FakeBlobs


@pytest.fixture(params=["files", "fake"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return FileBlobs(tmp_path) if request.param == "files" else FakeBlobs()


def test_an_object_reads_back_and_is_replaced(blobs: Blobs) -> None:
    """Also an empty one, and one that did not wait for the disk."""
    blobs.put("users/ann/a.json", b"one")
    blobs.put("users/ann/empty", b"", durable=False)
    assert blobs.get("users/ann/a.json").data == b"one" and blobs.get("users/ann/empty").data == b""
    blobs.put("users/ann/a.json", b"two")
    assert blobs.get("users/ann/a.json").data == b"two" and blobs.exists("users/ann/a.json")


def test_an_object_that_is_missing_is_reported_as_missing(blobs: Blobs) -> None:
    """`missing` tells it from a damaged one; the message names its place."""
    with pytest.raises(DocumentError, match=r"a/b\.json: missing") as raised:
        blobs.get("a/b.json")
    assert raised.value.missing and not blobs.exists("a/b.json") and not blobs.delete("a/b.json")


def test_a_version_changes_with_the_object(blobs: Blobs) -> None:
    """`put` returns the version that `get` gives; other bytes have another one."""
    first = blobs.put("a", b"one")
    assert first == blobs.get("a").version
    assert blobs.put("a", b"two") == blobs.get("a").version != first


def test_create_only_never_replaces(blobs: Blobs) -> None:
    """Of eight writers at once one wins."""

    def create(number: int) -> str | None:
        return blobs.put("a/new", str(number).encode(), create_only=True)

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, version in enumerate(pool.map(create, range(8))) if version]
    assert len(won) == 1 and blobs.get("a/new").data == str(won[0]).encode()
    assert [info.key for info in blobs.list("")] == ["a/new"]


def test_if_match_writes_only_over_the_version_it_read(blobs: Blobs) -> None:
    """Ten counters that read, add and compare lose nothing of each other's."""
    blobs.put("count", b"0")
    assert blobs.put("count", b"9", if_match="another") is None and blobs.put("none", b"", if_match="1") is None
    assert blobs.get("count").data == b"0" and not blobs.exists("none")

    def add(_: int) -> None:
        while True:
            found = blobs.get("count")
            if blobs.put("count", str(int(found.data) + 1).encode(), if_match=found.version):
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(10)))
    assert blobs.get("count").data == b"10"


def test_a_listing_is_in_the_order_of_the_keys(blobs: Blobs) -> None:
    """A prefix is text: it may end within a name. Size and time come with the key."""
    for key in ("a/b/2", "a/b-c/1", "a/b/10", "a/c", "ab", "b"):
        blobs.put(key, b"12345")
    assert [info.key for info in blobs.list("a")] == ["a/b-c/1", "a/b/10", "a/b/2", "a/c", "ab"]
    assert [info.key for info in blobs.list("a/b/")] == ["a/b/10", "a/b/2"]
    assert [info.key for info in blobs.list("a/b/1")] == ["a/b/10"]
    assert list(blobs.list("none/")) == [] == list(blobs.list("a/c/"))
    info = next(blobs.list("b"))
    assert info.size == 5 and abs(info.modified_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_deleted_object_is_gone(blobs: Blobs) -> None:
    """And can be written again."""
    blobs.put("a/1", b"x")
    assert blobs.delete("a/1") and not blobs.exists("a/1") and list(blobs.list("a/")) == []
    assert blobs.put("a/1", b"y", create_only=True)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/.b", ".", "a\x00b"])
def test_a_key_that_is_no_plain_path_is_refused(blobs: Blobs, key: str) -> None:
    """Before anything is written or read."""
    for act in (lambda: blobs.put(key, b""), lambda: blobs.get(key), lambda: blobs.delete(key)):
        with pytest.raises(InputError, match="expected a relative path"):
            act()
