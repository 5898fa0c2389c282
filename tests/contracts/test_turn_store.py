"""What every turn store must do, asked of the files and of the fake in memory."""

from datetime import UTC, datetime

import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.turns import PhaseRecord
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError, InputError, StoreError, UnknownTurnError
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.fakes.turn_store import MemoryTurnStore, utc_now
from tests.phases.vocabulary import vocabulary
from tests.stores.turns.turn_rig import EFFECTS

ANN, BEN, S1 = UserId("ann"), UserId("ben"), SessionId("s1")
NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)
ORDER = ("reflection", "response", "saved_turn", "turn_summary")


@pytest.fixture(params=["memory", "files"])
def turns(request, tmp_path):
    if request.param == "memory":
        return MemoryTurnStore(vocabulary(), EFFECTS, lock_seconds=0.05)
    return TurnFiles(tmp_path, counter=vocabulary(), clock=utc_now, phases=EFFECTS, lock_seconds=0.05)


def started(turns, user=ANN, query="which chair?"):
    return turns.start(user, query, session=S1, mode="chat", now=NOW)


def record(phase, *files):
    return PhaseRecord(phase=phase, finished_at="2026-01-04T14:31:00Z", files={name: "" for name in files})


def section(turn, number, body):
    return ContextDocument.parse(turn.context).with_section(number, body).render()


def committed(turns, turn, phase, number=None, state=None, **files):
    context = section(turn, number, f"what {phase} wrote") if number else None
    return turns.commit(turn, phase=record(phase), context=context, files={f"{n}.json": t for n, t in files.items()}, state=state)


def saved(turns):
    turn = committed(turns, started(turns), "reflection", 1, reflection="{}")
    return committed(turns, committed(turns, turn, "response", 5), "saved_turn", state=TurnState.SAVED)


def test_a_started_turn_is_loaded_as_it_is(turns):
    """Numbers of each user count from 1 and are given once; section 0 holds the query."""
    first, second, other = started(turns), started(turns), started(turns, BEN)
    assert [t.key for t in (first, second, other)] == [TurnKey(ANN, 1), TurnKey(ANN, 2), TurnKey(BEN, 1)]
    assert turns.load(first.key) == first and turns.manifest(first.key) == first.manifest == turns.original(first.key).manifest
    assert "which chair?" in ContextDocument.parse(first.context).body(0) and first.manifest.state is TurnState.OPEN
    assert turns.allocate(ANN, 2) == range(3, 5) and started(turns).key.number == 5
    assert list(turns.keys(ANN)) == [TurnKey(ANN, n) for n in (1, 2, 5)] and turns.users() == (ANN, BEN)


def test_what_is_not_stored_is_unknown(turns):
    """A turn, a revision, a mode; a number that a turn has is not given again."""
    key = started(turns).key
    for missing in (lambda: turns.load(TurnKey(BEN, 1)), lambda: turns.load(key, revision=1), lambda: turns.resolve("ben:7")):
        with pytest.raises(UnknownTurnError):
            missing()
    with pytest.raises(InputError, match="expected chat or code"):
        turns.start(ANN, "hello", session=S1, mode="verse", now=NOW)
    with pytest.raises(StoreError):
        turns.start(ANN, "hello", session=S1, mode="chat", now=NOW, number=1)


def test_a_turn_is_found_by_its_short_name(turns):
    """Where one user has it; with the user where several do."""
    started(turns), started(turns, BEN), started(turns)
    assert turns.resolve("2") == turns.resolve("turn_000002") == TurnKey(ANN, 2) and turns.resolve("ben:1") == TurnKey(BEN, 1)
    with pytest.raises(UnknownTurnError):
        turns.resolve("1")


def test_a_commit_is_what_is_loaded_next(turns):
    """Documents, section, phase and state; a stale turn is not committed, and section 0 never changes."""
    turn = started(turns)
    after = committed(turns, turn, "reflection", 1, reflection='{"decision": "PROCEED"}')
    assert turns.load(turn.key) == after and after.files == {"reflection.json": '{"decision": "PROCEED"}'}
    assert turns.load(turn.key, only=()).files == {} and turns.load(turn.key, only={"reflection.json"}).files == after.files
    assert after.manifest.has_finished("reflection") and ContextDocument.parse(after.context).body(1) == "what reflection wrote"
    with pytest.raises(StoreError, match="another process committed"):
        committed(turns, turn, "response", 5)
    with pytest.raises(DocumentError, match="section 0"):
        turns.commit(after, phase=record("response"), context=after.context.replace("which chair?", "other words"))
    with pytest.raises(StoreError):
        turns.commit(after, phase=None, state=TurnState.ABANDONED)
    assert turns.load(turn.key) == after


def test_an_unfinished_turn_is_reopened_in_place(turns):
    """What the phase and those after it wrote is gone; a halted turn is open again."""
    turn = committed(turns, committed(turns, started(turns), "reflection", 1), "response", 5, state=TurnState.HALTED)
    again = turns.reopen(turn, phase="response", order=ORDER)
    assert turns.load(turn.key) == again and (again.manifest.state, again.manifest.revision) == (TurnState.OPEN, 0)
    assert again.manifest.has_finished("reflection") and not again.manifest.has_finished("response")
    assert "what response wrote" not in again.context


def test_a_finished_turn_is_reopened_in_a_revision(turns):
    """The finished one stays as it is, and both can be loaded."""
    turn = saved(turns)
    again = turns.reopen(turn, phase="response", order=ORDER)
    assert (again.manifest.revision, again.manifest.state) == (1, TurnState.OPEN) and again.files == turn.files
    assert turns.load(turn.key, revision=0) == turn and turns.load(turn.key) == again == turns.load(turn.key, revision=1)
    assert turns.path(turn.key, revision=0) != turns.path(turn.key)


def test_nothing_finished_means_nothing_dropped(turns):
    """An open turn comes back as it is."""
    turn = committed(turns, started(turns), "reflection", 1)
    assert turns.reopen(turn, phase="response", order=ORDER) == turn


def test_a_lock_is_held_by_one(turns):
    """Another that waits too long gets an error; then it is free again."""
    key = started(turns).key
    with turns.lock(key), pytest.raises(StoreError), turns.lock(key):
        pytest.fail("two hold one lock")
    with turns.lock(key, wait_s=0.05):
        pass
    with pytest.raises(UnknownTurnError), turns.lock(TurnKey(BEN, 9)):
        pytest.fail("a turn that is not stored has no lock")


def test_imported_turns_are_placed_whole(turns):
    """With hashes and tokens; a number that a turn has is refused."""
    made = started(turns)
    manifest = made.manifest.model_copy(update={"turn_id": "turn_000002", "state": TurnState.SAVED, "recorded": True, "sections": {}})
    (placed,) = turns.place_many([(TurnKey(ANN, 2), {"context.md": made.context, "toolresults.md": "a page"}, manifest)])
    assert turns.load(TurnKey(ANN, 2)) == placed and placed.manifest.sections == made.manifest.sections and placed.manifest.tokens
    with pytest.raises(StoreError):
        turns.place_many([(TurnKey(ANN, 2), {"context.md": made.context}, manifest)])
