"""The assets of prompts over figures that a test makes up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.defs.intervention_events import interventions_sensor
from pandora_dagster.defs.prompt_scores import CHECK, FAILURES, LAYERS, SCHEDULE, SCORES, SCORES_JOB, prompt_assets, scores_schedule
from pandora_dagster.errors import StoreError
from pandora_dagster.governance.call_metrics import CallMetrics
from pandora_dagster.governance.recipe_failures import Failure, FailureGroup, group_failures
from pandora_dagster.governance.regressions import VersionComparison, compare_versions
from pandora_dagster.settings import load_settings
from tests.defs.conftest import call, intervention
from tests.governance.test_call_metrics import made

DAY = "2026-01-04"


@dataclass
class FakeScores:
    """The evaluation in memory, and the resource that opens it."""

    by_version: Mapping[tuple[str, str, str], CallMetrics] = field(default_factory=dict)
    by_layer: Mapping[str, CallMetrics] = field(default_factory=lambda: {"MIND": made(3, 1)})
    found: Sequence[VersionComparison] = ()
    broken: bool = False
    calibrations: list[str] = field(default_factory=list)

    def open(self) -> "FakeScores":
        return self

    def versions(self, day: str) -> Mapping[tuple[str, str, str], CallMetrics]:
        if self.broken:
            raise StoreError("call_index.duckdb: damaged", hint="pandora index rebuild")
        assert day == DAY
        return self.by_version

    def layers(self, day: str) -> Mapping[str, CallMetrics]:
        return self.by_layer

    def failures(self, day: str) -> Sequence[FailureGroup]:
        return group_failures([Failure("reflection", "ab12", "retried", "2026", "c1", "ann:turn_000001", "2 retries")])

    def comparisons(self) -> Sequence[VersionComparison]:
        return self.found

    def calibrate(self) -> None:
        self.calibrations.append(DAY)


def run(scores: FakeScores, *, fails: bool = False) -> dg.ExecuteInProcessResult:
    settings = load_settings({"PANDORA_ROOT": str(Path("/nowhere"))})
    result = dg.materialize(prompt_assets(settings), partition_key=DAY, resources={"scores": scores}, raise_on_error=not fails)
    assert result.success is not fails
    return result


def checked(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    return next(e for e in result.get_asset_check_evaluations() if e.check_name == CHECK)


def test_a_day_is_a_table_and_plots():
    """A row a version; the figures by recipe and by layer as numbers. The thresholds of confidence are calibrated once."""
    scores = FakeScores({("reflection", "ab12", "REFLEX"): made(9, 1)})
    result = run(scores)
    assert scores.calibrations == [DAY]
    shown = {e.asset_key.to_user_string(): e.metadata for e in result.asset_materializations_for_node(SCORES)}[SCORES]
    assert [r.data["version"] for r in shown["scores"].value.records] == ["reflection@ab12 on REFLEX"]
    assert shown["reflection/passed"].value == 0.9
    layers = result.asset_materializations_for_node(LAYERS)[0].metadata
    assert (layers["MIND/passed"].value, layers["calls"].value) == (0.75, 4)


def test_what_ran_last_on_a_day_is_plotted():
    """Whichever version of the two was seen first, and whatever their hashes; both are rows."""
    for newest, oldest in (("ab12", "cd34"), ("cd34", "ab12")):
        found = {("reflection", v, "REFLEX"): CallMetrics() for v in ("ab12", "cd34")}
        for version, at, good in ((oldest, "2026-01-04T09:00:00.000Z", True), (newest, "2026-01-04T10:00:00.000Z", False)):
            found["reflection", version, "REFLEX"].add(call("reflection", "reflection", timestamp=at, success=good), None)
        shown = run(FakeScores(found)).asset_materializations_for_node(SCORES)[0].metadata
        assert (shown["reflection/passed"].value, len(shown["scores"].value.records)) == (0.0, 2)


def test_gate_failures_are_reported_by_kind():
    """In the table, and each as a plot."""
    one = CallMetrics()
    for gates in ({"evidence_required": False}, {"evidence_required": False, "schema_validation": False}, {"evidence_required": True}):
        one.add(call("response", "synthesizer", gates=gates), None)
    shown = run(FakeScores({("synthesizer", "ab12", "VOICE"): one})).asset_materializations_for_node(SCORES)[0].metadata
    assert shown["scores"].value.records[0].data["failed_gates"] == "evidence_required 2, schema_validation 1"
    assert (shown["synthesizer/failed evidence_required"].value, shown["synthesizer/failed schema_validation"].value) == (2, 1)


@pytest.mark.parametrize(
    ("zone", "at", "scores", "day"),
    [
        ("Europe/Berlin", datetime(2026, 3, 2, 4, 30, tzinfo=UTC), FakeScores(), "2026-03-01"),
        ("Pacific/Auckland", datetime(2026, 3, 1, 16, 30, tzinfo=UTC), FakeScores(), "2026-03-01"),
        ("UTC", datetime(2020, 1, 1, 5, 30, tzinfo=UTC), FakeScores(), None),
        ("UTC", datetime(2026, 3, 2, 5, 30, tzinfo=UTC), FakeScores(by_layer={}), None),
    ],
)
def test_each_morning_the_day_before_is_scored(zone, at, scores, day):
    """By the days of the configured zone, all three assets; a day before the first one, and a day without calls, is skipped."""
    settings = load_settings({"PANDORA_ROOT": "/nowhere", "PANDORA_TIMEZONE": zone, "PANDORA_FIRST_DAY": "2026-01-01"})
    graph = dg.Definitions(
        assets=prompt_assets(settings), jobs=[SCORES_JOB], schedules=[scores_schedule(settings)], resources={"scores": scores}
    )
    schedule = graph.resolve_schedule_def(SCHEDULE)
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_schedule_context(
            instance=instance, scheduled_execution_time=at, resources=graph.resources, repository_def=graph.get_repository_def()
        )
        data = schedule.evaluate_tick(context)
    assert [request.partition_key for request in data.run_requests] == ([day] if day else [])
    selected = graph.resolve_job_def(SCORES_JOB.name).asset_layer.selected_asset_keys
    assert {key.to_user_string() for key in selected} == {SCORES, LAYERS, FAILURES}


@pytest.mark.parametrize(
    ("after", "passed", "says"),
    [
        (made(0, 30), False, "pipeline/gate@ab12 is worse than cd34: passed 0 of 30"),
        (made(30, 0), True, ""),
        (made(0, 3), True, "not enough data"),
    ],
)
def test_the_check_is_red_for_a_worse_version_alone(after, passed, says):
    """It says which share fell, or that there are too few calls."""
    found = compare_versions("pipeline/gate", "ab12", after, "cd34", made(30, 0))
    evaluation = checked(run(FakeScores(found=[found])))
    assert evaluation.passed is passed
    assert says in (evaluation.description or "")


def test_failures_are_a_table_with_an_example():
    """A row a cause; the number by recipe as a plot."""
    shown = run(FakeScores()).asset_materializations_for_node(FAILURES)[0].metadata
    row = shown["failures"].value.records[0].data
    assert (row["cause"], row["count"], row["turn"]) == ("retried", 1, "ann:turn_000001")
    assert shown["reflection/failures"].value == 1


def test_new_interventions_become_events():
    """Each once, oldest first, whatever its id and however late it was written; a tick without new ones says so."""
    early = intervention().model_copy(update={"id": "int_0a", "created_at": "2026-01-04T14:29:59Z"})
    first = early.model_copy(update={"id": "int_2f", "created_at": "2026-01-04T14:30:00Z"})
    same_second = first.model_copy(update={"id": "int_1b"})
    late = [first.model_copy(update={"id": f"int_3{n:02}", "created_at": "2026-01-04T14:31:00Z"}) for n in range(60)]

    class Halts:
        found = (first,)

        def open(self):
            return self

        def list(self, *, state):
            assert state == "open"
            return self.found

    halts, sensor, cursor = Halts(), interventions_sensor(), None

    def ticked() -> list[object]:
        nonlocal cursor
        report = sensor(dg.build_sensor_context(resources={"interventions": halts}, cursor=cursor))
        if isinstance(report, dg.SkipReason):
            return []
        cursor = report.cursor
        return [event.metadata["intervention"].value for event in report.asset_events]

    assert (ticked(), ticked()) == (["int_2f"], [])
    halts.found = (early, same_second, first)
    assert (ticked(), ticked()) == (["int_0a", "int_1b"], [])
    halts.found = (first, *late)
    assert [*ticked(), *ticked()] == [one.id for one in late] and ticked() == []
    assert cursor is not None and set(cursor.split()) == {"int_2f", *(one.id for one in late)}


def test_an_index_that_cannot_be_read_fails_with_its_hint():
    """As a sentence, not as a stack of calls."""
    result = run(FakeScores(broken=True), fails=True)
    failure = result.failure_data_for_node(SCORES)
    assert failure is not None and "call_index.duckdb: damaged" in str(failure.user_failure_data or failure.error)
