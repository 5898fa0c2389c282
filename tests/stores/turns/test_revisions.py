"""Turns that are run again: open ones in place, saved and recorded ones in a revision beside them."""

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.documents.sections import ContextDocument
from tests.stores.turns.turn_rig import ORDER, begun, saved, tree, with_phase


def test_an_open_turn_is_reopened_in_place(turns):
    """The phase and those after it are dropped, with their sections and files; what stands before stays."""
    turn = with_phase(turns, begun(turns), "reflection", section=1, files={"reflection.json": "{}"})
    turn = with_phase(turns, turn, "response", section=5, files={"response.md": "r"})
    turn = turns.commit(turn, phase=None, state=TurnState.HALTED, intervention="int_1")
    again = turns.reopen(turn, phase="response", order=ORDER)
    assert (again.manifest.state, again.manifest.intervention, again.manifest.revision) == (TurnState.OPEN, None, 0)
    assert [p.phase for p in again.manifest.phases] == ["reflection"] and set(again.files) == {"reflection.json"}
    assert set(again.manifest.sections) == {"0", "1"}
    assert turns.load(turn.key) == again
    assert turns.load(with_phase(turns, again, "response", section=5).key).manifest.has_finished("response")


def test_the_next_phase_of_a_halted_turn_drops_nothing(turns):
    """Resuming takes the work up where it stopped: a section that was begun stays."""
    turn = with_phase(turns, begun(turns), "reflection", section=1)
    context = ContextDocument.parse(turn.context).with_section(5, "begun").render()
    turn = turns.commit(turn, phase=None, context=context, state=TurnState.HALTED, intervention="int_1")
    again = turns.reopen(turn, phase="response", order=ORDER)
    assert (again.context, again.manifest.state, again.manifest.intervention) == (context, TurnState.OPEN, None)
    assert turns.reopen(again, phase="response", order=ORDER) == again == turns.load(turn.key)


def test_a_saved_turn_is_never_touched_by_a_re_run(turns):
    """A numbered revision takes it: copies of what stays; the old one is byte for byte what it was."""
    turn = saved(turns)
    before = tree(turns.path(turn.key))
    again = turns.reopen(turn, phase="validation", order=ORDER)
    assert (again.manifest.revision, again.manifest.state, again.manifest.summary) == (1, TurnState.OPEN, None)
    assert [p.phase for p in again.manifest.phases] == ["turn_request", "reflection", "response"]
    assert set(again.manifest.sections) == {"0", "1", "5"} and set(again.files) == {"reflection.json", "response.md"}
    assert again.files["response.md"] == "revised"
    done = with_phase(turns, again, "validation", section=6, state=TurnState.SAVED)
    assert turns.load(turn.key) == done and turns.load(turn.key, revision=0) == turn
    assert {name: data for name, data in tree(turns.path(turn.key, revision=0)).items() if not name.startswith("revisions")} == before
    assert turns.path(turn.key).endswith("revisions/1")
    third = turns.reopen(done, phase="reflection", order=ORDER)
    assert third.manifest.revision == 2 and turns.load(turn.key, revision=1) == done


def test_an_unfinished_revision_is_continued(turns):
    """Asking again for a re-run of the saved turn goes on in the revision that is still open."""
    turn = saved(turns)
    first = turns.reopen(turn, phase="response", order=ORDER)
    again = turns.reopen(turn, phase="response", order=ORDER)
    assert again == first and turns.reopen(turn, phase="reflection", order=ORDER).manifest.revision == 1


def test_a_re_run_after_saving_keeps_the_turn_saved(turns):
    """A new summary of a saved turn is a saved revision with everything else kept; an unfinished one needs no revision."""
    turn = saved(turns)
    again = turns.reopen(turn, phase="turn_summary", order=ORDER)
    assert (again.manifest.revision, again.manifest.state, again.context) == (1, TurnState.SAVED, turn.context)
    assert not again.manifest.has_finished("turn_summary") and "turn_summary.json" not in again.files
    assert turns.reopen(again, phase="turn_summary", order=ORDER) == again


def test_a_clarification_is_re_run_beside_it(turns):
    """A turn that asked keeps its question; its re-run is an open revision."""
    turn = with_phase(turns, begun(turns), "reflection", section=1)
    turn = with_phase(turns, turn, "clarification", section=5, state=TurnState.CLARIFY)
    again = turns.reopen(turn, phase="reflection", order=ORDER)
    assert (again.manifest.revision, again.manifest.state, set(again.manifest.sections)) == (1, TurnState.OPEN, {"0"})
    assert turns.load(turn.key, revision=0) == turn
