# pyright: reportUnknownMemberType=false
"""The daily scores of prompts: the assets by recipe version, by model layer and of failures, the check for regressions, the schedule."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from pandora_dagster.app.evaluation import Evaluation
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.instance import days
from pandora_dagster.defs.resources import ScoreResource
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import PandoraError
from pandora_dagster.governance.call_metrics import SHARES, CallMetrics
from pandora_dagster.governance.recipe_failures import FailureGroup
from pandora_dagster.governance.regressions import VersionComparison
from pandora_dagster.settings import Settings

SCORES, LAYERS, FAILURES, CHECK = "prompt_scorecard", "layer_scorecard", "prompt_failures", "no_prompt_regression"
GROUP = "prompts"
_MAX_EXAMPLE_CHARACTERS = 300
"""Characters of an example that the table shows."""
ScoreFunction = Callable[[Evaluation, str], dg.MaterializeResult[Any]]
"""Computes the result of one asset for a day, `2026-01-31`."""
_PLOTTED_FIGURES = (*SHARES, "calibration_error", "budget_used", "latency_ms", "cost")


def prompt_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """`prompt_scorecard` with its check, `layer_scorecard` and `prompt_failures`, partitioned by day."""

    partitions = days(settings)

    def score_asset(name: str, description: str, compute: ScoreFunction, checks: Mapping[str, str] | None = None) -> dg.AssetsDefinition:
        @checked_asset(name, description, group=GROUP, checks=checks, partitions=partitions)
        def asset(context: dg.AssetExecutionContext, scores: dg.ResourceParam[ScoreResource]) -> Iterator[dg.MaterializeResult[Any]]:
            try:
                yield compute(scores.open(), context.partition_key)
            except PandoraError as error:
                raise failure(name, error) from error

        return asset

    return [
        score_asset(SCORES, _SCORES_DESCRIPTION, _score_versions, {CHECK: _CHECK_DESCRIPTION}),
        score_asset(LAYERS, _LAYERS_DESCRIPTION, _score_layers),
        score_asset(FAILURES, _FAILURES_DESCRIPTION, _list_failures),
    ]


def _score_versions(evaluation: Evaluation, day: str) -> dg.MaterializeResult[Any]:
    metrics, comparisons = evaluation.versions(day), evaluation.comparisons()
    evaluation.calibrate()
    rows = {f"{recipe}@{version} on {layer}": figures for (recipe, version, layer), figures in sorted(metrics.items())}
    by_age = sorted(metrics.items(), key=lambda item: item[1].newest)
    plotted = {recipe: figures for (recipe, *_), figures in by_age}  # of the version that ran last
    return dg.MaterializeResult(
        asset_key=SCORES, metadata=_score_metadata("version", rows, plotted), check_results=[_regression_check(comparisons)]
    )


def _score_layers(evaluation: Evaluation, day: str) -> dg.MaterializeResult[Any]:
    metrics = evaluation.layers(day)
    return dg.MaterializeResult(asset_key=LAYERS, metadata=_score_metadata("layer", dict(sorted(metrics.items())), metrics))


def _list_failures(evaluation: Evaluation, day: str) -> dg.MaterializeResult[Any]:
    return dg.MaterializeResult(asset_key=FAILURES, metadata=_failure_metadata(evaluation.failures(day)))


_SCORES_DESCRIPTION = (
    "Scores of each version and layer of each recipe, from the calls of the day: shares of calls that passed, passed at the first attempt, "
    "match the schema, cite existing sources, and whose turn was saved without revision or correction; calibration of stated confidence; "
    "failed gates, budgets, latency, cost. Answers of the embedded runtime (`extractive`) show nothing about a prompt: it reads none. "
    "The plots show the version that ran last."
)
_LAYERS_DESCRIPTION = "The same figures for each model layer."
_CHECK_DESCRIPTION = (
    "No version and layer in production is worse than its predecessor: Fisher's exact test, one-sided, at 0.01 for each recipe "
    "and day, divided among its shares, from 20 calls a side."
)


_FAILURES_DESCRIPTION = (
    "Failures of the day by recipe, version and cause, with examples: halts, failed calls and gates, retries, rejected answers, "
    "corrections by users. `pandora recipes lessons NAME` prints them as a brief for editing the prompt."
)


def _failure_metadata(groups: Sequence[FailureGroup]) -> dict[str, dg.MetadataValue[Any]]:
    """One row per group with its newest example, and the number of failures by recipe, which the UI plots."""
    rows = [
        dg.TableRecord(
            {
                "recipe": group.recipe,
                "version": group.version,
                "cause": group.cause,
                "count": group.count,
                "turn": group.examples[0].turn,
                "call": group.examples[0].call_id,
                "said": redact(group.examples[0].message)[:_MAX_EXAMPLE_CHARACTERS],
            }
        )
        for group in groups
    ]
    by_recipe = Counter[str]()
    for group in groups:
        by_recipe[group.recipe] += group.count
    columns = [dg.TableColumn(name, "any") for name in ("recipe", "version", "cause", "count", "turn", "call", "said")]
    return {
        "failures": dg.MetadataValue.table(rows, dg.TableSchema(columns)),
        "count": dg.MetadataValue.int(by_recipe.total()),
        **{f"{recipe}/failures": dg.MetadataValue.int(count) for recipe, count in by_recipe.items()},
    }


def _score_metadata(
    row_title: str, rows: Mapping[str, CallMetrics], plotted: Mapping[str, CallMetrics]
) -> dict[str, dg.MetadataValue[Any]]:
    """The table of `rows`, whose first column is `row_title`, and the figures of `plotted` as numbers, which the UI plots over the days."""
    records = [
        dg.TableRecord(
            {
                row_title: name,
                "answered_by": metrics.answered_by,
                **{k: "" if v is None else v for k, v in metrics.row().items()},
                "failed_gates": metrics.failed_gates,
            }
        )
        for name, metrics in rows.items()
    ]
    columns = [row_title, "answered_by", *CallMetrics().row(), "failed_gates"]
    numbers = {
        f"{name}/{figure}": dg.MetadataValue.float(float(value))
        for name, metrics in plotted.items()
        for figure, value in metrics.row().items()
        if figure in _PLOTTED_FIGURES and value is not None
    }
    gates = {
        f"{name}/failed {gate}": dg.MetadataValue.int(count)
        for name, metrics in plotted.items()
        for gate, count in metrics.gate_failures.items()
    }
    table = dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(name, "any") for name in columns]))
    return {"scores": table, "calls": dg.MetadataValue.int(sum(metrics.calls for metrics in rows.values())), **numbers, **gates}


def _regression_check(comparisons: Sequence[VersionComparison]) -> dg.AssetCheckResult:
    """The check that no version is worse than its predecessor, with one row for each compared share."""
    worse = [comparison for comparison in comparisons if comparison.verdict == "worse"]
    judged = [comparison for comparison in comparisons if comparison.verdict in ("worse", "not worse")]
    undecided = [comparison for comparison in comparisons if comparison.verdict == "not enough data"]
    description = "; ".join(comparison.summary for comparison in worse) or ("" if judged else "not enough data")
    rows = [
        dg.TableRecord(
            {
                "recipe": comparison.recipe,
                "version": comparison.version,
                "before": comparison.predecessor,
                "share": share.share,
                "good": f"{share.after_good} of {share.after}",
                "good before": f"{share.before_good} of {share.before}",
                "chance": share.chance,
                "worse": share.worse,
            }
        )
        for comparison in comparisons
        for share in comparison.rows
    ]
    metadata: dict[str, Any] = {"compared": len(judged), "not_enough_data": ", ".join(comparison.recipe for comparison in undecided)}
    if rows:
        metadata["shares"] = dg.MetadataValue.table(rows)
    return dg.AssetCheckResult(asset_key=SCORES, check_name=CHECK, passed=not worse, description=description or None, metadata=metadata)


JOB, SCHEDULE = "prompt_scores", "daily_prompt_scores"
_CRON = "30 5 * * *"
"""After nightly archival, which reads the same store."""

SCORES_JOB = dg.define_asset_job(
    JOB,
    selection=[SCORES, LAYERS, FAILURES],
    description="Scores prompts and layers by the calls of a day, lists failures, and checks for regressions.",
)


def scores_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`daily_prompt_scores`: at 05:30 in PANDORA_TIMEZONE, for the day before; a day without calls has no run."""
    partitions = days(settings)

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=_CRON,
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Scores the prompts by the calls of the day before.",
    )
    def daily_prompt_scores(
        context: dg.ScheduleEvaluationContext, scores: dg.ResourceParam[ScoreResource]
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        day = (now.astimezone(settings.zone) - timedelta(days=1)).date().isoformat()
        if day not in partitions.get_partition_keys(current_time=now):
            yield dg.SkipReason(f"{day}: before PANDORA_FIRST_DAY")
            return
        try:
            has_calls = bool(scores.open().layers(day))
        except PandoraError as error:
            raise failure(SCHEDULE, error) from error
        yield dg.RunRequest(run_key=day, partition_key=day) if has_calls else dg.SkipReason(f"{day}: no model was called")

    return daily_prompt_scores
