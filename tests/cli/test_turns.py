"""What `ask` and `resume` say of a turn that is saved but not whole."""

import json

import pytest
import typer

from pandora_dagster.cli import turns
from tests.phases.rig import open_rig
from tests.phases.test_conversation import empty
from tests.phases.test_session_window import conversation


def test_a_saved_turn_without_its_summary_says_so(tmp_path, capsys):
    """The answer stands and nothing exits; stderr names the intervention and how to go on, stdout stays one document."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(summarizer="no JSON")
        key = rig.start()
        turns._run_and_show(rig.house, key, as_json=True)
    finally:
        rig.house.close()
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert answer["state"] == "saved"
    for part in (f"intervention {answer['intervention']}", "its summary is missing", f"pandora resume {key}"):
        assert part in told.err


def test_a_halted_turn_exits_with_1(tmp_path):
    """A turn without an answer is not done."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(validator="no JSON")
        with pytest.raises(typer.Exit) as ended:
            turns._run_and_show(rig.house, rig.start(), as_json=True)
    finally:
        rig.house.close()
    assert ended.value.exit_code == 1


def test_resuming_in_vain_says_so_and_exits_with_1(tmp_path, capsys):
    """Summary of the conversation HALTs again, though the facts beside it are kept: message, way on, exit code; then it is done."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.house.import_conversations([conversation()], where="test")
        rig.say(conversation_summarizer="no JSON")
        key = rig.start(session="long")
        turns._run_and_show(rig.house, key, as_json=False)
        capsys.readouterr()
        with pytest.raises(typer.Exit) as ended:
            turns._run_and_show(rig.house, key, as_json=False, resumed=True)
        told = capsys.readouterr().err
        assert ended.value.exit_code == 1
        for part in ("HALT at conversation_summary", "left to do: conversation_summary", f"pandora resume {key}"):
            assert part in told
        rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of a rug."}))
        turns._run_and_show(rig.house, key, as_json=False, resumed=True)
        assert "conversation_summary finished" in capsys.readouterr().err and rig.house.left_to_do(key) == ()
    finally:
        rig.house.close()
