"""What an erasure needs of a store, asked of the files and of the store in memory."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.app.erasure_service import ErasureService
from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.ports.user_storage import ErasureRecords, UserDocuments
from pandora_dagster.contracts.retention import ErasureIntent, SearchedObject
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.erasure.user_data import UserDataFiles
from tests.fakes.erasure_ports import MemoryErasureRecords, MemoryUserDocuments

ANN, BEN = user_id("ann"), user_id("ben")
Written = Callable[[UserId, str, str], None]


@pytest.fixture(params=[MemoryErasureRecords, ErasureIntents])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> ErasureRecords:
    return MemoryErasureRecords() if request.param is MemoryErasureRecords else ErasureIntents(tmp_path, wait_s=0.05)


@pytest.fixture(params=[MemoryUserDocuments, UserDataFiles])
def documents(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[UserDocuments, Written]:
    """The port, and how a document of a user gets there."""
    if request.param is MemoryUserDocuments:
        memory = MemoryUserDocuments()
        return memory, lambda user, name, text: memory.documents.setdefault(user, {}).update({name: text})
    layout, intents = Layout(tmp_path), ErasureIntents(tmp_path)

    def write(user: UserId, name: str, text: str) -> None:
        folder = layout.user(user) / "sessions"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    files = UserDataFiles(layout, intents.trash_folder, None, (), (), no_queries, wait_s=0.05)
    return files, write


def no_queries(user: UserId) -> tuple[str, ...]:
    return ()


def intent(user: UserId, *facts: str) -> ErasureIntent:
    return ErasureIntent(user_id=user, begun_at="2026-01-04T00:00:00Z", facts=facts)


def test_an_intent_is_there_until_it_is_removed(records: ErasureRecords) -> None:
    """A later intent of a user takes the place of the earlier one; other users have none."""
    assert not records.has_intent(ANN) and records.facts(ANN) == ()
    records.write_intent(intent(ANN, "NH-4410"))
    records.write_intent(intent(ANN, "NH-4410", "Lofta desk"))
    assert records.has_intent(ANN) and records.facts(ANN) == ("NH-4410", "Lofta desk") and not records.has_intent(BEN)
    records.remove_intent(ANN)
    assert not records.has_intent(ANN) and records.facts(ANN) == ()


def test_two_erasures_do_not_run_at_once(records: ErasureRecords) -> None:
    """The second is refused; the lock is free after an error too."""
    with pytest.raises(StoreError), records.one_at_a_time(), records.one_at_a_time():
        pytest.fail("two erasures at once")
    with records.one_at_a_time():
        pass


def test_what_is_of_a_user_and_what_is_of_others(documents: tuple[UserDocuments, Written]) -> None:
    """The texts of one user are theirs alone; after the removal they are gone, those of others are not."""
    port, write = documents
    write(ANN, "one.md", "Ann ordered NH-4410.")
    write(BEN, "two.md", "Ben ordered a lamp.")
    assert list(port.texts(ANN)) == ["Ann ordered NH-4410."] and list(port.notices(ANN)) == []
    others = b"\n".join(port.of_others(ANN))
    assert b"lamp" in others and b"NH-4410" not in others
    port.retire_turns(ANN)
    port.await_levels(ANN)
    port.remove_folder(ANN)
    assert list(port.texts(ANN)) == [] and list(port.texts(BEN)) == ["Ben ordered a lamp."]


def test_an_erasure_leaves_its_intent_until_the_proof_is_clean() -> None:
    """The service needs the ports alone; an interrupted step leaves the facts to search for."""
    records, port = MemoryErasureRecords(), MemoryUserDocuments({ANN: {"a.md": "Order NH-4410 of 2 Lofta desks."}})
    steps: list[str] = []

    class Stopping:
        step = "documents"

        def count(self, user: UserId) -> dict[str, int]:
            return {"documents": len(list(port.texts(user)))}

        def erase(self, user: UserId, traces: object) -> tuple[str, ...]:
            if steps.count("documents") == 1:
                raise StoreError("the disk is full")
            port.remove_folder(user)
            return ()

        def search(self, traces: object) -> Iterator[SearchedObject]:
            return iter(())

    service = ErasureService(records, port, (Stopping(),), lambda: datetime(2026, 1, 4, tzinfo=UTC), steps.append)
    with pytest.raises(StoreError, match="full"):
        service.erase(ANN)
    assert records.has_intent(ANN) and any("NH-4410" in fact for fact in records.facts(ANN)) and not records.busy
    report = service.erase(ANN)
    assert report.proof.is_clean and report.proof.facts > 0 and not records.has_intent(ANN) and list(port.texts(ANN)) == []


def test_only_the_vault_of_the_user_is_no_document(tmp_path: Path) -> None:
    """A store below a folder named `vault`, and a folder of notes of that name, hold documents; packs in the user's vault are none."""
    layout = Layout(tmp_path / "vault" / "store")
    files = UserDataFiles(layout, ErasureIntents(layout.root).trash_folder, None, (), (), no_queries, wait_s=0.05)
    for folder, text in (("sessions", "a session"), ("notes/vault", "a note"), ("vault", "a pack")):
        (layout.user(ANN) / folder).mkdir(parents=True)
        (layout.user(ANN) / folder / "one.md").write_text(text)
    assert sorted(files.texts(ANN)) == ["a note", "a session"]
