"""The graph over the real house: store, recipes, embedded runtime and Dagster's records on a disk."""

import json
import shutil

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.enums import InterventionType, TurnState
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.defs.turn.turn_run import add_partitions, report_turn
from pandora_dagster.phases.core.phase_report import TimedReports
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder
from tests.defs.conftest import timed

SYNTHESIZER = "recipes/pipeline/phase5_synthesizer_chat.yaml"


@pytest.fixture
def recipes_folder(tmp_path):
    """A copy of the shipped recipes and prompts that a test may break."""
    for part in ("recipes", "prompts"):
        shutil.copytree(shipped_folder() / part, tmp_path / "edited" / part)
    return tmp_path / "edited"


@pytest.fixture
def app(tmp_path, recipes_folder):
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_RECIPES": str(recipes_folder)}))
    yield opened
    opened.close()


@pytest.fixture
def asked(app):
    return app.start("The oak chair cost 240 dollars.", user="ann", session="s1", mode="chat")


def test_a_real_turn_ends_saved_and_shows_its_answer(app, asked):
    """The answer that stands in context.md is what Dagster shows, beside the recipe that made it."""
    run_id, reports = ran(app, asked)
    with open_instance(app.settings) as instance:
        run = instance.get_run_by_id(run_id)
        assert (run.status, run.job_name, run.tags["pandora/turn"]) == (dg.DagsterRunStatus.SUCCESS, "turn", asked.turn_id)
        assert [r.phase for r in reports] == [
            e.dagster_event.step_key for e in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        ]
    assert app.dependencies.turns.manifest(asked).state is TurnState.SAVED
    shown = _shown(app, "response")
    assert shown["section"] in app.dependencies.turns.load(asked).context
    assert f"| {app.dependencies.recipes.get('pipeline/phase5_synthesizer', 'chat').version}/" in shown["calls"]
    assert shown["path"] == app.dependencies.turns.path(asked)


def test_a_turn_that_compresses_shows_what_became_of_every_fact(app):
    """A prior turn over its 1,500 tokens: figures, verdict counts, the table of facts and both texts in Dagster, the checks green."""
    filler = "We all talked about how nice the weather had been and what everybody was going to do at the weekend with their families."
    text = "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {filler}" for n in range(1, 60))
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    fields = {"id": "s1", "user_id": "ann", "created_at": "2026-01-04T10:00:00Z", "messages": messages}
    app.transfer.import_conversations([json.dumps(fields).encode()], where="test")
    _, reports = ran(app, app.start("What was chair CH3100X sold for?", user="ann", session="s1", mode="chat"))
    report = next(r for r in reports if r.phase == "gathered_context")
    row, shown = report.facts["compressions"][0], _shown(app, "gathered_context")
    assert row["tokens_after"] <= 1_500 < row["tokens_before"] and row["ratio"] < 0.8
    assert row["facts"] == sum(row[o] for o in ("kept", "equal", "recoverable", "dropped_by_rule", "missing", "mutated")) > 100
    assert (shown["compression_tokens_before"], shown["compression_tokens_after"]) == (row["tokens_before"], row["tokens_after"])
    assert f"| {row['tokens_before']} | {row['tokens_after']} |" in shown["compressions"]
    assert len(shown["compressed_facts"].records) == len(report.facts["compressed_facts"]) > 100
    assert filler in shown["compression_before"] and "$3149.00" in shown["compression_after"]
    checks = {v.gate: v.passed for v in report.verdicts}
    assert [row[gate] for gate in ("no_fact_changed", "within_budget", "is_a_summary")] == [True] * 3
    assert checks["no_fact_changed"] and checks["within_budget"] and checks["is_a_summary"]


def test_a_recipe_broken_on_the_disk_halts_and_the_mended_one_goes_on(app, asked, recipes_folder):
    """HALT with a config_error; after the repair the turn is taken up where it stopped."""
    sound = (recipes_folder / SYNTHESIZER).read_text()
    (recipes_folder / SYNTHESIZER).write_text(f"{sound}\ncolour: red\n")
    run_id, reports = ran(app, asked)
    with open_instance(app.settings) as instance:
        assert instance.get_run_by_id(run_id).status is dg.DagsterRunStatus.FAILURE
    assert reports[-1].halt.type is InterventionType.CONFIG_ERROR
    assert app.dependencies.turns.manifest(asked).state is TurnState.HALTED
    (recipes_folder / SYNTHESIZER).write_text(sound)
    _, reports = ran(app, asked)
    assert reports[0].phase == "response"
    assert app.dependencies.turns.manifest(asked).state is TurnState.SAVED


def test_a_chat_turn_and_imported_turns_are_known_to_dagster_afterwards(app, asked):
    """What ran outside Dagster's runs has materialisations; what was only added has a partition."""
    reports = timed(app.run(_phase(app, name, asked)) for name in ("turn_request", "query_analysis"))
    report_turn(app, asked, reports)
    add_partitions(app, [type(asked)(asked.user, 7)])
    with open_instance(app.settings) as instance:
        assert instance.get_materialized_partitions(dg.AssetKey("query_analysis")) == {str(asked)}
        assert sorted(instance.get_dynamic_partitions("turns")) == ["ann:turn_000001", "ann:turn_000007"]


def ran(app, key):
    """The id of the turn's run and its reports: the phases, then their record."""
    reports = TimedReports()
    app.run_turn(key, on_report=reports.append)
    return report_turn(app, key, reports), reports


async def _phase(app, name, key):
    from pandora_dagster.phases.flow.turn_flow import run_phase

    return await run_phase(name, key, app.dependencies)


def _shown(app, phase):
    with open_instance(app.settings) as instance:
        found = instance.get_latest_materialization_event(dg.AssetKey(phase)).asset_materialization
    return {name: value.value for name, value in found.metadata.items()}
