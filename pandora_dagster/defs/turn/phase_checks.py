"""The asset checks of a phase: the quality gates of its recipes, those of compression, and the phase's own.

Verdicts come from the phase's report. Checks are unpartitioned and do not block: the metadata of a result names the turn, and a HALT fails
the step by itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import dagster as dg

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import Mode
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow.phase_spec import PhaseSpec


@dataclass(frozen=True, slots=True)
class PhaseRecipes:
    """The recipes of one phase, for all modes; `faults`: why one cannot be loaded. Equal where `versions` and `faults` are.

    `main`: one recipe for both modes, one for each mode, or none; their gates become checks. `additional`: what the phase may call
    besides; the graph only shows them.
    """

    main: tuple[LoadedRecipe, ...] = field(default=(), compare=False)
    faults: tuple[str, ...] = ()
    additional: tuple[LoadedRecipe, ...] = field(default=(), compare=False)
    versions: tuple[tuple[str, str], ...] = field(init=False)
    """Path and version of every recipe."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", tuple((recipe.path, recipe.version) for recipe in self.all_recipes))

    @property
    def all_recipes(self) -> tuple[LoadedRecipe, ...]:
        """All recipes of the phase, the main ones first."""
        return self.main + self.additional

    @property
    def layers(self) -> tuple[str, ...]:
        """The model layers of all recipes, each once."""
        return tuple(dict.fromkeys(r.layer.value for r in self.all_recipes))


def phase_recipes(spec: PhaseSpec, recipes: RecipeCatalog) -> PhaseRecipes:
    """The recipes of `spec` in every mode; a broken one is a fault, so that the graph still loads.

    See decision 17: docs/decisions/17-a-broken-recipe-in-dagster.md.
    """
    faults: dict[str, None] = {}
    main, *others = [_load_modes(recipe.name, recipes, faults) for recipe in spec.recipes] or [{}]
    additional = {path: recipe for other in others for path, recipe in other.items() if path not in main}
    return PhaseRecipes(tuple(main.values()), tuple(faults), tuple(additional.values()))


def _load_modes(name: str, recipes: RecipeCatalog, faults: dict[str, None]) -> dict[str, LoadedRecipe]:
    """The recipe of this name in every mode, by its path; adds the errors to `faults`."""
    by_path: dict[str, LoadedRecipe] = {}
    for mode in Mode:
        try:
            recipe = recipes.get(name, mode.value)
            by_path[recipe.path] = recipe
        except ConfigurationError as error:
            faults[str(error)] = None
    return by_path


GATE_DESCRIPTIONS = {
    "schema_validation": "Every answer parses and fits its recipe's output schema.",
    "confidence_threshold": "The stated confidence reaches the recipe's threshold.",
    "evidence_required": "The answer cites where it must, and every citation resolves to a given source; single claims are not checked.",
}

COMPRESSION_CHECKS = {
    "no_fact_changed": "A compression changed and invented no fact; what it left out is named in its report.",
    "within_budget": "What was compressed is within its target; a text that no sound compression fits stays whole and says so.",
    "is_a_summary": "What was compressed reads as a text: no reply, refusal, echo or bare list of values.",
}
GATHERING_CHECKS = {
    "sources_linked": "Everything in section 2 leads to a source that was loaded; what does not is flagged.",
    "caches_fresh": "Cached research is within its time; what is not is marked stale, with the advice to refresh it.",
    "relevant_source": "At least one relevant source was found; without one the turn goes on with an empty context.",
}
"""The checks of the phase that gathers context: they warn, and the turn continues."""
_WARNING_CHECKS = frozenset({"within_budget", *GATHERING_CHECKS})


def check_names(spec: PhaseSpec, recipes: PhaseRecipes) -> tuple[str, ...]:
    """The checks of a phase: the gates of its recipes, those of compression where it makes calls, and its own.

    The documents of its calls and the section that it writes may have to be compressed (specification 000, section 25).
    """
    return (*recipe_gates(recipes), *(COMPRESSION_CHECKS if recipes.all_recipes else ()), *spec.gates)


