# pyright: reportUnknownMemberType=false
"""Prompts in Dagster: daily scores of each version and layer, failures, the check for regressions, and the schedule."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from pandora_dagster.app.evaluation import Evaluation
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.instance import days
from pandora_dagster.defs.resources import ScoreResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.governance.call_metrics import SHARES, CallMetrics
from pandora_dagster.governance.recipe_failures import FailureGroup
from pandora_dagster.governance.regressions import VersionComparison
from pandora_dagster.settings import Settings

SCORES, LAYERS, FAILURES, CHECK = "prompt_scorecard", "layer_scorecard", "prompt_failures", "no_prompt_regression"
GROUP = "prompts"
_SHOWN_CHARACTERS = 300
"""Characters of an example that the table shows."""
ScoreResult = Callable[[Evaluation, str], dg.MaterializeResult[Any]]
"""Computes the scores of a day."""
_PLOTTED = (*SHARES, "calibration_error", "budget_used", "latency_ms", "cost")


def prompt_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """`prompt_scorecard` with its check, `layer_scorecard` and `prompt_failures`, partitioned by day."""

    partitions = days(settings)

    def scored(name: str, description: str, result: ScoreResult, checks: Mapping[str, str] | None = None) -> dg.AssetsDefinition:
        @checked_asset(name, description, group=GROUP, checks=checks, days=partitions)
        def asset(context: dg.AssetExecutionContext, scores: dg.ResourceParam[ScoreResource]) -> Iterator[dg.MaterializeResult[Any]]:
            try:
                yield result(scores.open(), context.partition_key)
            except PandoraError as error:
                raise failure(name, error) from error

        return asset

    return [
        scored(SCORES, _SCORES, _version_scores, {CHECK: _CHECK}),
        scored(LAYERS, _LAYERS, _layer_scores),
        scored(FAILURES, _FAILURES, _failures),
    ]


def _version_scores(evaluation: Evaluation, day: str) -> dg.MaterializeResult[Any]:
    found, compared = evaluation.versions(day), evaluation.comparisons()
    named = {f"{recipe}@{version} on {layer}": one for (recipe, version, layer), one in sorted(found.items())}
    plotted = {recipe: one for (recipe, *_), one in sorted(found.items(), key=lambda row: row[1].newest)}  # the one that ran last
    return dg.MaterializeResult(asset_key=SCORES, metadata=_metadata("version", named, plotted), check_results=[_regression(compared)])


def _layer_scores(evaluation: Evaluation, day: str) -> dg.MaterializeResult[Any]:
    found = evaluation.layers(day)
    return dg.MaterializeResult(asset_key=LAYERS, metadata=_metadata("layer", dict(sorted(found.items())), found))


def _failures(evaluation: Evaluation, day: str) -> dg.MaterializeResult[Any]:
    return dg.MaterializeResult(asset_key=FAILURES, metadata=_causes(evaluation.failures(day)))


_SCORES = (
    "Scores of each version and layer of each recipe, from the calls of the day: shares of calls that passed, passed at the first attempt, "
    "match the schema, cite existing sources, and whose turn was saved without revision or correction; calibration of stated confidence; "
    "failed gates, budgets, latency, cost. The plots show the version that ran last."
)
_LAYERS = "The same figures for each model layer."
_CHECK = (
    "No version and layer in production is worse than its predecessor: Fisher's exact test, one-sided, at 0.01 for each recipe "
    "and day, divided among its shares, from 20 calls a side."
)


_FAILURES = (
    "Failures of the day by recipe, version and cause, with examples: halts, failed calls and gates, retries, rejected answers, "
    "corrections by users. `pandora recipes lessons NAME` prints them as a brief for editing the prompt."
)


def _causes(found: Sequence[FailureGroup]) -> dict[str, dg.MetadataValue[Any]]:
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
                "said": group.examples[0].message[:_SHOWN_CHARACTERS],
            }
        )
        for group in found
    ]
    by_recipe = Counter[str]()
    for group in found:
        by_recipe[group.recipe] += group.count
    columns = [dg.TableColumn(name, "any") for name in ("recipe", "version", "cause", "count", "turn", "call", "said")]
    return {
        "failures": dg.MetadataValue.table(rows, dg.TableSchema(columns)),
        "count": dg.MetadataValue.int(by_recipe.total()),
        **{f"{recipe}/failures": dg.MetadataValue.int(count) for recipe, count in by_recipe.items()},
    }


def _metadata(what: str, rows: Mapping[str, CallMetrics], plotted: Mapping[str, CallMetrics]) -> dict[str, dg.MetadataValue[Any]]:
    """The table, and the figures as numbers by recipe or layer, which the UI plots over the days."""
    records = [
        dg.TableRecord({what: name, **{k: "" if v is None else v for k, v in one.row().items()}, "failed_gates": one.failed_gates})
        for name, one in rows.items()
    ]
    columns = [what, *CallMetrics().row(), "failed_gates"]
    numbers = {
        f"{name}/{figure}": dg.MetadataValue.float(float(value))
        for name, one in plotted.items()
        for figure, value in one.row().items()
        if figure in _PLOTTED and value is not None
    }
    gates = {
        f"{name}/failed {gate}": dg.MetadataValue.int(count) for name, one in plotted.items() for gate, count in one.gate_failures.items()
    }
    table = dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(name, "any") for name in columns]))
    return {"scores": table, "calls": dg.MetadataValue.int(sum(one.calls for one in rows.values())), **numbers, **gates}


def _regression(found: Sequence[VersionComparison]) -> dg.AssetCheckResult:
    worse = [one for one in found if one.verdict == "worse"]
    judged = [one for one in found if one.verdict in ("worse", "not worse")]
    waiting = [one for one in found if one.verdict == "not enough data"]
    description = "; ".join(one.summary for one in worse) or ("" if judged else "not enough data")
    rows = [
        dg.TableRecord(
            {
                "recipe": one.recipe,
                "version": one.version,
                "before": one.predecessor,
                "share": row.share,
                "good": f"{row.after_good} of {row.after}",
                "good before": f"{row.before_good} of {row.before}",
                "chance": row.chance,
                "worse": row.worse,
            }
        )
        for one in found
        for row in one.rows
    ]
    metadata: dict[str, Any] = {"compared": len(judged), "not_enough_data": ", ".join(one.recipe for one in waiting)}
    if rows:
        metadata["shares"] = dg.MetadataValue.table(rows)
    return dg.AssetCheckResult(asset_key=SCORES, check_name=CHECK, passed=not worse, description=description or None, metadata=metadata)


JOB, SCHEDULE = "prompt_scores", "daily_prompt_scores"
_MINUTE, _HOUR = 30, 5
"""After nightly archival: both read the same store."""

SCORES_JOB = dg.define_asset_job(
    JOB,
    selection=[SCORES, LAYERS, FAILURES],
    description="Scores prompts and layers by the calls of a day, lists failures, and checks for regressions.",
)


def scores_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`daily_prompt_scores`: at 05:30 in PANDORA_TIMEZONE, for the day before."""
    partitions = days(settings)

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=f"{_MINUTE} {_HOUR} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Scores the prompts by the calls of the day before.",
    )
    def daily_prompt_scores(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = context.scheduled_execution_time
        day = (now.astimezone(settings.zone) - timedelta(days=1)).date().isoformat()
        if day in partitions.get_partition_keys(current_time=now):
            yield dg.RunRequest(run_key=day, partition_key=day)
        else:
            yield dg.SkipReason(f"{day}: before the first day of the store")

    return daily_prompt_scores
