"""The asset checks of a phase: the quality gates of its recipes, those of compression, and the phase's own.

Verdicts come from the phase's report. Checks are unpartitioned: the metadata of a result names the turn. A check is declared where it can
fail, and is blocking where its failure HALTs the turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from pandora_dagster.contracts.enums import Mode
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.redaction.credentials import redact, redact_values
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow.phase_spec import PhaseSpec
from pandora_dagster.phases.flow.phase_table import phases_before


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
    "confidence_threshold": "Answers that stated this confidence turned out well as often as the recipe's threshold asks; a lower share "
    "warns and halts nothing. Acts from 20 recorded outcomes on.",
    "evidence_required": "Every citation names a given source, and the text that a statement of fact cites supports it.",
}

COMPRESSION_CHECK = "compression_sound"
COMPRESSION_GATES = {
    "no_fact_changed": "no fact was changed or invented",
    "within_budget": "the text is within its target, or stays whole where no sound compression fits (a warning)",
    "is_a_summary": "it reads as a text: no reply, refusal, echo or bare list of values",
}
"""The verdicts of every compression, which one check carries."""
_COMPRESSION_DESCRIPTION = f"What was compressed is sound: {'; '.join(COMPRESSION_GATES.values())}. What was left out is named."
_GROWING_SECTIONS = frozenset({2, 3, 4})
"""The sections of context.md that grow with what was gathered, planned and found."""
PHASE_CHECKS = {
    "sources_linked": "Everything in section 2 leads to a source that was loaded; what does not is flagged.",
    "caches_fresh": "Cached research is within its time; what is not is marked stale, with the advice to refresh it.",
    "relevant_source": "At least one relevant source was found; without one the turn goes on with an empty context.",
    "quotes_verbatim": "Each claim of a page of the web has a quote that is in the visible text of the page as it was read.",
    "robots_respected": "Each page of the web that was read is one that robots.txt of its host allows.",
    "sources_allowed": "Each claim of a page of the web comes from a page that this turn read.",
    "no_fact_changed": "The session's summary changed and invented no fact, and links every turn that it covers.",
}
"""The checks that phases judge themselves. `no_fact_changed` is also a gate of compressions: no phase may have both."""
_UNUSED = {COMPRESSION_CHECK: "nothing was compressed", **dict.fromkeys(PHASE_CHECKS, "nothing to judge")}
"""What a check says that had nothing to judge."""
WARNING_CHECKS = frozenset(
    {
        "confidence_threshold",
        "sources_linked",
        "caches_fresh",
        "relevant_source",
        "quotes_verbatim",
        "robots_respected",
        "sources_allowed",
    }
)
"""Checks that never stop a turn; the others are blocking."""


def check_names(spec: PhaseSpec, recipes: PhaseRecipes) -> tuple[str, ...]:
    """The checks of a phase: the gates of its recipes, that of compression where its texts can outgrow their budgets, and its own."""
    compression = (COMPRESSION_CHECK,) if _can_compress(spec, recipes) else ()
    return (*recipe_gates(recipes), *compression, *spec.gates)


def _can_compress(spec: PhaseSpec, recipes: PhaseRecipes) -> bool:
    """Whether the phase writes or reads sections that grow, as the section that it writes or its recipes' inputs say (specification 000,
    section 25).

    The phases before them read the query and bounded lists of headers.
    """
    sections = {phase.section for phase in (spec, *phases_before(spec.name))}
    if not recipes.all_recipes or not sections & _GROWING_SECTIONS:
        return False
    read = {name for recipe in recipes.all_recipes for name in recipe.recipe.input_sections}
    return spec.section is not None or any(f"§{number}" in read for number in _GROWING_SECTIONS)


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
    return [
        dg.AssetCheckSpec(check, asset=spec.name, description=_description(check, recipes), blocking=check not in WARNING_CHECKS)
        for check in check_names(spec, recipes)
    ]


def check_results(report: PhaseReport, checks: Sequence[str]) -> Iterator[dg.AssetCheckResult]:
    """A result for each check of a finished phase: its verdict, or passed where the phase made no call or compressed nothing."""
    by_check = _verdicts(report)
    for check in checks:
        yield _check_result(report, check, by_check.get(check))


def judged_results(report: PhaseReport, checks: Sequence[str]) -> Iterator[dg.AssetCheckResult]:
    """The results of the checks that had something to judge.

    A HALT that no check reports (budget, missing document, unreachable runtime) fails none: the failed step has its reason.
    """
    return (_check_result(report, verdict.check, verdict) for verdict in _verdicts(report).values() if verdict.check in checks)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The verdict that a check shows; `is_error`: whether a failed one is more than a warning."""

    check: str
    passed: bool
    reason: str = ""
    value: float | None = None
    is_error: bool = True
    rows: tuple[Mapping[str, str], ...] = ()


def _verdicts(report: PhaseReport) -> dict[str, _Verdict]:
    """The verdicts of a phase by check; those of compression are one."""
    verdicts = {v.gate: _Verdict(v.gate, v.passed, v.reason, v.value, v.gate not in WARNING_CHECKS, v.rows) for v in report.verdicts}
    compression = [v for v in report.verdicts if v.gate in COMPRESSION_GATES]
    if compression:
        failed = [v for v in compression if not v.passed]
        reason = "; ".join(f"{v.gate}: {v.reason}" for v in failed)
        is_error = any(v.gate != "within_budget" for v in failed)
        verdicts[COMPRESSION_CHECK] = _Verdict(COMPRESSION_CHECK, not failed, reason, is_error=is_error)
    return verdicts


def _description(check: str, recipes: PhaseRecipes) -> str:
    if check != "confidence_threshold":
        return ({COMPRESSION_CHECK: _COMPRESSION_DESCRIPTION} | GATE_DESCRIPTIONS | PHASE_CHECKS)[check]
    thresholds = sorted({t for r in recipes.main if (t := r.recipe.quality_gates.confidence_threshold) is not None})
    return f"{GATE_DESCRIPTIONS[check]} Threshold: {' or '.join(f'{t:g}' for t in thresholds)}."


def _check_result(report: PhaseReport, check: str, verdict: _Verdict | None) -> dg.AssetCheckResult:
    """The result of one check. Failed checks of a phase that finished are warnings: only a HALT stops a turn."""
    metadata: dict[str, str | float | dg.MetadataValue[Any]] = {"turn": str(report.key)}
    documents = [_document_row(row) for row in report.facts.get("compressions", ())]
    if check == COMPRESSION_CHECK and documents:
        metadata["documents"] = dg.MetadataValue.table(documents)
    if verdict and verdict.rows:
        metadata["statements"] = dg.MetadataValue.table([dg.TableRecord(redact_values(row)) for row in verdict.rows])
    if verdict and verdict.value is not None:
        metadata["value"] = verdict.value
    if verdict and not verdict.passed:
        metadata["reason"] = redact(verdict.reason)
        if report.halt:
            metadata |= {"intervention": report.halt.id, "halt": redact(report.halt.message)}
    is_error = report.halt is not None and (verdict is None or verdict.is_error)
    return dg.AssetCheckResult(
        asset_key=report.phase,
        check_name=check,
        passed=verdict.passed if verdict else True,
        description=(redact(verdict.reason) or None) if verdict else _UNUSED.get(check, "no call was made"),
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        metadata=metadata,
    )


def _document_row(row: Mapping[str, Any]) -> dg.TableRecord:
    """The table row of one compressed document of a phase."""
    columns = ("document", *COMPRESSION_GATES, "tokens_before", "tokens_after")
    return dg.TableRecord({name: row[name] for name in columns if name in row})
