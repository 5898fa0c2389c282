"""Turns that ran outside Dagster's runs (chat, an API), told to Dagster afterwards. Runs nothing itself."""

from collections.abc import Iterable

import dagster as dg

from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports import Cookbook
from pandora_dagster.defs.checks import check_results, checks_of, halt_results
from pandora_dagster.defs.instance import add_keys
from pandora_dagster.defs.metadata import data_version, halt_metadata, phase_metadata
from pandora_dagster.defs.recipes import phase_recipes
from pandora_dagster.phases.flow import PHASES
from pandora_dagster.phases.report import PhaseReport


def report_phases(instance: dg.DagsterInstance, reports: Iterable[PhaseReport], *, cookbook: Cookbook, folder: str) -> None:
    """Runless events for the phases of one turn: materialisations with their checks; a HALT as an observation.

    A runless event can not fail a partition: the failed check and the observation name the intervention.
    """
    specs = {spec.name: spec for spec in PHASES}
    for report in reports:
        if report.skipped:
            continue
        add_keys(instance, [report.key])
        asked = checks_of(report.phase, phase_recipes(specs[report.phase], cookbook))
        instance.report_runless_asset_event(_halt(report, report.halt, folder) if report.halt else _materialisation(report, folder))
        for result in (halt_results if report.halt else check_results)(report, asked):
            instance.report_runless_asset_event(_evaluation(report.phase, result))


def _materialisation(report: PhaseReport, folder: str) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        report.phase,
        partition=str(report.key),
        metadata=phase_metadata(report, folder),
        tags={"dagster/data_version": data_version(report).value},
    )


def _halt(report: PhaseReport, halt: Intervention, folder: str) -> dg.AssetObservation:
    return dg.AssetObservation(report.phase, partition=str(report.key), metadata=halt_metadata(report, halt, folder))


def _evaluation(phase: str, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(phase),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )
