"""The assets of prompts over figures that a test makes up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.defs.assets_prompts import CHECK, FAILURES, LAYERS, SCORES, prompt_assets
from pandora_dagster.defs.sensor_interventions import interventions_sensor
from pandora_dagster.errors import StoreError
from pandora_dagster.governance.failures import Failure, Group, grouped
from pandora_dagster.governance.figures import Figures
from pandora_dagster.governance.regressions import Comparison, compared
from pandora_dagster.settings import load_settings
from tests.defs.conftest import intervention
from tests.governance.test_figures import made

DAY = "2026-01-04"


@dataclass
class FakeScores:
    """ScoresPrompts in memory."""

    by_version: Mapping[tuple[str, str], Figures] = field(default_factory=dict)
    found: Sequence[Comparison] = ()
    broken: bool = False

    def versions(self, day: str) -> Mapping[tuple[str, str], Figures]:
        if self.broken:
            raise StoreError("call_index.duckdb: damaged", hint="pandora index rebuild")
        assert day == DAY
        return self.by_version

    def layers(self, day: str) -> Mapping[str, Figures]:
        return {"MIND": made(3, 1)}

    def failures(self, day: str) -> Sequence[Group]:
        return grouped([Failure("reflection", "ab12", "retried", "2026", "c1", "ann:turn_000001", "2 retries")])

    def comparisons(self) -> Sequence[Comparison]:
        return self.found


def run(scores: FakeScores, *, fails: bool = False) -> dg.ExecuteInProcessResult:
    settings = load_settings({"PANDORA_ROOT": str(Path("/nowhere"))})
    result = dg.materialize(prompt_assets(settings), partition_key=DAY, resources={"scores": scores}, raise_on_error=not fails)
    assert result.success is not fails
    return result


def checked(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    return next(e for e in result.get_asset_check_evaluations() if e.check_name == CHECK)


def test_a_day_is_a_table_and_plots():
    """A row a version; the figures by recipe and by layer as numbers."""
    result = run(FakeScores({("reflection", "ab12"): made(9, 1)}))
    shown = {e.asset_key.to_user_string(): e.metadata for e in result.asset_materializations_for_node(SCORES)}[SCORES]
    assert [r.data["version"] for r in shown["scores"].value.records] == ["reflection@ab12"]
    assert shown["reflection/passed"].value == 0.9
    layers = result.asset_materializations_for_node(LAYERS)[0].metadata
    assert (layers["MIND/passed"].value, layers["calls"].value) == (0.75, 4)


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
    found = compared("pipeline/gate", "ab12", after, "cd34", made(30, 0))
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
    """Each once, oldest first; a tick without new ones says so."""
    first = intervention().model_copy(update={"id": "int_2", "created_at": "2026-01-04T14:30:00Z"})
    second = first.model_copy(update={"id": "int_1", "created_at": "2026-01-04T14:30:01Z"})

    class Halts:
        found = (first,)

        def open(self):
            return self.found

    halts, sensor = Halts(), interventions_sensor()
    context = dg.build_sensor_context(resources={"halts": halts})
    told = sensor(context)
    assert [e.metadata["intervention"].value for e in told.asset_events] == ["int_2"]
    again = dg.build_sensor_context(resources={"halts": halts}, cursor=told.cursor)
    assert isinstance(sensor(again), dg.SkipReason)
    halts.found = (first, second)
    later = dg.build_sensor_context(resources={"halts": halts}, cursor=told.cursor)
    assert [e.metadata["intervention"].value for e in sensor(later).asset_events] == ["int_1"]


def test_an_index_that_cannot_be_read_fails_with_its_hint():
    """As a sentence, not as a stack of calls."""
    result = run(FakeScores(broken=True), fails=True)
    failure = result.failure_data_for_node(SCORES)
    assert failure is not None and "call_index.duckdb: damaged" in str(failure.user_failure_data or failure.error)
