"""One phase as one asset: what is materialised, skipped, or red."""

from dataclasses import replace

import dagster as dg
import pytest

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.defs.turn.phase_assets import turn_assets
from pandora_dagster.defs.turn.phase_checks import COMPRESSION_CHECK, WARNING_CHECKS
from pandora_dagster.defs.turn.phase_metadata import retry_command
from pandora_dagster.errors import UnknownTurnError

STRAIGHT = [
    "turn_request",
    "query_analysis",
    "reflection",
    "retrieval_plan",
    "gathered_context",
    "task_plan",
    "tool_results",
    "response",
    "validation",
    "saved_turn",
    "turn_summary",
    "conversation_summary",
    "session_facts",
]


def test_a_turn_that_proceeds_materialises_its_phases_in_order(graph):
    """Both clarifications are skipped and the run is green."""
    outcome = graph.run()
    assert outcome.success
    assert graph.materialised(outcome.run_id) == STRAIGHT == graph.phases.ran


@pytest.mark.parametrize(
    ("asks_at", "ends"),
    [("reflection", [*STRAIGHT[:3], "clarification"]), ("task_plan", [*STRAIGHT[:6], "plan_clarification"])],
)
def test_a_turn_that_asks_back_ends_there_and_the_run_is_green(graph, asks_at, ends):
    """What follows the branch that was not taken is skipped, not failed (DECISIONS 11)."""
    graph.phases.asks_at = asks_at
    outcome = graph.run()
    assert outcome.success
    assert graph.materialised(outcome.run_id) == ends


def test_every_gate_of_every_recipe_is_recorded(graph):
    """Schema always, confidence and evidence where the recipe sets them; a phase without recipe has no check."""
    checks = graph.checks(graph.run().run_id)
    of_calls = {phase: {gate for p, gate in checks if p == phase and gate != COMPRESSION_CHECK} for phase in ("validation", "response")}
    assert of_calls["validation"] == {"schema_validation", "confidence_threshold", "evidence_required"}
    assert of_calls["response"] == {"schema_validation", "evidence_required"}
    assert not {phase for phase, _ in checks} & {"turn_request", "saved_turn"}
    assert all(checks.values())


def test_a_turn_has_at_most_30_checks_and_those_that_halt_are_blocking(graph):
    """Each check is declared where it can fail; what only warns does not block."""
    specs = [spec for asset in graph.assets for spec in asset.check_specs]
    assert 0 < len(specs) <= 30
    assert {spec.name for spec in specs if not spec.blocking} == WARNING_CHECKS


def test_a_failed_check_of_a_phase_that_goes_on_stops_nothing(graph):
    """A verdict without a HALT is a warning: the run and the phases after it go on."""
    failed = GateVerdict("confidence_threshold", False, "confidence 0.42 is under 0.7", 0.42)
    run_phase = graph.phases.run_phase
    graph.phases.run_phase = lambda name, key: replace(report, verdicts=(failed,)) if (report := run_phase(name, key)).calls else report
    outcome = graph.run()
    assert outcome.success
    assert graph.checks(outcome.run_id)["reflection", "confidence_threshold"] is False


def test_a_halt_makes_the_partition_red_and_names_its_intervention(graph, halt):
    """The failed check is recorded, the failure carries the id, and nothing after it runs."""
    graph.phases.halts = {"validation": halt}
    outcome = graph.run()
    assert not outcome.success
    assert outcome.halt == halt
    assert graph.materialised(outcome.run_id) == STRAIGHT[:8]
    assert graph.checks(outcome.run_id)[("validation", "confidence_threshold")] is False
    failure = graph.failure(outcome.run_id, "validation")
    assert "HALT at validation: confidence 0.42 is under 0.7 (intervention int_0002)" in failure.description
    assert failure.metadata["intervention"].value == "int_0002"
    assert failure.metadata["hint"].value == "Ask more precisely."
    assert failure.metadata["path"].value == "/store/users/ann/turns/turn_000811"
    status = graph.instance.get_status_by_partition(
        dg.AssetKey("validation"), [str(graph.key)], dg.DynamicPartitionsDefinition(name="turns")
    )
    assert status is not None
    assert {k: v.value for k, v in status.items()} == {"ann:turn_000811": "FAILED"}


