"""What went wrong, grouped; corrections; a brief for whoever edits the prompt; calls that become tests."""

import json
import re

import pytest
from typer.testing import CliRunner

from pandora_dagster.app.evaluation import make_tests as made_tests
from pandora_dagster.app.evaluation import open_evaluation
from pandora_dagster.cli.program import command_line
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.recipe_schema import RecipeTest
from pandora_dagster.contracts.retention import ErasureIntent
from pandora_dagster.errors import DocumentError, InputError, StoreError, UnknownTurnError
from pandora_dagster.governance.call_metrics import TurnOutcome
from pandora_dagster.governance.recipe_failures import find_failures, group_failures, render_failure_brief
from pandora_dagster.governance.turn_outcomes import attribute_correction
from pandora_dagster.phases.flow.turn_flow import run_phase
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.records.recipe_feedback import RecipeTestFiles
from tests.archive.archived_store import LATER, archived
from tests.defs.conftest import call
from tests.phases.rig import COMPLETE, Rig, command, open_rig, plan, tool

BAD = '{"decision": "MAYBE"}'
SAID = "the desk cost 429 euros, not 389"


@pytest.fixture
def rig(tmp_path):
    made = open_rig(tmp_path / "store")
    yield made
    made.app.close()


def test_each_failure_is_counted_once_under_its_cause():
    """A halt by its intervention, not by its call's gates too; what passed after retries is one; a clean call and a question
    to the user are none."""
    records = [
        call("reflection", "reflection", call_id="c1", success=False, gates={"schema_validation": False}),
        call("reflection", "reflection", call_id="c2", success=False, gates={"evidence_required": False}, error="cites nothing"),
        call("reflection", "reflection", call_id="c3", success=False, error="unreachable"),
        call("reflection", "reflection", call_id="c4", retries=2),
        call("reflection", "reflection", call_id="c5"),
        call("response", "writer", call_id="c6", answered=False),
    ]
    halt = Intervention(
        id="int_1", type="schema_violation", message="no JSON", recipe="reflection", recipe_version="ab12", call_id="c1", created_at="2026"
    )
    report = Correction(
        id="cor_1", user_id="ann", turn_id="turn_000001", phase="response", recipe="writer", recipe_version="cd", said=SAID, at="2026"
    )
    question = halt.model_copy(update={"id": "int_2", "type": InterventionType.NEEDS_APPROVAL, "call_id": "c5"})
    groups = group_failures(find_failures(records, [halt, question], [report], lambda record: TurnOutcome(True, sent_back=True)))
    assert {(g.recipe, g.cause): g.count for g in groups} == {
        ("reflection", "halted: schema_violation"): 1,
        ("reflection", "gate: evidence_required"): 1,
        ("reflection", "failed"): 1,
        ("reflection", "retried"): 1,
        ("writer", "nothing found"): 1,
        ("writer", "sent back"): 1,
        ("writer", "corrected"): 1,
    }
    text = render_failure_brief("pipeline/writer", [g for g in groups if g.recipe == "writer"])
    assert "## corrected: 1 (cd)" in text and f"ann:turn_000001: {SAID}" in text


def test_many_failures_keep_their_newest_examples():
    """Their number is reported; five stand for them."""
    records = (call("reflection", "reflection", call_id=f"c{n}", retries=1, timestamp=f"2026-01-{n:02}T00:00:00Z") for n in range(1, 29))
    (group,) = group_failures(find_failures(records, [], [], lambda record: None))
    assert (group.count, [one.call_id for one in group.examples]) == (28, ["c28", "c27", "c26", "c25", "c24"])


def test_a_correction_is_put_down_to_who_wrote_it(rig: Rig):
    """The recipe and version of the answer, or of the phase that is named; the turn's calls did not come to good."""
    key = rig.ask()
    manifest = rig.turn(key).manifest
    files = rig.app.records.corrections
    made = attribute_correction(key, manifest, f" {SAID} password=hunter22 ", files)
    assert (made.recipe, made.said) == ("synthesizer_chat", f"{SAID} password=[redacted]")
    assert attribute_correction(key, manifest, "ask first", files, phase="reflection").recipe == "reflection"
    assert len(files.of_user(key.user)) == 2
    share = open_evaluation(rig.app).window("synthesizer_chat", made.recipe_version).shares["downstream"]
    assert (share.good, share.total) == (0, 1)


