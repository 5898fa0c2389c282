"""The assets of prompts over figures that a test makes up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.defs.assets_prompts import CHECK, LAYERS, SCORES, prompt_assets
from pandora_dagster.errors import StoreError
from pandora_dagster.governance.figures import Figures
from pandora_dagster.governance.regressions import Comparison, compared
from pandora_dagster.settings import load_settings
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


def test_an_index_that_cannot_be_read_fails_with_its_hint():
    """As a sentence, not as a stack of calls."""
    result = run(FakeScores(broken=True), fails=True)
    failure = result.failure_data_for_node(SCORES)
    assert failure is not None and "call_index.duckdb: damaged" in str(failure.user_failure_data or failure.error)