@pytest.mark.parametrize(("kind", "way"), [(InterventionType.NEEDS_APPROVAL, "--approve"), (InterventionType.BUDGET_EXCEEDED, "--retry")])
def test_a_halt_names_the_command_that_resolves_it(halt, kind, way):
    assert retry_command(halt.model_copy(update={"type": kind})).value == f"`pandora interventions resolve {halt.id} {way}`"


@pytest.mark.parametrize("kind", [InterventionType.BUDGET_EXCEEDED, InterventionType.RUNTIME_UNREACHABLE])
def test_a_halt_that_no_check_reports_fails_the_step_and_no_check(graph, halt, kind):
    """A budget or an unreachable runtime says nothing about the schema of an answer."""
    graph.phases.halts = {"gathered_context": halt.model_copy(update={"type": kind, "message": "112 over"})}
    outcome = graph.run()
    assert all(passed for (phase, _), passed in graph.checks(outcome.run_id).items() if phase == "gathered_context")
    assert "HALT at gathered_context: 112 over" in graph.failure(outcome.run_id, "gathered_context").description
    status = graph.instance.get_status_by_partition(
        dg.AssetKey("gathered_context"), [str(graph.key)], dg.DynamicPartitionsDefinition(name="turns")
    )
    assert {k: v.value for k, v in (status or {}).items()} == {"ann:turn_000811": "FAILED"}


def test_a_halted_turn_goes_on_from_where_it_stopped(graph, halt):
    """Materialising the halted phase and what follows takes the turn to its end."""
    graph.phases.halts = {"task_plan": halt}
    graph.run()
    graph.phases.halts = {}
    outcome = graph.run(select=("task_plan",))
    assert outcome.success
    assert graph.materialised(outcome.run_id) == STRAIGHT[5:]


def test_one_phase_can_run_alone(graph):
    """The UI materialises a single asset of an existing turn."""
    graph.run()
    job = dg.Definitions(graph.assets, resources={"pandora": graph.phases}).resolve_implicit_global_asset_job_def()
    again = job.execute_in_process(instance=graph.instance, partition_key=str(graph.key), asset_selection=[dg.AssetKey("gathered_context")])
    assert again.success
    assert graph.phases.ran[-1] == "gathered_context"
    assert graph.materialised(again.run_id) == ["gathered_context"]


def test_a_broken_recipe_halts_its_phase(graph, recipes, halt):
    """The asset of a recipe that cannot be loaded is there, and running it is a HALT."""
    recipes.broken = ("pipeline/phase2_retrieval",)
    graph.phases.halts = {"retrieval_plan": halt.model_copy(update={"type": InterventionType.CONFIG_ERROR})}
    broken = type(graph)(turn_assets(recipes), graph.phases, graph.instance, graph.key)
    outcome = broken.run()
    assert not outcome.success
    assert outcome.halt.type is InterventionType.CONFIG_ERROR
    assert graph.materialised(outcome.run_id) == STRAIGHT[:3]


def test_an_error_of_the_project_is_one_clear_sentence(graph):
    """A partition key that names no turn fails with the store's message, and the caller gets the error itself."""
    graph.phases.raises = {"turn_request": UnknownTurnError("ann:turn_000811: no such turn", hint="List them: pandora turns")}
    outcome = graph.run()
    assert isinstance(outcome.error, UnknownTurnError)
    failure = graph.failure(outcome.run_id, "turn_request")
    assert failure.description == "turn_request: ann:turn_000811: no such turn"
    assert failure.metadata["hint"].value == "List them: pandora turns"


@pytest.mark.parametrize("from_the_ui", [False, True])
def test_a_run_is_found_by_user_session_and_turn(graph, from_the_ui):
    """The tags stand on the run whether its starter knew the turn or only the partition."""
    if from_the_ui:
        graph.instance.add_dynamic_partitions("turns", [str(graph.key)])
        job = dg.Definitions(graph.assets, resources={"pandora": graph.phases}).resolve_implicit_global_asset_job_def()
        run_id = job.execute_in_process(
            instance=graph.instance, partition_key=str(graph.key), asset_selection=[dg.AssetKey("reflection")]
        ).run_id
    else:
        run_id = graph.run().run_id
    tags = graph.instance.get_run_by_id(run_id).tags
    assert {k: v for k, v in tags.items() if k.startswith("pandora/")} == {
        "pandora/user": "ann",
        "pandora/session": "s1",
        "pandora/turn": "turn_000811",
    }
