"""What went wrong, grouped; corrections; a brief for whoever edits the prompt; calls that become tests."""

import pytest
from typer.testing import CliRunner

from pandora_dagster.cli.app import app
from pandora_dagster.contracts.corrections import Correction
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.errors import DocumentError, InputError, UnknownTurnError
from pandora_dagster.governance.correcting import correct
from pandora_dagster.governance.failures import failures_of, grouped
from pandora_dagster.governance.figures import Outcome
from pandora_dagster.governance.lessons import brief
from pandora_dagster.wiring.evaluating import open_corrections, open_evaluation
from pandora_dagster.wiring.evaluating import tests_made as made_tests
from tests.defs.conftest import call
from tests.phases.rig import Rig, open_rig

BAD = '{"decision": "MAYBE"}'
SAID = "the desk cost 429 euros, not 389"


@pytest.fixture
def rig(tmp_path):
    made = open_rig(tmp_path / "store")
    yield made
    made.house.close()


def test_each_failure_is_counted_once_under_its_cause():
    """A halt by its intervention, not by its call's gates too; what passed after retries is one; a clean call is none."""
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
    said = Correction(
        id="cor_1", user_id="ann", turn_id="turn_000001", phase="response", recipe="writer", recipe_version="cd", said=SAID, at="2026"
    )
    groups = grouped(failures_of(records, [halt], [said], lambda record: Outcome(True, sent_back=True)))
    assert {(g.recipe, g.cause): g.count for g in groups} == {
        ("reflection", "halted: schema_violation"): 1,
        ("reflection", "gate: evidence_required"): 1,
        ("reflection", "failed"): 1,
        ("reflection", "retried"): 1,
        ("writer", "nothing found"): 1,
        ("writer", "sent back"): 1,
        ("writer", "corrected"): 1,
    }
    text = brief("pipeline/writer", [g for g in groups if g.recipe == "writer"])
    assert "## corrected: 1 (cd)" in text and f"ann:turn_000001: {SAID}" in text


def test_many_failures_keep_their_newest_examples():
    """Their number is told; five stand for them."""
    records = (call("reflection", "reflection", call_id=f"c{n}", retries=1, timestamp=f"2026-01-{n:02}T00:00:00Z") for n in range(1, 29))
    (group,) = grouped(failures_of(records, [], [], lambda record: None))
    assert (group.count, [one.call_id for one in group.examples]) == (28, ["c28", "c27", "c26", "c25", "c24"])


def test_a_correction_is_put_down_to_who_wrote_it(rig: Rig):
    """The recipe and version of the answer, or of the phase that is named; the turn's calls did not come to good."""
    key = rig.ask()
    manifest = rig.turn(key).manifest
    files = open_corrections(rig.house)
    made = correct(key, manifest, f" {SAID} password=hunter22 ", files)
    assert (made.recipe, made.said) == ("synthesizer_chat", f"{SAID} password=[redacted]")
    assert correct(key, manifest, "ask first", files, phase="reflection").recipe == "reflection"
    assert len(files.of_user(key.user)) == 2
    share = open_evaluation(rig.house).window("synthesizer_chat", made.recipe_version).shares["downstream"]
    assert (share.good, share.of) == (0, 1)


@pytest.mark.parametrize(
    ("phase", "said", "says"), [("response", " ", "empty"), ("sleeping", "x", "no recipe ran there"), ("saved_turn", "x", "no recipe")]
)
def test_a_correction_of_nothing_is_refused(rig: Rig, phase: str, said: str, says: str):
    """Empty words, a phase that is none, one that asks no model."""
    key = rig.ask()
    with pytest.raises(InputError, match=says):
        correct(key, rig.turn(key).manifest, said, open_corrections(rig.house), phase=phase)


def test_an_imported_turn_has_no_recipe_to_correct(rig: Rig):
    """Nobody's prompt wrote it."""
    rig.house.import_example()
    key = rig.house.turns.resolve("example:turn_000001")
    with pytest.raises(InputError, match="it was imported"):
        correct(key, rig.turn(key).manifest, SAID, open_corrections(rig.house))


def test_a_damaged_correction_is_named(rig: Rig, tmp_path):
    """It is not passed over in silence."""
    key = rig.ask()
    made = correct(key, rig.turn(key).manifest, SAID, open_corrections(rig.house))
    path = tmp_path / "store" / "users" / "anna" / "corrections" / f"{made.id}.json"
    path.write_text("{}")
    with pytest.raises(DocumentError, match=str(path)):
        open_corrections(rig.house).of_user(key.user)


def test_failures_of_a_day_and_lessons_of_a_recipe(rig: Rig):
    """Over a real store: a halt and a correction of today, none of another day."""
    rig.say(reflection=BAD)
    rig.ask()
    day = rig.house.kit.clock().date().isoformat()
    evaluation = open_evaluation(rig.house)
    assert [(g.recipe, g.cause, g.count) for g in evaluation.failures(day)] == [("reflection", "halted: schema_violation", 1)]
    assert evaluation.failures("2026-01-01") == ()
    assert [g.cause for g in evaluation.lessons("reflection", last=10)] == ["halted: schema_violation"]


def test_a_call_becomes_a_test_that_is_erased_with_its_person(rig: Rig, tmp_path):
    """What it must say and lack is in it; the same test lies there once; a call that is not there makes none."""
    rig.ask()
    recipe = "pipeline/phase1_reflection"
    record = next(rig.house.calls.newest("reflection", limit=1))
    first = made_tests(rig.house, recipe, [record.call_id], facts=["PROCEED"], lacks=["CLARIFY"], last=10)
    again = made_tests(rig.house, recipe, [record.call_id], facts=["PROCEED"], lacks=["CLARIFY"], last=10)
    assert first == again and f"/users/anna/recipe_tests/{recipe}/" in first[0]
    with pytest.raises(InputError, match="no call of"):
        made_tests(rig.house, recipe, [record.call_id, "call_x"], facts=["other"], lacks=[], last=10)
    environment = {"PANDORA_ROOT": str(tmp_path / "store")}
    told = CliRunner(env=environment).invoke(app, ["recipes", "test", "reflection", "--user", "anna"], prog_name="pandora")
    assert "3 tests of 1 recipes" in told.stderr


def test_the_commands_say_what_they_did(rig: Rig, tmp_path):
    """`correct` and `lessons`, and an erased turn."""
    key = rig.ask()

    def pandora(*arguments: str):
        return CliRunner(env={"PANDORA_ROOT": str(tmp_path / "store")}).invoke(app, list(arguments), prog_name="pandora")

    assert "noted for synthesizer_chat@" in pandora("correct", str(key), SAID).stdout
    assert "## corrected: 1" in pandora("recipes", "lessons", "synthesizer_chat").stdout
    assert pandora("recipes", "lessons", "synthesizer_chat", "--fact", "x").exit_code == 2
    assert isinstance(pandora("correct", "anna:turn_000999", SAID).exception, UnknownTurnError)
