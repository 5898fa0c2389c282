"""Turns that ran outside Dagster's runs (chat, an API), told to Dagster afterwards. Runs nothing itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import dagster as dg

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports import RecipeCatalog
from pandora_dagster.defs.checks import check_results, checks_of
from pandora_dagster.defs.instance import add_keys
from pandora_dagster.defs.metadata import data_version, phase_metadata
from pandora_dagster.defs.recipes import phase_recipes
from pandora_dagster.phases.flow import PHASES
from pandora_dagster.phases.report import PhaseReport


def report_phases(instance: dg.DagsterInstance, reports: Iterable[PhaseReport], *, cookbook: RecipeCatalog, folder: str) -> None:
    """Runless events for the phases of one turn that went through: materialisations with their checks."""
    specs = {spec.name: spec for spec in PHASES}
    for report in reports:
        if report.skipped:
            continue
        add_keys(instance, [report.key])
        asked = checks_of(report.phase, phase_recipes(specs[report.phase], cookbook))
        instance.report_runless_asset_event(_materialisation(report, folder))
        for result in check_results(report, asked):
            instance.report_runless_asset_event(_evaluation(report.phase, result))


@dataclass(frozen=True, slots=True)
class ReplayPhaseRunner:
    """RunsPhases of a turn that ran already: each phase says what it said then. A run of them is the page of a turn that HALTed."""

    reports: Sequence[PhaseReport]
    session_id: str
    place: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(report.phase for report in self.reports if not report.skipped)

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        return self.reports[0].key

    def session(self, key: TurnKey) -> str:
        return self.session_id

    def run_phase(self, name: str, key: TurnKey) -> PhaseReport:
        return next(report for report in self.reports if report.phase == name)

    def folder(self, key: TurnKey, revision: int) -> str:
        return self.place


def _materialisation(report: PhaseReport, folder: str) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        report.phase,
        partition=str(report.key),
        metadata=phase_metadata(report, folder),
        tags={"dagster/data_version": data_version(report).value},
    )


def _evaluation(phase: str, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(phase),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )
