"""What `ask` and `resume` say of a turn that is saved but not whole."""

import json

import pytest
import typer

from pandora_dagster.cli.ask import turn_commands
from pandora_dagster.cli.ask.answer_printing import AnswerPrinter
from tests.phases.gather.test_prior_turns import conversation
from tests.phases.rig import APPROVE, open_rig, verdict
from tests.phases.steps.test_conversation_summary import empty


def test_a_saved_turn_without_its_summary_says_so(tmp_path, capsys):
    """The answer stands and nothing exits; stderr names the intervention and how to go on, stdout stays one document."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(summarizer="no JSON")
        key = rig.start()
        turn_commands.run_and_show(rig.app, key, as_json=True)
    finally:
        rig.app.close()
    result = capsys.readouterr()
    answer = json.loads(result.out)
    assert answer["state"] == "saved"
    for part in (f"intervention {answer['intervention']}", "its summary is missing", f"pandora resume {key}"):
        assert part in result.err


def test_a_halted_turn_exits_with_1(tmp_path, capsys):
    """A turn without an answer is not done; the last line is the command that runs the halted phase again."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(validator="no JSON")
        with pytest.raises(typer.Exit) as ended:
            turn_commands.run_and_show(rig.app, rig.start(), as_json=True)
    finally:
        rig.app.close()
    assert ended.value.exit_code == 1
    result = capsys.readouterr()
    assert result.err.endswith(f"  then: pandora interventions resolve {json.loads(result.out)['intervention']} --retry\n")


def test_resuming_in_vain_says_so_and_exits_with_1(tmp_path, capsys):
    """Summary of the conversation HALTs again, though the facts beside it are kept: message, way on, exit code; then it is done."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.app.transfer.import_conversations([conversation()], where="test")
        rig.say(conversation_summarizer="no JSON")
        key = rig.start(session="long")
        turn_commands.run_and_show(rig.app, key, as_json=False)
        capsys.readouterr()
        with pytest.raises(typer.Exit) as ended:
            turn_commands.run_and_show(rig.app, key, as_json=False, resumed=True)
        result = capsys.readouterr().err
        assert ended.value.exit_code == 1
        for part in ("HALT at conversation_summary", "left to do: conversation_summary", f"pandora resume {key}"):
            assert part in result
        rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of a rug."}))
        turn_commands.run_and_show(rig.app, key, as_json=False, resumed=True)
        assert "conversation_summary finished" in capsys.readouterr().err and rig.app.pending_phases(key) == ()
    finally:
        rig.app.close()


def shown(rig, capsys, *, stream):
    """Of a user of its own: with earlier turns an answer must cite."""
    turn_commands.run_and_show(rig.app, rig.start(user=f"anna-{stream}"), as_json=False, stream=stream)
    return capsys.readouterr().out


def test_an_answer_is_shown_once_however_it_comes(tmp_path, capsys):
    """Streamed or not, stdout is the same: the answer, then its sources; nothing is there twice."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(synthesizer="Is it oak?\n\nAnd did it cost $ 900?")
        streamed, whole = shown(rig, capsys, stream=True), shown(rig, capsys, stream=False)
    finally:
        rig.app.close()
    assert streamed == whole == "Is it oak?\n\nAnd did it cost $ 900?\n"


def test_a_withdrawn_draft_is_marked_as_one(tmp_path, capsys):
    """Between draft and answer stands why the first is none; without streaming only the answer is there."""
    rig = open_rig(tmp_path / "store")
    try:
        for stream in (True, False):
            rig.say(synthesizer=["Which draft?", "Which answer?"], validator=[verdict("REVISE", "name the price"), APPROVE])
            result = shown(rig, capsys, stream=stream)
            draft = "Which draft?\n\n--- The draft above is withdrawn: name the price ---\n\n"
            assert result == (draft if stream else "") + "Which answer?\n"
    finally:
        rig.app.close()


def test_a_halt_leaves_no_draft_unmarked(tmp_path, capsys):
    """What was shown before a HALT is no answer, and stdout says so."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(synthesizer="Which draft?", validator="no JSON")
        with pytest.raises(typer.Exit):
            turn_commands.run_and_show(rig.app, rig.start(), as_json=False)
    finally:
        rig.app.close()
    assert capsys.readouterr().out == "Which draft?\n\n--- The draft above is withdrawn: the turn halted ---\n\n"


def test_a_resumed_turn_shows_what_was_written_before(tmp_path, capsys):
    """The phase that speaks had finished: the stored answer is shown whole."""
    rig = open_rig(tmp_path / "store")
    try:
        rig.say(synthesizer="Which answer?", validator="no JSON")
        key = rig.start()
        with pytest.raises(typer.Exit):
            turn_commands.run_and_show(rig.app, key, as_json=False)
        capsys.readouterr()
        rig.say(validator=APPROVE)
        turn_commands.run_and_show(rig.app, key, as_json=False, resumed=True)
    finally:
        rig.app.close()
    assert capsys.readouterr().out == "Which answer?\n"


def test_a_reader_that_goes_away_takes_nothing_from_the_turn(tmp_path, monkeypatch):
    """A closed pipe is met once and spoken to no more; the turn is saved."""
    rig, tried = open_rig(tmp_path / "store"), []

    def closed(*result, **_):
        tried.append(result)
        raise BrokenPipeError

    try:
        key = rig.start()
        speaking = AnswerPrinter()
        monkeypatch.setattr("pandora_dagster.cli.output.typer.echo", closed)
        rig.app.with_listener(speaking).run_turn(key, on_report=lambda _: None)
        assert rig.app.turns.manifest(key).state == "saved" and len(tried) == 1
    finally:
        rig.app.close()
