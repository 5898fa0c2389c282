"""The job `new_turn`: nobody types a partition key."""

import dagster as dg
import pytest

from pandora_dagster.defs.turn.turn_jobs import new_turn_job
from pandora_dagster.errors import BadIdError

ASKED = {"query": "What did it cost?", "user": "bob", "mode": "chat", "session": "s1"}


@pytest.fixture
def ask(graph):
    def run(**changed):
        job = new_turn_job(graph.assets)
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


def test_a_new_turn_gets_its_partition_and_a_run_of_the_turn_job(graph, ask):
    """One run of `new_turn`, one of `turn`, both found by the turn."""
    assert ask().success
    assert graph.phases.started == [("What did it cost?", "bob", "s1", "chat")]
    assert list(graph.instance.get_dynamic_partitions("turns")) == ["bob:turn_000001"]
    runs = graph.instance.get_runs(filters=dg.RunsFilter(tags={"pandora/turn": "turn_000001", "pandora/user": "bob"}))
    assert sorted(r.job_name for r in runs) == ["new_turn", "turn"]
    assert all(r.status is dg.DagsterRunStatus.SUCCESS for r in runs)


def test_the_answer_stands_on_the_run(graph, ask):
    """Who started the turn need not look for it."""
    result = ask()
    output = next(e for e in result.events_for_node("ask") if e.is_successful_output)
    assert output.step_output_data.metadata["answer"].value == "What **response** wrote."
    assert output.step_output_data.metadata["turn"].value == "bob:turn_000001"


def test_a_halt_of_the_turn_fails_new_turn_too(graph, ask, halt):
    """The run that the user looks at says which intervention stopped it."""
    graph.phases.halts = {"response": halt}
    failed = ask().failure_data_for_node("ask")
    assert failed.user_failure_data.metadata["intervention"].value == "int_0002"


def test_a_bad_user_is_refused_before_anything_is_there(graph, ask):
    """A wrong launchpad value is one sentence, and leaves no partition."""
    graph.phases.raises = {"start": BadIdError("user id '../x': expected letters")}
    failed = ask(user="../x").failure_data_for_node("ask")
    assert failed.user_failure_data.description == "new_turn: user id '../x': expected letters"
    assert not graph.instance.get_dynamic_partitions("turns")


def test_an_error_inside_the_turn_is_reported(graph, ask):
    """A phase that breaks without a HALT names its error on the run of `new_turn`."""
    graph.phases.raises = {"turn_request": BadIdError("turn id: broken")}
    assert "turn id: broken" in ask().failure_data_for_node("ask").user_failure_data.description


def test_the_launchpad_opens_with_an_example(graph):
    """The default configuration runs as it stands."""
    job = new_turn_job(graph.assets)
    done = job.execute_in_process(instance=graph.instance, resources={"pandora": graph.phases})
    assert done.success
    assert graph.phases.started[0][1:] == ("example", "", "chat")
