"""The job `new_turn`: nobody types a partition key."""

import dagster as dg
import pytest

from pandora_dagster.defs.turn.turn_jobs import new_turn_job
from pandora_dagster.errors import BadIdError

ASKED = {"query": "What did it cost?", "user": "bob", "mode": "chat", "session": "s1"}


@pytest.fixture
def ask(graph, recipes):
    def run(**changed):
        job = new_turn_job(recipes)
        return job.execute_in_process(
            instance=graph.instance,
            resources={"pandora": graph.phases},
            run_config={
                "ops": {"ask": {"config": ASKED | changed}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            raise_on_error=False,
        )

    return run


def test_a_new_turn_gets_its_partition_and_one_run_with_a_step_for_each_phase(graph, ask):
    """One run shows every phase as a step; it is found by the turn, and the phases' assets name it."""
    assert ask().success
    assert graph.phases.started == [("What did it cost?", "bob", "s1", "chat")]
    assert list(graph.instance.get_dynamic_partitions("turns")) == ["bob:turn_000001"]
    runs = graph.instance.get_runs(filters=dg.RunsFilter(tags={"pandora/turn": "turn_000001", "pandora/user": "bob"}))
    assert [(r.job_name, r.status) for r in runs] == [("new_turn", dg.DagsterRunStatus.SUCCESS)]
    assert graph.materialised(runs[0].run_id) == graph.phases.ran
    assert graph.checks(runs[0].run_id)["reflection", "confidence_threshold"] is True
    logged = [e.user_message for e in graph.instance.all_logs(runs[0].run_id) if not e.is_dagster_event]
    assert any(line.startswith("response: 1 call, 500 tokens") for line in logged)


def test_a_credential_in_the_question_leaves_the_configuration_of_the_run(graph, ask):
    """The turn gets the question as it was typed; Dagster keeps it without the credential."""
    assert ask(query="The password: Tr0ub4dor&3xyz is whose?").success
    assert graph.phases.started[0][0] == "The password: Tr0ub4dor&3xyz is whose?"
    (run,) = graph.instance.get_runs()
    assert run.run_config["ops"]["ask"]["config"] == {**ASKED, "query": "The password: [redacted] is whose?"}
    assert run.tags["pandora/turn"] == "turn_000001" and run.status == dg.DagsterRunStatus.SUCCESS


def test_a_halt_fails_the_step_of_its_phase(graph, ask, halt):
    """The run that the user looks at says which intervention stopped it; the partition of the phase is failed."""
    graph.phases.halts = {"response": halt}
    failed = ask().failure_data_for_node("run_response")
    assert failed.user_failure_data.metadata["intervention"].value == "int_0002"
    status = graph.instance.get_status_by_partition(
        dg.AssetKey("response"), ["bob:turn_000001"], dg.DynamicPartitionsDefinition(name="turns")
    )
    assert {name: found.value for name, found in status.items()} == {"bob:turn_000001": "FAILED"}


def test_a_turn_that_asks_back_skips_the_other_branch(graph, ask):
    """The run is green, and what follows the branch that was not taken did not run."""
    graph.phases.asks_at = "reflection"
    assert ask().success
    assert graph.phases.ran[-1] == "clarification"


def test_a_bad_user_is_refused_before_anything_is_there(graph, ask):
    """A wrong launchpad value is one sentence, and leaves no partition."""
    graph.phases.raises = {"start": BadIdError("user id '../x': expected letters")}
    failed = ask(user="../x").failure_data_for_node("ask")
    assert failed.user_failure_data.description == "new_turn: user id '../x': expected letters"
    assert not graph.instance.get_dynamic_partitions("turns")


def test_an_error_inside_the_turn_is_reported(graph, ask):
    """A phase that breaks without a HALT names its error on its step."""
    graph.phases.raises = {"turn_request": BadIdError("turn id: broken")}
    assert "turn id: broken" in ask().failure_data_for_node("run_turn_request").user_failure_data.description


def test_the_launchpad_opens_with_an_example(graph, recipes):
    """The default configuration runs as it stands."""
    job = new_turn_job(recipes)
    done = job.execute_in_process(instance=graph.instance, resources={"pandora": graph.phases})
    assert done.success
    assert graph.phases.started[0][1:] == ("example", "", "chat")