def recipe_gates(recipes: PhaseRecipes) -> tuple[str, ...]:
    """The gates that the main recipes set, in the order of GATE_DESCRIPTIONS."""
    gates = [r.recipe.quality_gates for r in recipes.main]
    is_set = {
        "schema_validation": bool(gates),
        "confidence_threshold": any(g.confidence_threshold is not None for g in gates),
        "evidence_required": any(g.evidence_required for g in gates),
    }
    return tuple(gate for gate in GATE_DESCRIPTIONS if is_set[gate])


def check_specs(spec: PhaseSpec, recipes: PhaseRecipes) -> list[dg.AssetCheckSpec]:
    """The specification of each of the phase's checks."""
    return [dg.AssetCheckSpec(check, asset=spec.name, description=_description(check, recipes)) for check in check_names(spec, recipes)]


def check_results(report: PhaseReport, checks: Sequence[str]) -> Iterator[dg.AssetCheckResult]:
    """A result for each check: its verdict, or passed where the phase made no call or compressed nothing."""
    by_gate = {v.gate: v for v in report.verdicts}
    for check in checks:
        yield _check_result(report, check, by_gate.get(check))


def halt_results(report: PhaseReport, checks: Sequence[str]) -> Iterator[dg.AssetCheckResult]:
    """The results of a phase that HALTed: the verdicts that it reached, at least one of them failed.

    A HALT that no gate reports (budget, missing document, unreachable runtime) fails the phase's first check.
    """
    judged = [v for v in report.verdicts if v.gate in checks]
    if report.halt and checks and all(v.passed for v in judged):
        gate = cast("Literal['schema_validation']", checks[0])
        judged = [v for v in judged if v.gate != gate] + [GateVerdict(gate, False, f"{report.halt.type.value}: {report.halt.message}")]
    return (_check_result(report, v.gate, v) for v in judged)


def _description(gate: str, recipes: PhaseRecipes) -> str:
    thresholds = sorted({t for r in recipes.main if (t := r.recipe.quality_gates.confidence_threshold) is not None})
    if gate != "confidence_threshold":
        return (GATE_DESCRIPTIONS | COMPRESSION_CHECKS | GATHERING_CHECKS)[gate]
    return f"{GATE_DESCRIPTIONS[gate]} Threshold: {' or '.join(f'{t:g}' for t in thresholds)}."


def _check_result(report: PhaseReport, gate: str, verdict: GateVerdict | None) -> dg.AssetCheckResult:
    metadata: dict[str, str | float | dg.MetadataValue[Any]] = {"turn": str(report.key)}
    documents = [_document_row(row, gate) for row in report.facts.get("compressions", ()) if gate in row]
    if gate in COMPRESSION_CHECKS and documents:
        metadata["documents"] = dg.MetadataValue.table(documents)
    if verdict and verdict.value is not None:
        metadata["value"] = verdict.value
    if verdict and not verdict.passed:
        metadata["reason"] = verdict.reason
        if report.halt:
            metadata |= {"intervention": report.halt.id, "halt": report.halt.message}
    return dg.AssetCheckResult(
        asset_key=report.phase,
        check_name=gate,
        passed=verdict.passed if verdict else True,
        description=(verdict.reason or None) if verdict else "nothing was compressed" if gate in COMPRESSION_CHECKS else "no call was made",
        severity=dg.AssetCheckSeverity.WARN if gate in _WARNING_CHECKS else dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def _document_row(row: Mapping[str, Any], gate: str) -> dg.TableRecord:
    """The table row of one compressed document of a phase."""
    tokens = {name: row[name] for name in ("tokens_before", "tokens_after")}
    return dg.TableRecord({"document": row["document"], "passed": row[gate], **tokens})
