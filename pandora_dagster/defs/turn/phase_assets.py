"""The assets of a turn, one for each phase of the table of phases: specification, checks, skipping and failure at a HALT."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import dagster as dg

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.defs.checked_asset import OWNER, failure
from pandora_dagster.defs.instance import TURNS
from pandora_dagster.defs.run_events import REPOSITORY_TAG, version_tags
from pandora_dagster.defs.turn.phase_checks import PhaseRecipes, check_names, check_results, check_specs, judged_results, phase_recipes
from pandora_dagster.defs.turn.phase_metadata import data_version, halt_metadata, phase_metadata
from pandora_dagster.defs.turn.phase_runner import PhaseRunner
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import PandoraError
from pandora_dagster.language.word_forms import counted
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import phase_table
from pandora_dagster.phases.flow.phase_spec import PhaseSpec

GROUP = "turn"
PhaseEvent = dg.MaterializeResult[Any] | dg.AssetCheckResult


def phase_asset(spec: PhaseSpec, recipes: PhaseRecipes) -> dg.AssetsDefinition:
    """The asset of one phase. A branch that the turn did not take yields no event: Dagster skips it and the phases after it."""
    checks = check_names(spec, recipes)

    @dg.multi_asset(
        name=spec.name,
        specs=[asset_spec(spec, recipes)],
        check_specs=check_specs(spec, recipes),
        partitions_def=TURNS,
        can_subset=spec.is_branch,
    )
    def phase(context: dg.AssetExecutionContext, pandora: dg.ResourceParam[PhaseRunner]) -> Iterator[PhaseEvent]:
        report, folder = run_phase(spec.name, TurnKey.parse(context.partition_key), pandora)
        _tag_run(context, report)
        context.log.info(phase_summary(report))
        if report.skipped:
            return
        if report.halt:
            yield from judged_results(report, checks)
            raise halt_failure(report, report.halt, folder)
        yield materialization(report, folder, checks)

    return phase


def asset_spec(spec: PhaseSpec, recipes: PhaseRecipes) -> dg.AssetSpec:
    """The asset specification of a phase: what the graph shows of it."""
    return dg.AssetSpec(
        spec.name,
        deps=list(spec.needs),
        description=_phase_description(spec, recipes),
        group_name=GROUP,
        kinds={layer.lower() for layer in recipes.layers} or {"python"},
        code_version=spec.revision,
        skippable=spec.is_branch,
        tags={"pandora/phase": spec.number} if spec.number else {},
        owners=[OWNER],
        metadata={f"recipe_{r.path.rpartition('/')[2]}": f"{r.path} ({r.version})" for r in recipes.all_recipes},
    )


def materialization(report: PhaseReport, folder: str, checks: tuple[str, ...]) -> dg.MaterializeResult[Any]:
    """The result of a finished phase, with its checks."""
    return dg.MaterializeResult(
        asset_key=report.phase,
        metadata=phase_metadata(report, folder),
        check_results=list(check_results(report, checks)),
        data_version=data_version(report),
    )


def materialization_event(instance: dg.DagsterInstance, report: PhaseReport, folder: str) -> dg.AssetMaterialization:
    """The same result as an event, for runs that execute no assets."""
    spec, partition = phase_table.phase_spec(report.phase), str(report.key)
    needs = dict.fromkeys(spec.needs, partition)
    tags = version_tags(instance, needs, data_version=data_version(report).value, code_version=spec.revision)
    return dg.AssetMaterialization(report.phase, partition=partition, metadata=phase_metadata(report, folder), tags=tags)


def halt_failure(report: PhaseReport, halt: Intervention, folder: str) -> dg.Failure:
    """The Dagster failure of a HALT: its message names the intervention, and the step is not retried."""
    return dg.Failure(
        f"HALT at {report.phase}: {redact(halt.message)} (intervention {halt.id})",
        metadata=halt_metadata(report, halt, folder),
        allow_retries=False,
    )


def run_tags(key: TurnKey, session: str) -> dict[str, str]:
    """The tags by which the UI finds the runs of a turn."""
    return {"pandora/user": key.user, "pandora/session": session, "pandora/turn": key.turn_id, **REPOSITORY_TAG}


def run_phase(phase: str, key: TurnKey, pandora: PhaseRunner) -> tuple[PhaseReport, str]:
    """The report of the phase, and the folder of the turn's revision that it wrote. Raises dg.Failure for an error of the project."""
    try:
        with pandora.open(key) as turn:
            report = turn.run_phase(phase)
            return report, turn.folder(report.manifest.revision)
    except PandoraError as error:
        raise failure(phase, error) from error


def phase_summary(report: PhaseReport) -> str:
    """The line that a run logs for a phase."""
    if report.skipped:
        return f"{report.phase}: the turn took the other branch"
    if report.halt:
        return f"{report.phase}: HALT (intervention {report.halt.id})"
    tokens, ms = sum(call.tokens.total for call in report.calls), sum(call.latency_ms for call in report.calls)
    calls = f"{counted(len(report.calls), 'call')}, {counted(tokens, 'token')}, {ms:.0f} ms" if report.calls else "no model call"
    return f"{report.phase}: {calls}; the turn is {report.manifest.state.value}"


def _tag_run(context: dg.AssetExecutionContext, report: PhaseReport) -> None:
    """Tag a run with its turn where it has no tag yet: a run launched from the UI names only the partition."""
    if "pandora/turn" not in context.run.tags:
        context.instance.add_run_tags(context.run.run_id, run_tags(report.key, report.manifest.session_id))


def _phase_description(spec: PhaseSpec, recipes: PhaseRecipes) -> str:
    lines = [spec.description]
    if spec.is_branch:
        lines.append("A branch: for a turn that does not take it there is no materialization, which the page counts as missing or failed.")
    lines += [f"`{r.path}` ({r.layer.value}): {r.recipe.description}" for r in recipes.all_recipes]
    lines += [f"**This phase HALTs: its recipe cannot be loaded.**\n\n```\n{fault}\n```" for fault in recipes.faults]
    return "\n\n".join(lines)


def turn_assets(recipes: RecipeCatalog) -> list[dg.AssetsDefinition]:
    """One asset for each phase, in the order of the flow; a broken recipe is shown in its asset and raises nothing."""
    return list(_cached_assets(tuple((spec, phase_recipes(spec, recipes)) for spec in phase_table.PHASES)))


@lru_cache(maxsize=4)
def _cached_assets(phases: tuple[tuple[PhaseSpec, PhaseRecipes], ...]) -> tuple[dg.AssetsDefinition, ...]:
    """The assets of these phases; building them takes 60 ms, so they are kept until a recipe changes."""
    return tuple(phase_asset(spec, recipes) for spec, recipes in phases)
