"""What a turn leaves when it comes to rest: its row, its calls, its lineage, its interventions; and what a kill on the way leaves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from filelock import FileLock

from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.errors import InputError, RuntimeUnreachableError
from pandora_dagster.phases.core import turn_indexing
from pandora_dagster.phases.flow import turn_flow
from tests.archive.archived_store import LATER, archive_context, archived
from tests.phases.rig import USUAL, open_rig

pytestmark = pytest.mark.stored


class Killed(BaseException):
    """A kill, as far as one process can show it."""


@pytest.fixture
def rig(tmp_path):
    opened = open_rig(tmp_path / "store")
    yield opened
    opened.app.close()


def killed_before(monkeypatch, step, *, module=turn_indexing):
    """The next call of `step` in the module never returns."""

    def dies(*_, **__):
        raise Killed

    return monkeypatch.setattr(module, step, dies)


def test_a_turn_that_goes_on_closes_what_it_stood_at(rig):
    """Nobody resolved it: it says that the turn went on, a user may still say more, and the turn is archived."""
    rig.say(planner=RuntimeUnreachableError("server is down"))
    key = rig.ask()
    (halt,) = rig.app.interventions.list(state="open")
    assert rig.turn(key).manifest.intervention == halt.id
    rig.say(planner=USUAL["planner"])
    rig.run(key)
    closed = rig.app.interventions.show(halt.id)
    assert (closed.state, closed.how) == ("resolved", "went_on") and not rig.app.interventions.list(state="open")
    assert [due.key for due in select_turns(archive_context(rig.app, after=LATER)).due] == [key]
    assert rig.app.interventions.resolve(halt.id, "server restarted", how="retry").how == "retry"
    with pytest.raises(InputError, match="resolved already"):
        rig.app.interventions.resolve(halt.id, "again")


def test_one_that_halts_again_stays_open_beside_the_new_one(rig):
    rig.say(planner=RuntimeUnreachableError("server is down"))
    key = rig.ask()
    rig.run(key)
    assert len(rig.app.interventions.list(state="open")) == 2
    assert select_turns(archive_context(rig.app, after=LATER)).due == ()


def test_a_kill_before_it_is_closed_keeps_no_turn_from_the_archive(rig, monkeypatch):
    """The turn went on past it: the manifest tells."""
    rig.say(planner=RuntimeUnreachableError("server is down"))
    key = rig.ask()
    rig.say(planner=USUAL["planner"])
    monkeypatch.setattr(turn_flow, "close_intervention", lambda *_: None)
    rig.run(key)
    assert [one.state for one in rig.app.interventions.list()] == ["open"]
    assert [due.key for due in select_turns(archive_context(rig.app, after=LATER)).due] == [key]
    archived(rig.app, after=LATER)
    assert rig.turn(key).manifest.state == "archived"


def test_an_index_that_was_held_too_long_is_tried_again(rig, tmp_path):
    """The row says open until calls and lineage are in; who reads it, or resumes the turn, takes them in."""
    key = rig.start()
    *others, last = turn_flow.unfinished_phases(key, rig.app.dependencies)
    for name in others:
        rig.app.run(turn_flow.run_phase(name, key, rig.app.dependencies, again=False))
    for index in (rig.app.dependencies.calls.index, rig.app.dependencies.lineage.index):
        object.__setattr__(index.file, "wait_s", 0.1)
    locks = [FileLock(tmp_path / "store" / "indexes" / f"{name}.duckdb.lock", thread_local=False) for name in ("call_index", "lineage")]
    with locks[0], locks[1]:
        assert rig.app.run(turn_flow.run_phase(last, key, rig.app.dependencies, again=False)).halt is None
        assert rig.turn(key).manifest.state == "saved" and rig.row(key).state == "open"
    later = open_rig(tmp_path / "store")
    assert turn_flow.unfinished_phases(key, later.app.dependencies) == () and later.row(key).state == "saved"
    assert later.app.indexes.verify() == ()
    later.app.close()


def started(rig, after, number, session):
    """A turn with a number that was allocated before, begun `after` from now."""
    now = datetime.now(UTC).replace(microsecond=0) + after
    deps = replace(rig.app.dependencies, clock=lambda: now)
    return turn_flow.start_turn(deps, f"which chair {number}?", user=UserId("anna"), session=SessionId(session), number=number)


@pytest.mark.parametrize("again", ["resume", "the next question", "the archival run"])
def test_a_row_is_found_by_its_number_not_by_its_time(rig, monkeypatch, again):
    """The second number began first, as in a batch: killed before its row is put, it is mended all the same."""
    one, two = rig.app.dependencies.turns.allocate(UserId("anna"), 2)
    second = started(rig, timedelta(), two, "s2")
    first = started(rig, timedelta(seconds=3), one, "s1")
    rig.run(first)
    rig.say(summarizer="no json")
    rig.run(second)
    rig.say(summarizer=USUAL["summarizer"])
    with monkeypatch.context() as patched, pytest.raises(Killed):
        killed_before(patched, "index_turn")
        rig.run(second)
    assert rig.row(second).state == "open"
    if again == "resume":
        assert rig.app.pending_phases(second) == ()
    elif again == "the archival run":
        archived(rig.app, after=LATER)
    else:
        rig.ask("and the lamp?", session="s2")
    assert rig.row(second).summary and rig.app.indexes.verify() == ()


def test_the_calls_of_a_revision_that_never_came_to_rest_are_taken_in(rig, monkeypatch):
    key = rig.start()
    with monkeypatch.context() as patched, pytest.raises(Killed):
        killed_before(patched, "index_turn")
        rig.run(key)
    rig.app.run(turn_flow.run_phase("response", key, rig.app.dependencies))
    rig.run(key)
    assert rig.turn(key).manifest.revision == 1 and rig.app.indexes.verify() == ()


def test_a_revision_is_indexed_and_linked_when_it_is_opened(rig, monkeypatch):
    """A phase of a saved turn is killed before it commits: row and lineage are those of the revision, which has no summary yet."""
    key, lineage = rig.ask(), rig.app.dependencies.lineage.index
    assert rig.row(key).summary and lineage.rows_of(key.user, [str(key)])
    with monkeypatch.context() as patched, pytest.raises(Killed):
        killed_before(patched, "fit_sections", module=turn_flow)
        rig.app.run(turn_flow.run_phase("response", key, rig.app.dependencies))
    assert rig.turn(key).manifest.revision == 1
    row = rig.row(key)
    assert (row.revision, row.state, row.summary) == (1, "open", "")
    assert lineage.rows_of(key.user, [str(key)]) == ()
    assert rig.app.indexes.verify() == ()


def test_a_row_of_a_turn_as_it_was_read_earlier_does_not_replace_the_newer_one(rig):
    """A process that repairs a row may have read the turn before another process committed its summary."""
    turn = rig.turn(rig.ask())
    earlier = replace(turn, manifest=turn.manifest.model_copy(update={"summary": None}))
    deps = rig.app.dependencies
    assert turn_indexing.index_turn(deps, earlier).summary == turn.manifest.summary["summary"]
    (row,) = deps.index.rows(UserId(turn.manifest.user_id))
    assert row.summary == turn.manifest.summary["summary"] != ""
