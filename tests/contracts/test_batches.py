"""What every store of batches must do, asked of one on the disk and of one in memory."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.batches import Batch, BatchQuery, RejectedLine
from pandora_dagster.contracts.ports.object_storage import Storage
from pandora_dagster.contracts.ports.record_storage import Batches
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.record_files import storage_of
from pandora_dagster.stores.records.batch_files import BatchFiles
from tests.fakes.storage import fake_storage

DIGEST, OTHER = "ab" * 32, "cd" * 32
DAY = "2026-01-04"
QUERY = BatchQuery(line=1, query="What?", turn="ann:turn_000001", session="s1")
BATCH = Batch(digest=DIGEST, file="q.jsonl", day=DAY, queries=(QUERY,), rejected=(RejectedLine(line=2, reason="no JSON", text="{"),))


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return fake_storage() if request.param == "memory" else storage_of(tmp_path)


@pytest.fixture
def batches(storage: Storage) -> Batches:
    return BatchFiles(storage)


def test_the_first_record_of_a_content_is_the_one_that_is_stored(batches: Batches) -> None:
    """A second beginning, under another name or on another day, gets it back."""
    assert batches.find(DIGEST) is None
    assert batches.begin(BATCH) == BATCH == batches.find(DIGEST)
    assert batches.begin(Batch(digest=DIGEST, file="again.jsonl", day="2026-01-05")) == BATCH == batches.find(DIGEST)
    assert batches.find(OTHER) is None


def test_batches_of_a_day_come_by_file(batches: Batches) -> None:
    early = Batch(digest=OTHER, file="a.jsonl", day=DAY)
    later = Batch(digest="ef" * 32, file="b.jsonl", day="2026-01-05")
    assert list(batches.of_day(DAY)) == []
    for batch in (BATCH, early, later):
        batches.begin(batch)
    assert list(batches.of_day(DAY)) == [early, BATCH] and list(batches.of_day(later.day)) == [later]


def test_a_batch_runs_once_at_a_time(batches: Batches) -> None:
    """Another batch is free meanwhile, and so is this one afterwards, also after an error."""
    other = BATCH.model_copy(update={"digest": OTHER})
    with batches.running(BATCH), batches.running(other), pytest.raises(StoreError, match=r"q\.jsonl"), batches.running(BATCH):
        pytest.fail("it ran twice")
    with pytest.raises(ZeroDivisionError), batches.running(BATCH):
        raise ZeroDivisionError
    with batches.running(BATCH):
        assert batches.begin(BATCH) == BATCH


@pytest.mark.parametrize("data", [b"", b'{"digest": "ab', BATCH.model_copy(update={"digest": OTHER}).model_dump_json().encode()])
def test_a_damaged_record_is_not_begun_anew(batches: Batches, storage: Storage, data: bytes) -> None:
    """Its turns may run: half a record and another batch's are reported wherever the record is read."""
    storage.blobs.put(f"batches/{DIGEST}.json", data)
    for ask in (lambda: batches.find(DIGEST), lambda: batches.begin(BATCH), lambda: batches.of_day(DAY)):
        with pytest.raises(DocumentError):
            ask()
    assert batches.find(OTHER) is None
