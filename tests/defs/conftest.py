"""Fakes for the Dagster room: phases without a store, a recipes without files, a run on an instance in memory."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count

import dagster as dg
import pytest

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType, Mode, TurnState
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFile, Recipe
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.defs.turn.phase_assets import turn_assets
from pandora_dagster.defs.turn.phase_runner import OpenTurn
from pandora_dagster.defs.turn.recorded_run import turn_job
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports
from pandora_dagster.phases.flow.phase_table import PHASES
from pandora_dagster.phases.steps.task_plan import PLANNER
from tests.fakes.recipe_catalog import MemoryRecipeCatalog, frames_of

GATES = {
    "pipeline/phase1_reflection": {"confidence_threshold": 0.7},
    "pipeline/phase5_synthesizer": {"evidence_required": True},
    "pipeline/phase6_validator": {"confidence_threshold": 0.7, "evidence_required": True},
}


def phase_recipe(path: str) -> LoadedRecipe:
    """A recipe of a phase, with the quality gates that `GATES` names for it."""
    stem = path.rpartition("/")[2]
    recipe = Recipe.model_validate(
        {
            "name": stem,
            "description": f"What {stem} does.",
            "model_layer": "VOICE" if path == "pipeline/phase5_synthesizer" else "MIND",
            "token_budget": {"total": 100, "prompt": 10, "input": 50, "output": 40},
            "system_prompt": "Answer.",
            "input_sections": ("§0",),
            "output_format": "text",
            "quality_gates": GATES.get(path, {}),
        }
    )
    prompts = ((PromptFile(path="prompts/pipeline/answer.md"), "Answer."),)
    return LoadedRecipe(
        recipe=recipe, path=path, version="ab12", prompt_version="cd34", prompts=prompts, policy="", frames=frames_of(recipe)
    )


def phase_recipes() -> MemoryRecipeCatalog:
    """One recipe for each that a phase names, two for the planner."""
    names = {known.name for phase in PHASES for known in phase.recipes} - {PLANNER}
    return MemoryRecipeCatalog({path: phase_recipe(path) for path in (*sorted(names), *(f"{PLANNER}_{mode}" for mode in Mode))})


@dataclass
class FakePhases:
    """A TurnStarter in memory: asks back, HALTs or breaks as a test says; remembers what ran."""

    asks_at: str = ""
    """`reflection` or `task_plan`: the turn asks back there."""
    halts: Mapping[str, Intervention] = field(default_factory=dict)
    raises: Mapping[str, PandoraError] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    started: list[tuple[str, str, str, str]] = field(default_factory=list)

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        if "start" in self.raises:
            raise self.raises["start"]
        self.started.append((query, user, session, mode))
        return TurnKey(user_id(user), len(self.started))

    def open(self, key: TurnKey) -> AbstractContextManager[OpenTurn]:
        return nullcontext(OpenTurn(key, "s1", lambda name: self.run_phase(name, key), lambda revision: self.folder(key, revision)))

    def run_phase(self, name: str, key: TurnKey) -> PhaseReport:
        if name in self.raises:
            raise self.raises[name]
        taken = {"clarification": self.asks_at == "reflection", "retrieval_plan": self.asks_at != "reflection"}
        taken |= {"plan_clarification": self.asks_at == "task_plan", "tool_results": self.asks_at != "task_plan"}
        manifest = Manifest(
            user_id=key.user,
            turn_id=key.turn_id,
            session_id="s1",
            state=TurnState.SAVED,
            created_at="2026-01-04T14:30:00Z",
            last_activity="2026-01-04T14:30:00Z",
        )
        if not taken.get(name, True):
            return PhaseReport(name, key, manifest, skipped=True)
        self.ran.append(name)
        if name in self.halts:
            verdict = GateVerdict("confidence_threshold", False, "confidence 0.42 is under 0.7", 0.42)
            return PhaseReport(name, key, manifest, verdicts=(verdict,), halt=self.halts[name])
        spec = next(p for p in PHASES if p.name == name)
        calls = (call(name, spec.recipes[0].name),) if spec.recipes else ()
        verdicts = (GateVerdict("schema_validation", True), GateVerdict("confidence_threshold", True, value=0.9)) if calls else ()
        return PhaseReport(name, key, manifest, section=f"What **{name}** wrote.", calls=calls, verdicts=verdicts)

    def folder(self, key: TurnKey, revision: int) -> str:
        return f"/store/users/{key.user}/turns/{key.turn_id}"


def call(phase: str, recipe: str, **changed: object) -> CallRecord:
    """One call as its record says it."""
    values = {
        "call_id": "c1",
        "timestamp": "2026-01-04T14:30:00Z",
        "recipe": recipe,
        "recipe_version": "ab12",
        "prompt_version": "cd34",
        "model_layer": "MIND",
        "runtime": "extractive",
        "user_id": "ann",
        "phase": phase,
        "tokens": CallTokens(prompt=300, input=120, output=80, cached=30, total=500, budget=1500),
        "latency_ms": 12.34,
        "success": True,
    }
    return CallRecord.model_validate(values | changed)


def intervention(type: InterventionType = InterventionType.MISSING_EVIDENCE) -> Intervention:
    return Intervention(
        id="int_0002", type=type, message="confidence 0.42 is under 0.7", hint="Ask more precisely.", created_at="2026-01-04T14:30:00Z"
    )


@pytest.fixture
def recipes() -> MemoryRecipeCatalog:
    return phase_recipes()


@pytest.fixture
def phases() -> FakePhases:
    return FakePhases()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def key() -> TurnKey:
    return TurnKey(user_id("ann"), 811)


@dataclass(frozen=True)
class Outcome:
    """How a run of the graph ended."""

    run_id: str
    success: bool
    reports: list[PhaseReport]
    error: Exception | None

    @property
    def halt(self) -> Intervention | None:
        return next((report.halt for report in self.reports if report.halt), None)


def after(select: tuple[str, ...]) -> list[str]:
    """The selected phases and all that depend on them."""
    taken: list[str] = []
    for spec in PHASES:
        if spec.name in select or any(need in taken for need in spec.needs):
            taken.append(spec.name)
    return taken


def timed(reports: Iterable[PhaseReport]) -> TimedReports:
    """These reports, a second apart."""
    collected = TimedReports(count(1_700_000_000.0).__next__)
    for report in reports:
        collected.append(report)
    return collected


@dataclass(frozen=True)
class Graph:
    """The turn graph over fakes: `run` gives the outcome, `result` what Dagster kept of the last run."""

    assets: list[dg.AssetsDefinition]
    phases: FakePhases
    instance: dg.DagsterInstance
    key: TurnKey

    def run(self, *, select: tuple[str, ...] = ()) -> "Outcome":
        """Run the job `turn`, or the selected phases and those after them, as the UI does."""
        self.instance.add_dynamic_partitions("turns", [str(self.key)])
        with self.phases.open(self.key) as turn:
            job = turn_job(self.assets)
            resolved = dg.Definitions(self.assets, jobs=[job], resources={"pandora": turn}).resolve_job_def(job.name)
            result = resolved.execute_in_process(
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                instance=self.instance,
                partition_key=str(self.key),
                asset_selection=[dg.AssetKey(name) for name in after(select)] if select else None,
                raise_on_error=False,
            )
        return Outcome(result.run_id, result.success, turn.reports, turn.error)

    def materialised(self, run_id: str) -> list[str]:
        return [e.asset_key.to_user_string() for e in self.events(run_id) if e.is_step_materialization and e.asset_key]

    def checks(self, run_id: str) -> dict[tuple[str, str], bool]:
        kept = [e.asset_check_evaluation_data for e in self.events(run_id) if e.event_type_value == "ASSET_CHECK_EVALUATION"]
        return {(c.asset_key.to_user_string(), c.check_name): c.passed for c in kept}

    def metadata(self, phase: str) -> dict[str, object]:
        found = self.instance.get_latest_materialization_event(dg.AssetKey(phase))
        assert found is not None
        assert found.asset_materialization is not None
        return {name: value.value for name, value in found.asset_materialization.metadata.items()}

    def failure(self, run_id: str, phase: str) -> dg.Failure:
        event = next(e for e in self.events(run_id) if e.is_step_failure and e.step_key == phase)
        return event.step_failure_data.user_failure_data

    def events(self, run_id: str) -> list[dg.DagsterEvent]:
        return [e.dagster_event for e in self.instance.all_logs(run_id) if e.dagster_event]


@pytest.fixture
def graph(recipes: MemoryRecipeCatalog, phases: FakePhases, instance: dg.DagsterInstance, key: TurnKey) -> Graph:
    return Graph(turn_assets(recipes), phases, instance, key)


@pytest.fixture
def halt() -> Intervention:
    return intervention()
