"""A process killed anywhere in a live turn: the turn is listed, resumed and finished, and nothing happened twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import SessionId, TurnKey, user_id
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import InputError
from pandora_dagster.phases.core.turn_indexing import turn_rows
from pandora_dagster.phases.flow.phase_table import phase_order
from pandora_dagster.stores.calls.call_log import CallFiles
from tests.faults.killed_turn import FACT, QUERY, scripted
from tests.phases.rig import Rig, open_rig

REPOSITORY = Path(__file__).parents[2]
KEY = TurnKey(user_id("anna"), 2)
SAMPLED = 61
"""Beside every renaming and every opening of an index, each so-manyth disk step is killed too."""
_CALLS = {
    "query_analyzer": "query_analysis",
    "reflection": "reflection",
    "retrieval": "retrieval_plan",
    "context_synthesis": "gathered_context",
    "planner": "task_plan",
    "executor": "tool_results",
    "coordinator": "tool_results",
    "synthesizer": "response",
    "validator": "validation",
    "summarizer": "turn_summary",
    "fact_keeper": "session_facts",
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> list[Path]:
    """Store roots as kills left them, the one of the whole turn first."""
    folder = tmp_path_factory.mktemp("killed")
    rig = open_rig(folder / "store")
    rig.ask("which chair?")
    rig.app.close()
    (folder / "copies").mkdir()
    copies = killed_in("ask", folder / "store", folder / "copies")
    assert len(copies) > 30
    return copies


def killed_in(work: str, prepared: Path, copies: Path) -> list[Path]:
    """Copies of a store in which this was killed, the one of the whole work first."""
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("killed_turn.py")), work, str(prepared), str(copies)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([*command, str(SAMPLED)], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return [copies / str(n) for n in (0, *(int(line.split()[0]) for line in done.stdout.splitlines()))]


def resumed(rig: Rig, key: TurnKey = KEY) -> None:
    """What `pandora resume` does: the phases that are left, in order; a finished turn has none."""
    if rig.app.pending_phases(key):
        rig.run(key)
    else:
        with pytest.raises(InputError, match="nothing is left"):
            rig.run(key)


def test_a_turn_killed_anywhere_is_finished_by_resuming_it(killed):
    """Listed as open or later; resumed: saved, whole, section 0 intact, the same answer; index and documents agree."""
    phases_cut = set()
    for place, root in enumerate(killed):
        rig = scripted(root)
        if KEY in list(rig.app.turns.keys()):
            before = rig.turn(KEY).manifest
            phases_cut.add(before.phases[-1].phase if before.phases else "")
            assert next(r for r in turn_rows(rig.app.dependencies) if r.number == KEY.number).state == before.state
            assert before.state in ("open", "saved")
            resumed(rig)
            check_finished(rig, before)
        assert rig.app.indexes.verify() == ()
        if place % 6 == 0:
            check_next(rig)
        rig.app.close()
    assert phases_cut >= set(phase_order()) - {"clarification", "plan_clarification"} | {""}


@pytest.mark.parametrize("phase", ["response", "turn_summary"])
def test_a_turn_made_again_and_killed_anywhere_is_finished_by_resuming_it(phase, tmp_path):
    """The revision is there whole or not at all; resumed, the turn is saved, and index and documents agree."""
    rig = open_rig(tmp_path / "store")
    key = rig.ask("which chair?")
    rig.app.close()
    (tmp_path / "copies").mkdir()
    revisions = set()
    for root in killed_in(phase, tmp_path / "store", tmp_path / "copies"):
        rig = scripted(root)
        revisions.add(rig.turn(key).manifest.revision)
        assert next(iter(turn_rows(rig.app.dependencies))).state == rig.turn(key).manifest.state
        resumed(rig, key)
        assert rig.turn(key).manifest.state == "saved" and rig.app.indexes.verify() == ()
        rig.app.close()
    assert revisions == {0, 1}


def check_finished(rig: Rig, before) -> None:
    turn = rig.turn(KEY)
    assert turn.manifest.state == "saved" and turn.manifest.revision == 0
    assert ContextDocument.parse(turn.context).query() == QUERY
    assert ContextDocument.parse(turn.context).faults() == () and set(turn.manifest.sections) == set("0123456")
    assert turn.files["response.md"] == rig.section(KEY, 5) + "\n" == "Here it is [1] [2].\n"
    names = [p.phase for p in turn.manifest.phases]
    assert names == [n for n in phase_order() if not n.endswith("clarification")]
    finished = {p.phase for p in before.phases}
    assert all(_CALLS[role] not in finished for role in rig.runtime.calls())
    assert [(e.key, e.value) for e in rig.app.dependencies.memory.entries(KEY.user)] == [("seat", "aisle")]
    assert [f.fact for f in rig.app.dependencies.facts.session(KEY.user, SessionId("s1")).facts] == [FACT]


def check_next(rig: Rig) -> None:
    """Another turn works, with a number that nobody had, and no call is counted twice."""
    rig.runtime.script.clear()
    key = rig.ask("and the desk?")
    assert rig.turn(key).manifest.state == "saved" and key.number >= len(list(rig.app.turns.keys()))
    faults: list[str] = []
    ids = [r.call_id for r in CallFiles(rig.app.settings.root).read(key.user, report=faults.append)]
    assert len(ids) == len(set(ids)) and faults == []
