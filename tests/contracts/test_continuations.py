"""What every store of continuations must do, asked of one on the disk and of one in memory."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.object_storage import Storage
from pandora_dagster.contracts.ports.user_storage import Continuations
from pandora_dagster.contracts.user.conversations import Continuation
from pandora_dagster.stores.disk.record_files import storage_of
from pandora_dagster.stores.user.session_files import ContinuationFiles
from tests.fakes.storage import fake_storage

ANN, BEN = UserId("ann"), UserId("ben")
CONVERSATION, OTHER = "ab12" * 16, "ab13" * 16
PLACE = Continuation(session_id="chat-1", turn_id="turn_000001")
SECOND = Continuation(session_id="chat-2", turn_id="turn_000002")


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return fake_storage() if request.param == "memory" else storage_of(tmp_path)


@pytest.fixture
def continuations(storage: Storage) -> Continuations:
    return ContinuationFiles(storage)


def test_a_place_is_given_once_to_its_user(continuations: Continuations) -> None:
    """Another user and another conversation have none, and a second claim finds nothing."""
    continuations.offer(ANN, CONVERSATION, PLACE)
    assert list(continuations.claim(BEN, CONVERSATION)) == [] and list(continuations.claim(ANN, OTHER)) == []
    assert list(continuations.claim(ANN, CONVERSATION)) == [PLACE] and list(continuations.claim(ANN, CONVERSATION)) == []


def test_two_chats_of_the_same_words_have_a_place_each(continuations: Continuations) -> None:
    """A claimant that takes the first one leaves the second to the next."""
    continuations.offer(ANN, CONVERSATION, PLACE)
    continuations.offer(ANN, CONVERSATION, SECOND)
    first = next(iter(continuations.claim(ANN, CONVERSATION)))
    assert [first, *continuations.claim(ANN, CONVERSATION)] == [PLACE, SECOND]


def test_a_place_that_nobody_claims_is_deleted_after_its_retention(continuations: Continuations) -> None:
    """Of this user alone; a younger one stays."""
    continuations.offer(ANN, CONVERSATION, PLACE)
    continuations.offer(BEN, CONVERSATION, PLACE)
    assert continuations.expire(ANN, datetime.now(UTC) - timedelta(days=1)) == 0
    assert continuations.expire(ANN, datetime.now(UTC) + timedelta(days=1)) == 1
    assert list(continuations.claim(ANN, CONVERSATION)) == [] and list(continuations.claim(BEN, CONVERSATION)) == [PLACE]


def test_a_damaged_place_is_dropped(tmp_path: Path) -> None:
    continuations = ContinuationFiles(storage_of(tmp_path))
    continuations.offer(ANN, CONVERSATION, PLACE)
    (written,) = (tmp_path / "users" / "ann" / "continuations").rglob("*.json")
    written.write_text("{")
    assert list(continuations.claim(ANN, CONVERSATION)) == [] and not written.exists()
