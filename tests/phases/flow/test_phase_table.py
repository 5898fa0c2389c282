"""The table of phases: what is derived from it, and a phase that is added in one place."""

import shutil
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.lineage import DocumentId, Relation
from pandora_dagster.contracts.phase_outputs import TaskPlan, TurnSummary
from pandora_dagster.defs.turn.phase_assets import turn_assets
from pandora_dagster.defs.turn.recorded_run import record_run
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.core.phase_report import TimedReports
from pandora_dagster.phases.flow import phase_table
from pandora_dagster.phases.flow.phase_spec import PhaseRecipe, PhaseSpec, answer_condition
from pandora_dagster.phases.flow.turn_flow import run_phase
from tests.archive.archived_store import LATER, archived
from tests.phases.rig import CLARIFY, SUMMARY, Rig, open_rig, plan
from tests.stores.turns.turn_rig import Ticking

REPOSITORY = Path(__file__).parents[3]
RECIPE = "pipeline/phase3_title"


async def _title(ctx: PhaseContext) -> PhaseOutput:
    """The function of the added phase."""
    answer = parsed_answer(await ctx.ask(RECIPE), TurnSummary)
    return PhaseOutput(files={"title.json": as_json(answer)}, shown=answer.summary)


TITLE = PhaseSpec(
    "title",
    "3",
    _title,
    "A title for the plan.",
    needs=("task_plan",),
    recipes=(PhaseRecipe(RECIPE, TurnSummary),),
    files=("title.json",),
    condition=answer_condition("task_plan.json", TaskPlan, lambda answer: answer.confidence > 0.5),
)
"""A branch phase behind another phase than `reflection`, and with a condition of its own."""


async def _handover(ctx: PhaseContext) -> PhaseOutput:
    """The function of the added phase that ends a turn."""
    text = f"A colleague answers revision {ctx.turn.manifest.revision}."
    return PhaseOutput(sections={5: text}, files={"response.md": f"{text}\n"})


HANDOVER = PhaseSpec(
    "handover",
    "3",
    _handover,
    "The turn goes to a colleague.",
    needs=("task_plan",),
    section=5,
    files=("response.md",),
    condition=answer_condition("task_plan.json", TaskPlan, lambda answer: answer.next_step == "clarify"),
    final_state=TurnState.CLARIFY,
)
"""A branch phase that ends the turn, in the place of the Planner's question back."""


