"""Rolling summaries of sessions on the disk."""

import json
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.conversations import ConversationDigest, ConversationSummary
from pandora_dagster.errors import BadIdError, DocumentError, StoreError
from pandora_dagster.stores.user.session_files import ConversationSummaryFiles, SessionFiles

ANN, S1 = UserId("ann"), SessionId("s1")


def made(*turns: int, user: str = "ann", session: str = "s1", **more) -> ConversationSummary:
    given = {"tokens": 9, "created_at": "2026-01-04T14:30:00Z", "made_by": "turn_000031", "runtime": "extractive", "recipe": "r"}
    ids = {"recipe_version": "a", "prompt_version": "b", "call_id": "call_1", "linked": ()}
    return ConversationSummary(
        user_id=user, session_id=session, turns=turns or (1, 2), digest=ConversationDigest(summary="They met."), **{**given, **ids, **more}
    )


def path(root: Path) -> Path:
    return root / "users" / "ann" / "sessions" / "s1" / "conversation_summary.json"


def test_a_summary_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    """One a session and user; a session without one has none, and is no imported conversation."""
    store = ConversationSummaryFiles(tmp_path)
    assert store.find(ANN, S1) is None
    assert store.save(made(1, 2, 5, linked=(2,))) == store.find(ANN, S1) == made(1, 2, 5, linked=(2,))
    assert store.find(ANN, SessionId("s2")) is None and store.find(UserId("bob"), S1) is None
    assert list(SessionFiles(tmp_path).records()) == []


def test_the_one_that_reaches_further_stays(tmp_path: Path) -> None:
    """Two processes of one session: whoever is behind changes nothing and is reported what stands."""
    store = ConversationSummaryFiles(tmp_path)
    store.save(made(1, 2, 3))
    assert store.save(made(1, 2)) == store.find(ANN, S1) == made(1, 2, 3)
    assert store.save(made(1, 2, 3, 4)) == store.find(ANN, S1)


def test_a_write_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All or nothing."""
    store = ConversationSummaryFiles(tmp_path)
    store.save(made(1, 2))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StoreError, match="the disk is full"):
        store.save(made(1, 2, 3))
    monkeypatch.undo()
    assert store.find(ANN, S1) == made(1, 2) and sorted(p.name for p in path(tmp_path).parent.iterdir()) == [
        ".summary.lock",
        "conversation_summary.json",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"user_id": "bob"},
        {"session_id": "s2"},
        {"turns": []},
        {"turns": [2, 1]},
        {"turns": [1, 1]},
        {"linked": [7]},
        {"more": 1},
        {"digest": {"summary": ""}},
        {"format_version": 2},
    ],
)
def test_a_damaged_one_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    """Another's, out of order, of another shape: the fault names the file, reading and writing."""
    store = ConversationSummaryFiles(tmp_path)
    store.save(made(1, 2))
    path(tmp_path).write_text(json.dumps(json.loads(path(tmp_path).read_text()) | change))
    for act in (lambda: store.find(ANN, S1), lambda: store.save(made(1, 2, 3))):
        with pytest.raises(DocumentError, match=r"conversation_summary\.json"):
            act()


def test_ids_never_become_paths(tmp_path: Path) -> None:
    """A summary that names a place is not written."""
    with pytest.raises(BadIdError):
        ConversationSummaryFiles(tmp_path).save(made(session="../x"))