def test_a_correction_says_whose_words_were_wrong(rig: Rig):
    """Where several recipes ran in a phase; its call is the newest one of that recipe."""
    rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("memory.query", query="chair"))
    key = rig.ask()
    manifest, files = rig.turn(key).manifest, rig.app.records.corrections
    calls = rig.app.calls.of_turn(key, manifest.revision)
    names = [record.recipe for record in calls if record.phase == "tool_results"]
    assert len(set(names)) == 2
    with pytest.raises(InputError, match="several recipes ran there: expected one of") as refused:
        attribute_correction(key, manifest, SAID, files, phase="tool_results", calls=calls)
    assert "--recipe" in refused.value.hint
    with pytest.raises(InputError, match="reflection did not run there"):
        attribute_correction(key, manifest, SAID, files, phase="tool_results", recipe="reflection", calls=calls)
    for name in set(names):
        made = attribute_correction(key, manifest, SAID, files, phase="tool_results", recipe=name, calls=calls)
        assert (made.recipe, made.call_id) == (name, [c.call_id for c in calls if c.recipe == name][-1])


@pytest.mark.parametrize(
    ("phase", "text", "message"), [("response", " ", "empty"), ("sleeping", "x", "no recipe ran there"), ("saved_turn", "x", "no recipe")]
)
def test_a_correction_of_nothing_is_refused(rig: Rig, phase: str, text: str, message: str):
    """Empty words, a phase that is none, one that asks no model."""
    key = rig.ask()
    with pytest.raises(InputError, match=message):
        attribute_correction(key, rig.turn(key).manifest, text, rig.app.records.corrections, phase=phase)


def test_an_imported_turn_has_no_recipe_to_correct(rig: Rig):
    """Nobody's prompt wrote it."""
    rig.app.transfer.import_example()
    key = rig.app.turns.resolve("example:turn_000001")
    with pytest.raises(InputError, match="it was imported"):
        attribute_correction(key, rig.turn(key).manifest, SAID, rig.app.records.corrections)


def test_a_damaged_correction_is_named(rig: Rig, tmp_path):
    """It is not passed over in silence."""
    key = rig.ask()
    made = attribute_correction(key, rig.turn(key).manifest, SAID, rig.app.records.corrections)
    path = tmp_path / "store" / "users" / "anna" / "corrections" / f"{made.id}.json"
    path.write_text("{}")
    with pytest.raises(DocumentError, match=str(path)):
        rig.app.records.corrections.of_user(key.user)


def test_failures_of_a_day_and_lessons_of_a_recipe(rig: Rig):
    """Over a real store: a halt and a correction of today, none of another day."""
    answered = rig.ask()
    attribute_correction(answered, rig.turn(answered).manifest, SAID, rig.app.records.corrections)
    rig.say(reflection=BAD)
    rig.ask(session="s2")
    day = rig.app.dependencies.clock().date().isoformat()
    evaluation = open_evaluation(rig.app)
    assert [(g.recipe, g.cause, g.count) for g in evaluation.failures(day)] == [
        ("reflection", "halted: schema_violation", 1),
        ("synthesizer_chat", "corrected", 1),
    ]
    assert evaluation.failures("2026-01-01") == ()
    assert [g.cause for g in evaluation.lessons("reflection", last=10)] == ["halted: schema_violation"]


def test_a_call_becomes_a_test_that_is_erased_with_its_user(rig: Rig, tmp_path):
    """What it must say and lack is in it; the same test lies there once; a call that is not there makes none."""
    rig.ask()
    recipe = "pipeline/phase1_reflection"
    record = next(rig.app.calls.newest("reflection", limit=1))
    first = made_tests(rig.app, recipe, [record.call_id], facts=["PROCEED"], lacks=["CLARIFY"], last=10)
    again = made_tests(rig.app, recipe, [record.call_id], facts=["PROCEED"], lacks=["CLARIFY"], last=10)
    assert first == again and f"/users/anna/recipe_tests/{recipe}/" in first[0]
    with pytest.raises(InputError, match="no call of"):
        made_tests(rig.app, recipe, [record.call_id, "call_x"], facts=["other"], lacks=[], last=10)
    environment = {"PANDORA_ROOT": str(tmp_path / "store")}
    result = CliRunner(env=environment).invoke(command_line, ["recipes", "test", "reflection", "--user", "anna"], prog_name="pandora")
    assert "3 tests of 1 recipe" in result.stderr


