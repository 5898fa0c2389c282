"""RecordFiles, and the record stores made of it, over a disk and over storage in memory."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from pandora_dagster.contracts.archive_records import Hold
from pandora_dagster.contracts.batches import Batch
from pandora_dagster.contracts.enums import InterventionType, ModelLayer
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.errors import BadIdError, DocumentError, StoreError
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot, storage_of
from pandora_dagster.stores.records.batch_files import BatchFiles
from pandora_dagster.stores.records.intervention_files import InterventionFiles
from pandora_dagster.stores.turns.archive_folders import HoldFiles
from tests.fakes.storage import fake_storage

ANN = UserId("ann")


class Note(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = ""
    count: int = 0


@pytest.fixture(params=["disk", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> StorageRoot:
    return tmp_path if request.param == "disk" else fake_storage()


@pytest.fixture
def notes(storage: StorageRoot) -> RecordFiles[Note]:
    return RecordFiles(storage, "users/{user}/notes/{note}.json", Note, expected="a note", hint="delete it", names={"note": "n[0-9]+"})


def test_a_record_reads_back(notes: RecordFiles[Note]) -> None:
    """By its key alone; what is not there is None."""
    assert notes.find("ann", "n1") is None and not notes.exists("ann", "n1")
    assert notes.put(Note(text="ä"), "ann", "n1") == notes.find("ann", "n1") == Note(text="ä")
    assert notes.exists("ann", "n1") and notes.find("bob", "n1") is None


def test_the_file_is_indented_json_with_a_line_end(storage: StorageRoot) -> None:
    """Defaults are left out where a store says so."""
    blobs = storage_of(storage).blobs
    RecordFiles(storage, "a.json", Note, expected="a note").put(Note(text="x"))
    RecordFiles(storage, "b.json", Note, expected="a note", exclude_defaults=True).put(Note(text="x"))
    assert blobs.get("a.json").data == b'{\n "text": "x",\n "count": 0\n}\n'
    assert blobs.get("b.json").data == b'{\n "text": "x"\n}\n'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty: expected a document"),
        (b"{", "Invalid JSON.*expected a note"),
        (b'{"text": 1}', "text: .*expected a note"),
        (b'{"more": 1}', "more: .*expected a note"),
        (b'{"text": "\xff"}', "not UTF-8"),
    ],
)
def test_a_damaged_record_is_named(notes: RecordFiles[Note], storage: StorageRoot, data: bytes, message: str) -> None:
    """File, field and what was expected; it still counts as there, and can be deleted."""
    storage_of(storage).blobs.put("users/ann/notes/n1.json", data)
    with pytest.raises(DocumentError, match=rf"users/ann/notes/n1\.json: .*{message}|users/ann/notes/n1\.json: {message}"):
        notes.find("ann", "n1")
    with pytest.raises(DocumentError):
        list(notes.all("ann"))
    assert notes.exists("ann", "n1") and notes.erase("ann") == 1 and not notes.exists("ann", "n1")


def test_a_listing_finds_the_names_of_this_kind(notes: RecordFiles[Note], storage: StorageRoot) -> None:
    """In the order of the paths, of one user or of all; other files are passed over."""
    for user, note in (("bob", "n1"), ("ann", "n2"), ("ann", "n1")):
        notes.put(Note(text=user + note), user, note)
    storage_of(storage).blobs.put("users/ann/notes/other.json", b"{}")
    assert list(notes.list_keys()) == [("ann", "n1"), ("ann", "n2"), ("bob", "n1")]
    assert [note.text for note in notes.all("ann")] == ["annn1", "annn2"]


def test_a_users_records_are_erased_and_no_others(notes: RecordFiles[Note]) -> None:
    """The number of deleted records is returned."""
    for user in ("ann", "bob"):
        notes.put(Note(), user, "n1")
    assert notes.erase("ann") == 1 and list(notes.list_keys()) == [("bob", "n1")]
    assert notes.erase("ann") == 0 and notes.delete("bob", "n1") and not notes.delete("bob", "n1")


@pytest.mark.parametrize("key", [("../ann", "n1"), ("ann", "../n1"), ("ann", "a/b"), ("ann", ""), ("ann", ".n1"), ("", "n1")])
def test_no_key_leads_out_of_the_pattern(notes: RecordFiles[Note], key: tuple[str, str]) -> None:
    """BadIdError before any path is built."""
    for act in (lambda: notes.find(*key), lambda: notes.put(Note(), *key), lambda: notes.delete(*key)):
        with pytest.raises(BadIdError):
            act()


def test_a_record_is_locked_alone(notes: RecordFiles[Note]) -> None:
    """Others of its kind are free."""
    first, again = notes.lock("ann", "n1", what="a note"), notes.lock("ann", "n1", what="a note", wait_s=0.02)
    with first, notes.lock("ann", "n2", what="another"), pytest.raises(StoreError, match="another process works on a note"), again:
        pass


def _use_interventions(storage: StorageRoot) -> None:
    numbers = count()
    files = InterventionFiles(storage, clock=lambda: datetime(2026, 1, 4, tzinfo=UTC), random_hex=lambda n: f"{next(numbers):0{2 * n}x}")
    opened = files.open(InterventionType.TIMEOUT, "m", user_id="ann")
    assert files.list() == (opened,) and files.resolve(opened.id, "done") == files.show(opened.id)


def _use_holds(storage: StorageRoot) -> None:
    files, key = HoldFiles(storage), TurnKey(ANN, 1)
    hold = Hold(why="pinned", at="2026-01-04T00:00:00Z")
    files.put(key, hold)
    assert files.find(key) == hold and files.remove(key) and not files.remove(key)


def _use_token_ratios(storage: StorageRoot) -> None:
    TokenRatioFile(storage).keep(ModelLayer.MIND, "tiny", 1.25)
    assert TokenRatioFile(storage).find(ModelLayer.MIND, "tiny") == 1.25 and TokenRatioFile(storage).find(ModelLayer.MIND, "big") is None


def _use_batches(storage: StorageRoot) -> None:
    batch = Batch.model_validate({"digest": "ab" * 32, "file": "q.jsonl", "day": "2026-01-04", "queries": ()})
    files = BatchFiles(storage)
    assert files.begin(batch) == batch == files.begin(batch.model_copy(update={"day": "2026-01-05"})) and files.of_day("2026-01-04") == (
        batch,
    )
    with files.running(batch), pytest.raises(StoreError), files.running(batch):
        pass


@pytest.mark.parametrize("use", [_use_interventions, _use_holds, _use_token_ratios, _use_batches])
def test_record_stores_need_no_disk(storage: StorageRoot, use: Callable[[StorageRoot], None]) -> None:
    """Each works the same over files and over memory."""
    use(storage)
