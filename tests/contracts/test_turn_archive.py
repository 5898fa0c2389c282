"""What every archive of turns must do with a turn's documents, asked of the folders on the disk and of the fake in memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.archive_records import ColdObject
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.archive_storage import ColdStorage, TurnArchive
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError, OriginalsDeletedError, UnknownTurnError
from pandora_dagster.stores.turns.archive_folders import TurnArchiveFolders
from pandora_dagster.stores.turns.cold_files import ColdFiles, original_turn
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.contracts.test_cold_storage import DAY, record, tombstone
from tests.fakes.cold_storage import MemoryColdStorage
from tests.fakes.turn_archive import MemoryTurnArchive
from tests.fakes.turn_store import MemoryTurnStore
from tests.stores.turns.turn_rig import EFFECTS, ORDER, Ticking, Words, saved, with_phase

NOBODY = TurnKey(UserId("anna"), 9)
DOCUMENTS = {"context.md", "reflection.json", "response.md", "validation.json", "turn_summary.json"}

Damage = Callable[[Turn], None]
"""Changes a turn's response behind its manifest's back."""


@pytest.fixture(params=["memory", "folders"])
def is_fake(request: pytest.FixtureRequest) -> bool:
    return request.param == "memory"


@pytest.fixture
def cold(is_fake: bool, tmp_path: Path) -> ColdStorage:
    return MemoryColdStorage() if is_fake else ColdFiles(tmp_path)


@pytest.fixture
def turns(is_fake: bool, tmp_path: Path) -> TurnStore:
    if is_fake:
        return MemoryTurnStore(Words(), EFFECTS, Ticking())
    return TurnFiles(tmp_path, counter=Words(), clock=Ticking(), phases=EFFECTS)


@pytest.fixture
def archive(turns: TurnStore, cold: ColdStorage, tmp_path: Path) -> TurnArchive:
    return MemoryTurnArchive(turns, cold) if isinstance(turns, MemoryTurnStore) else TurnArchiveFolders(tmp_path, cold, Words())


@pytest.fixture
def damage(turns: TurnStore) -> Damage:
    def change(turn: Turn) -> None:
        if isinstance(turns, MemoryTurnStore):
            turns.revisions[turn.key][-1] = replace(turn, files={**turn.files, "response.md": "forged"})
        else:
            Path(turns.path(turn.key), "response.md").write_text("forged")

    return change


def revised(turns: TurnStore) -> Turn:
    """A finished turn whose response was written a second time: it has two revisions."""
    turn = turns.reopen(saved(turns), phase="response", order=ORDER)
    turn = with_phase(turns, turn, "response", section=5, files={"response.md": "second"})
    turn = with_phase(turns, turn, "validation", section=6, files={"validation.json": "{}"})
    turn = with_phase(turns, turn, "saved_turn", state=TurnState.SAVED)
    return with_phase(turns, turn, "turn_summary", files={"turn_summary.json": "{}"}, summary={"summary": "x"})


def archived(archive: TurnArchive, cold: ColdStorage, turn: Turn) -> Turn:
    """The turn with its originals in cold storage and a shorter response."""
    before, files = archive.originals(turn.key)
    (place,) = cold.put([ColdObject(turn.key, DAY, files)])
    context = ContextDocument.parse(before.context).with_section(5, "short").render()
    after = archive.archived_turn(before, {**before.files, "context.md": context, "response.md": "short"}, record(place, files))
    archive.commit([(before, after)])
    return after


def test_the_originals_are_all_documents_of_all_revisions(turns: TurnStore, archive: TurnArchive) -> None:
    """By their names in cold storage, where each revision can be read again."""
    turn = revised(turns)
    newest, files = archive.originals(turn.key)
    assert newest == turn and set(files) == {"turn.json", *DOCUMENTS} | {f"revisions/1/{name}" for name in ("turn.json", *DOCUMENTS)}
    assert [original_turn(turn.key, number, files) for number in (0, 1)] == [turns.load(turn.key, revision=n) for n in (0, 1)]
    assert archive.size(turn.key) >= sum(map(len, files.values()))


def test_a_turn_that_is_not_there_has_no_originals(archive: TurnArchive) -> None:
    """Its size is 0, which raises nothing."""
    assert archive.size(NOBODY) == 0
    for ask in (archive.originals, archive.restore, archive.reconcile):
        with pytest.raises(UnknownTurnError):
            ask(NOBODY)


def test_a_document_that_contradicts_its_manifest_is_not_archived(turns: TurnStore, archive: TurnArchive, damage: Damage) -> None:
    turn = saved(turns)
    damage(turn)
    with pytest.raises(DocumentError):
        archive.originals(turn.key)


def test_a_turn_is_archived_as_it_was_said_to_be(turns: TurnStore, archive: TurnArchive, cold: ColdStorage) -> None:
    """Until the commit it is as before; other turns are unaffected."""
    turn, other = saved(turns), saved(turns)
    _, files = archive.originals(turn.key)
    (place,) = cold.put([ColdObject(turn.key, DAY, files)])
    after = archive.archived_turn(turn, {**turn.files, "context.md": turn.context, "response.md": "short"}, record(place, files))
    assert turns.load(turn.key) == turn
    archive.commit([(turn, after)])
    assert turns.load(turn.key) == after and turns.load(other.key) == other
    assert (after.manifest.state, after.manifest.archive, after.files["response.md"]) == ("archived", record(place, files), "short")


def test_the_words_of_the_user_are_never_compressed(turns: TurnStore, archive: TurnArchive, cold: ColdStorage) -> None:
    turn = saved(turns)
    (place,) = cold.put([ColdObject(turn.key, DAY, archive.originals(turn.key)[1])])
    context = turn.context.replace("what?", "why?")
    assert context != turn.context
    with pytest.raises(DocumentError, match="section 0"):
        archive.archived_turn(turn, {**turn.files, "context.md": context}, record(place))


def test_an_archived_turn_keeps_its_newest_revision_alone(turns: TurnStore, archive: TurnArchive, cold: ColdStorage) -> None:
    """The older ones are in cold storage; reconciling changes nothing more."""
    after = archived(archive, cold, revised(turns))
    archive.remove_unnamed([after.manifest])
    size = archive.size(after.key)
    archive.reconcile(after.key)
    assert turns.load(after.key) == after == turns.load(after.key, revision=1) and archive.size(after.key) == size
    with pytest.raises((DocumentError, UnknownTurnError)):
        turns.load(after.key, revision=0)


def test_reconciling_finishes_what_a_run_left(turns: TurnStore, archive: TurnArchive, cold: ColdStorage) -> None:
    """The run ended between its commit and the removal."""
    after = archived(archive, cold, revised(turns))
    before = archive.size(after.key)
    archive.reconcile(after.key)
    assert archive.size(after.key) < before and turns.load(after.key) == after


def test_a_restored_turn_is_byte_for_byte_what_it_was(turns: TurnStore, archive: TurnArchive, cold: ColdStorage) -> None:
    """With all its revisions; it can be archived again, as the same object."""
    turn = revised(turns)
    _, files = archive.originals(turn.key)
    after = archived(archive, cold, turn)
    archive.remove_unnamed([after.manifest])
    assert archive.restore(turn.key) == turn == turns.load(turn.key)
    archive.clear_leftovers(turn.key)
    assert archive.originals(turn.key) == (turn, files)
    assert archived(archive, cold, turn).manifest.archive == after.manifest.archive


def test_what_is_not_archived_cannot_be_restored(turns: TurnStore, archive: TurnArchive) -> None:
    turn = saved(turns)
    with pytest.raises(DocumentError, match="expected an archived one"):
        archive.restore(turn.key)
    assert turns.load(turn.key) == turn


def test_a_turn_whose_originals_are_deleted_stays_archived(turns: TurnStore, archive: TurnArchive, cold: ColdStorage) -> None:
    after = archived(archive, cold, saved(turns))
    known = after.manifest.archive
    assert known is not None
    cold.write_tombstone(known.location, tombstone(known))
    with pytest.raises(OriginalsDeletedError):
        archive.restore(after.key)
    assert turns.load(after.key) == after


def test_a_damaged_archived_turn_is_not_reconciled(turns: TurnStore, archive: TurnArchive, cold: ColdStorage, damage: Damage) -> None:
    """Restored from cold storage, it is whole."""
    turn = saved(turns)
    after = archived(archive, cold, turn)
    archive.remove_unnamed([after.manifest])
    damage(after)
    for ask in (archive.reconcile, archive.clear_leftovers):
        with pytest.raises(DocumentError):
            ask(after.key)
    assert archive.restore(turn.key) == turn