@pytest.fixture
def rig(tmp_path, monkeypatch) -> Rig:
    """A store whose flow has two more phases: each has its spec in the table and its function, one its recipe with the prompt."""
    for part in ("recipes", "prompts"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    summarizer = (tmp_path / "recipes/pipeline/phase7_summarizer.yaml").read_text()
    recipe = summarizer.replace("name: summarizer", "name: title").replace("phase7_summarizer.md", "phase3_title.md")
    (tmp_path / f"recipes/{RECIPE}.yaml").write_text(recipe)
    shutil.copy(tmp_path / "prompts/pipeline/phase7_summarizer.md", tmp_path / f"prompts/{RECIPE}.md")
    place = phase_table.phase_order().index("task_plan") + 1
    monkeypatch.setattr(phase_table, "PHASES", (*phase_table.PHASES[:place], TITLE, HANDOVER, *phase_table.PHASES[place:]))
    rig = open_rig(tmp_path / "store", recipes=tmp_path)
    yield rig
    rig.app.close()


def test_an_added_phase_runs_in_a_turn(rig):
    """It runs behind what it needs, its document is stored, and the turn is saved."""
    key = rig.start()
    ran = [report.phase for report in rig.run(key)]
    assert ran[ran.index("task_plan") + 1] == "title"
    turn = rig.turn(key)
    assert turn.manifest.state is TurnState.SAVED and TurnSummary.model_validate_json(turn.files["title.json"])
    assert rig.runtime.calls()["summarizer"] == 2


@pytest.mark.parametrize(
    ("changed", "skipped"), [({"planner": plan("synthesis").replace("0.9", "0.7")}, False), ({"reflection": CLARIFY}, True)]
)
def test_an_added_branch_follows_its_own_condition(rig, changed, skipped):
    """Its predicate decides, not that of the branches beside it; of a turn that ended before, it runs nothing."""
    rig.say(summarizer=SUMMARY, **changed)
    key = rig.ask()
    assert ("title.json" in rig.turn(key).files) is not skipped


def test_an_added_branch_that_is_not_taken_writes_nothing(rig, monkeypatch):
    """The other branches behind the same phase are taken as before."""
    never = replace(TITLE, condition=answer_condition("task_plan.json", TaskPlan, lambda answer: answer.confidence > 0.99))
    monkeypatch.setattr(phase_table, "PHASES", tuple(never if spec is TITLE else spec for spec in phase_table.PHASES))
    turn = rig.turn(rig.ask())
    assert turn.manifest.state is TurnState.SAVED and "title.json" not in turn.files and "response.md" in turn.files


def test_an_added_phase_that_ends_a_turn_is_known_to_the_store(rig):
    """Lineage dates the turn by it, a repeated run keeps the state that it gave, and the turn is archived with all its links."""
    rig.app = replace(rig.app, dependencies=replace(rig.app.dependencies, clock=Ticking()))
    rig.say(planner=plan("clarify", question="Which chair?"))
    key = rig.ask()
    first = rig.turn(key).manifest
    assert first.state is TurnState.CLARIFY and first.phases[-1].phase == "handover" and rig.app.pending_phases(key) == ()
    assert section_times(rig, key) == {first.phases[-1].finished_at} and first.created_at < first.phases[-1].finished_at

    rig.app.run(run_phase("handover", key, rig.app.dependencies))
    again = rig.turn(key)
    assert (again.manifest.state, again.manifest.revision) == (TurnState.CLARIFY, 1)
    read = {
        at: rig.app.lineage.texts().text_at(DocumentId.parse(f"{key}/response.md"), at=at)
        for at in (again.manifest.phases[-1].finished_at, "9")
    }
    assert list(read.values()) == ["A colleague answers revision 0.\n", "A colleague answers revision 1.\n"]
    assert rig.app.turns.reopen(again, phase="turn_summary", order=phase_table.phase_order()).manifest.state is TurnState.CLARIFY

    archived(rig.app, after=LATER)
    assert rig.turn(key).manifest.state is TurnState.ARCHIVED and rig.app.lineage.verify() == () == rig.app.indexes.verify()
    assert section_times(rig, key) == {again.manifest.phases[-1].finished_at}


def section_times(rig: Rig, key: TurnKey) -> set[str]:
    """When lineage says that the sections of a turn were put together."""
    return {edge.at for edge in rig.app.lineage.index.rows_of(key.user, [str(key)]) if edge.relation is Relation.SECTION}


def test_an_added_phase_is_an_asset(rig):
    """Dagster's factory makes its asset with recipe and checks, and a run of the graph materialises it."""
    specs = {spec.key.to_user_string(): spec for asset in turn_assets(rig.app.recipes) for spec in asset.specs}
    assert specs["title"].skippable and f"`{RECIPE}`" in (specs["title"].description or "")
    with dg.DagsterInstance.ephemeral() as instance:
        key, reports = rig.start(), TimedReports()
        rig.app.run_turn(key, on_report=reports.append)
        record_run(instance, key, reports, recipes=rig.app.recipes, session="s1", folder="/t")
        assert instance.get_latest_materialization_event(dg.AssetKey("title")) is not None


def test_the_table_is_consistent():
    """Phases need earlier ones; names are unique; a section has its budget."""
    names: list[str] = []
    for spec in phase_table.PHASES:
        assert set(spec.needs) <= set(names) and spec.name not in names
        assert (spec.budget is None) is (spec.section is None)
        names.append(spec.name)
    assert [spec.section for spec in phase_table.phases_before("saved_turn") if spec.section is not None] == list(range(7))
    assert {spec.name for spec in phase_table.PHASES if spec.has_answer} == {"clarification", "plan_clarification", "saved_turn"}