def test_what_is_reported_of_a_user_who_was_erased_is_refused(rig: Rig, tmp_path):
    """A turn or a call that was looked up before: neither a correction nor a test brings the user's folder back."""
    key = rig.ask()
    manifest = rig.turn(key).manifest
    files, tests = rig.app.records.corrections, RecipeTestFiles(tmp_path / "store")
    test = RecipeTest(name="t", query="q", facts=("x",))
    kept, answer = files.add(key, revision=0, phase="response", recipe="r", recipe_version="v", text=SAID), "429.00 euros, as ordered"
    path = tests.add(key.user, "pipeline/phase1_reflection", test.model_copy(update={"facts": (answer,)}))
    assert answer in path.read_text() and SAID in (tmp_path / "store/users/anna/corrections" / f"{kept.id}.json").read_text()
    erasures = ErasureIntents(tmp_path / "store")
    erasures.write_intent(ErasureIntent(user_id=key.user, begun_at="2026-01-04T15:00:00Z"))
    for act in (lambda: attribute_correction(key, manifest, SAID, files), lambda: tests.add(key.user, "pipeline/phase1_reflection", test)):
        with pytest.raises(StoreError, match="is being erased"):
            act()
    assert CliRunner(env={"PANDORA_ROOT": str(tmp_path / "store")}).invoke(command_line, ["forget", "anna", "--yes"]).exit_code == 0
    for act in (lambda: attribute_correction(key, manifest, SAID, files), lambda: tests.add(key.user, "pipeline/phase1_reflection", test)):
        with pytest.raises(InputError, match=r"is gone|was deleted"):
            act()
    left = [p for p in (tmp_path / "store").rglob("*") if p.is_file()]
    assert not (tmp_path / "store" / "users" / "anna").exists()
    assert [p for p in left if SAID.encode() in p.read_bytes() or answer.encode() in p.read_bytes()] == []


def test_an_archived_turn_can_be_corrected(rig: Rig):
    """Its correction counts against the version that wrote it, in scores and lessons."""
    key = rig.ask()
    archived(rig.app, after=LATER)
    manifest = rig.turn(key).manifest
    assert manifest.state == "archived"
    made = attribute_correction(key, manifest, SAID, rig.app.records.corrections, calls=rig.app.calls.of_turn(key, manifest.revision))
    assert made.call_id.startswith("call_")
    evaluation = open_evaluation(rig.app)
    share = evaluation.window(made.recipe, made.recipe_version).shares["downstream"]
    assert (share.good, share.total) == (0, 1)
    assert [(g.cause, g.count) for g in evaluation.lessons(made.recipe, last=10)] == [("corrected", 1)]


def test_the_commands_say_what_they_did(rig: Rig, tmp_path):
    """`correct` and `lessons`, and an erased turn."""
    key = rig.ask()

    def pandora(*arguments: str):
        return CliRunner(env={"PANDORA_ROOT": str(tmp_path / "store")}).invoke(command_line, list(arguments), prog_name="pandora")

    assert "noted for synthesizer_chat@" in pandora("correct", str(key), SAID).stdout
    lessons = pandora("recipes", "lessons", "synthesizer_chat").stdout
    assert "## corrected: 1" in lessons
    call = re.search(rf"{key}, (call_\w+): {SAID}", " ".join(lessons.split()))
    assert call is not None, "a correction names its call, so that it can become a test"
    assert "/recipe_tests/" in pandora("recipes", "lessons", "synthesizer_chat", "--to-tests", call[1], "--fact", "429 euros").stdout
    assert pandora("recipes", "lessons", "synthesizer_chat", "--fact", "x").exit_code == 2
    proposed = pandora("recipes", "lessons", "synthesizer_chat", "--propose")
    assert proposed.exit_code == 0 and "no change is proposed" in proposed.output
    assert json.loads(pandora("recipes", "lessons", "synthesizer_chat", "--propose", "--json").stdout)[0]["proposed"] == []
    assert isinstance(pandora("correct", "anna:turn_000999", SAID).exception, UnknownTurnError)


def test_a_correction_names_its_call_though_another_phase_ran_again(rig: Rig):
    """The call is of the revision before."""
    key = rig.ask()
    rig.app.run(run_phase("turn_summary", key, rig.app.dependencies))
    assert rig.turn(key).manifest.revision == 1
    report = CliRunner(env={"PANDORA_ROOT": str(rig.app.settings.root)}).invoke(
        command_line, ["correct", str(key), "not in May"], prog_name="pandora"
    )
    assert report.exit_code == 0, report.output
    (made,) = rig.app.records.corrections.of_user(key.user)
    (call,) = [c for c in rig.app.calls.of_turn(key, 0) if c.call_id == made.call_id]
    assert call.recipe == made.recipe
