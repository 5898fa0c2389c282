"""The recipes of a phase and their quality gates as asset checks. A verdict comes from the phase's report, a fault of a recipe is a value.

Checks are unpartitioned and do not block: the result's metadata names the turn, and a HALT is a failure of its own."""

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
    """What one phase runs: one recipe for both modes, or one per mode, or none; `faults` where one cannot be loaded.

    `also` holds what it may run beside them: shown, while the checks are the main recipe's gates. Equal where `versions` and faults are.
    """

    loaded: tuple[LoadedRecipe, ...] = field(default=(), compare=False)
    faults: tuple[str, ...] = ()
    also: tuple[LoadedRecipe, ...] = field(default=(), compare=False)
    versions: tuple[tuple[str, str], ...] = field(init=False)
    """Path and version of every recipe."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", tuple((recipe.path, recipe.version) for recipe in self.every))

    @property
    def every(self) -> tuple[LoadedRecipe, ...]:
        """All recipes, the main ones first."""
        return self.loaded + self.also

    @property
    def layers(self) -> tuple[str, ...]:
        """Model layers, each once."""
        return tuple(dict.fromkeys(r.layer.value for r in self.every))


def phase_recipes(spec: PhaseSpec, recipes: RecipeCatalog) -> PhaseRecipes:
    """The recipes of `spec` in every mode. A broken one is reported, so that the graph still loads (DECISIONS 17)."""
    faults: dict[str, None] = {}
    main, *others = [_loaded(recipe.name, recipes, faults) for recipe in spec.recipes] or [{}]
    also = {path: recipe for other in others for path, recipe in other.items() if path not in main}
    return PhaseRecipes(tuple(main.values()), tuple(faults), tuple(also.values()))


def _loaded(name: str, recipes: RecipeCatalog, faults: dict[str, None]) -> dict[str, LoadedRecipe]:
    loaded: dict[str, LoadedRecipe] = {}
    for mode in Mode:
        try:
            recipe = recipes.get(name, mode.value)
            loaded[recipe.path] = recipe
        except ConfigurationError as error:
            faults[str(error)] = None
    return loaded


GATES = {
    "schema_validation": "Every answer parses and fits its recipe's output schema.",
    "confidence_threshold": "The stated confidence reaches the recipe's threshold.",
    "evidence_required": "The answer cites where it must, and every citation resolves to a given source; single claims are not checked.",
}

COMPRESSION = {
    "no_fact_changed": "A compression changed and invented no fact; what it left out is named in its report.",
    "within_budget": "What was compressed is within its target; a text that no sound compression fits stays whole and says so.",
    "is_a_summary": "What was compressed reads as a text: no reply, refusal, echo or bare list of values.",
}
GATHERING = {
    "sources_linked": "Everything in section 2 leads to a source that was loaded; what does not is flagged.",
    "caches_fresh": "Cached research is within its time; what is not is marked stale, with the advice to refresh it.",
    "relevant_source": "At least one relevant source was found; without one the turn goes on with an empty context.",
}
"""The gatherer's own gates: they warn, and the turn goes on."""
_WARNING = frozenset({"within_budget", *GATHERING})


def checks_of(spec: PhaseSpec, recipes: PhaseRecipes) -> tuple[str, ...]:
    """The checks of a phase: the gates of its recipes, those of compression where it makes calls, and its own. The documents of its calls
    may have to be compressed, and what it writes too (000 section 25)."""
    return (*gates(recipes), *(COMPRESSION if recipes.every else ()), *spec.gates)


def gates(recipes: PhaseRecipes) -> tuple[str, ...]:
    """The gates that the phase's recipes set, in the order of GATES."""
    kinds = [r.recipe.quality_gates for r in recipes.loaded]
    asked = {
        "schema_validation": bool(kinds),
        "confidence_threshold": any(g.confidence_threshold is not None for g in kinds),
        "evidence_required": any(g.evidence_required for g in kinds),
    }
    return tuple(gate for gate in GATES if asked[gate])


def check_specs(spec: PhaseSpec, recipes: PhaseRecipes) -> list[dg.AssetCheckSpec]:
    """One check for each of `checks_of`."""
    return [dg.AssetCheckSpec(check, asset=spec.name, description=_description(check, recipes)) for check in checks_of(spec, recipes)]


def check_results(report: PhaseReport, asked: Sequence[str]) -> Iterator[dg.AssetCheckResult]:
    """A result for each asked gate: its verdict, or that no call was made (an empty tool run asks no model)."""
    verdicts = {v.gate: v for v in report.verdicts}
    for gate in asked:
        yield _result(report, gate, verdicts.get(gate))


def halt_results(report: PhaseReport, asked: Sequence[str]) -> Iterator[dg.AssetCheckResult]:
    """The results of a phase that HALTed: what was judged, and always one that failed. A HALT that no gate reports
    (budget, missing document, unreachable runtime) fails the phase's first check; checks that were not reached say nothing."""
    judged = [v for v in report.verdicts if v.gate in asked]
    if report.halt and asked and all(v.passed for v in judged):
        gate = cast("Literal['schema_validation']", asked[0])
        judged = [v for v in judged if v.gate != gate] + [GateVerdict(gate, False, f"{report.halt.type.value}: {report.halt.message}")]
    return (_result(report, v.gate, v) for v in judged)


def _description(gate: str, recipes: PhaseRecipes) -> str:
    thresholds = sorted({t for r in recipes.loaded if (t := r.recipe.quality_gates.confidence_threshold) is not None})
    if gate != "confidence_threshold":
        return (GATES | COMPRESSION | GATHERING)[gate]
    return f"{GATES[gate]} Threshold: {' or '.join(f'{t:g}' for t in thresholds)}."


def _result(report: PhaseReport, gate: str, verdict: GateVerdict | None) -> dg.AssetCheckResult:
    metadata: dict[str, str | float | dg.MetadataValue[Any]] = {"turn": str(report.key)}
    if gate in COMPRESSION and (documents := [_document_row(row, gate) for row in report.facts.get("compressions", ()) if gate in row]):
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
        description=(verdict.reason or None) if verdict else "nothing was compressed" if gate in COMPRESSION else "no call was made",
        severity=dg.AssetCheckSeverity.WARN if gate in _WARNING else dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def _document_row(row: Mapping[str, Any], gate: str) -> dg.TableRecord:
    """One compressed document of a phase, judged by itself."""
    tokens = {name: row[name] for name in ("tokens_before", "tokens_after")}
    return dg.TableRecord({"document": row["document"], "passed": row[gate], **tokens})
