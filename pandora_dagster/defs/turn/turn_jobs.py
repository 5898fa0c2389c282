# pyright: reportUnknownMemberType=false
# (signatures of dg.job and dg.define_asset_job name a bare PathLike)
"""The job that starts a turn, `new_turn`. The job `turn` runs an existing one, `batch` those of a file of queries."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.defs.checked_asset import failure
from pandora_dagster.defs.instance import add_turn_partitions
from pandora_dagster.defs.run_events import RunEvents, check_evaluation
from pandora_dagster.defs.run_records import redact_run_config
from pandora_dagster.defs.turn.phase_assets import halt_failure, materialization_event, phase_summary, run_phase, run_tags
from pandora_dagster.defs.turn.phase_checks import check_names, judged_results, phase_recipes
from pandora_dagster.defs.turn.phase_runner import TurnStarter
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import ANSWER_SECTION
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import phase_table
from pandora_dagster.phases.flow.phase_spec import PhaseSpec

NEW_TURN_JOB = "new_turn"
_EXAMPLE_CONFIG = {"query": "Which chair did we order, and what did it cost?", "user": "example", "mode": "chat", "session": ""}
"""The preset of the launchpad; it runs unchanged over the shipped example history."""


class NewTurn(dg.Config):
    """What a user fills in to start a turn."""

    query: str = Field(description="What to ask, in plain words.")
    user: str = Field("", description="Whose history is read and continued; empty: PANDORA_USER.")
    mode: str = Field("chat", description="chat or code.")
    session: str = Field("", description="The conversation that the turn belongs to; empty: one a day.")


def new_turn_job(recipes: RecipeCatalog) -> dg.JobDefinition:
    """The job `new_turn`: starts a turn and runs its phases, each as a step, so that its page shows them while they run."""
    ask = _ask_op()
    steps = {spec.name: _phase_op(spec, recipes) for spec in phase_table.PHASES}

    @dg.job(
        name=NEW_TURN_JOB,
        description="Ask something: the turn gets its number and its partition, and runs through all phases, one step each.",
        config=dg.RunConfig(ops={ask.name: NewTurn(**_EXAMPLE_CONFIG)}),
    )
    def new_turn() -> None:
        finished = {"": ask()}
        for spec in phase_table.PHASES:
            finished[spec.name] = steps[spec.name](*(finished[need] for need in spec.needs or ("",)))

    return new_turn


def _ask_op() -> dg.OpDefinition:
    """The first step: it opens the turn, adds its partition, and tags the run with it."""

    @dg.op(name="ask", description="Opens a turn for the question.", out=dg.Out(dg.Nothing))
    def ask(context: dg.OpExecutionContext, config: NewTurn, pandora: dg.ResourceParam[TurnStarter]) -> None:
        try:
            key = pandora.start(config.query, user=config.user, session=config.session, mode=config.mode)
        except PandoraError as error:
            raise failure(NEW_TURN_JOB, error) from error
        with pandora.open(key) as turn:
            add_turn_partitions(context.instance, [key])
            context.instance.add_run_tags(context.run_id, run_tags(key, turn.session))
            redact_run_config(context.instance, _stored_run(context))
            context.add_output_metadata({"turn": str(key), "path": dg.PathMetadataValue(turn.folder(0))})
        context.log.info(f"{key}: each phase is a step of this run; the assets of the group turn show their results for {key}")

    return ask


def _phase_op(spec: PhaseSpec, recipes: RecipeCatalog) -> dg.OpDefinition:
    """One phase as a step. A branch that the turn did not take yields no output: Dagster skips the steps after it."""

    checks = check_names(spec, phase_recipes(spec, recipes))

    @dg.op(
        name=f"run_{spec.name}",
        description=spec.description,
        ins={need: dg.In(dg.Nothing) for need in spec.needs or ("turn",)},
        out=dg.Out(dg.Nothing, is_required=not spec.is_branch),
    )
    def phase(context: dg.OpExecutionContext, pandora: dg.ResourceParam[TurnStarter]) -> Iterator[dg.Output[None]]:
        report, folder = run_phase(spec.name, _turn_key(context), pandora)
        context.log.info(phase_summary(report))
        if report.skipped:
            return
        for result in judged_results(report, checks):
            context.log_event(check_evaluation(result))  # pyright: ignore[reportArgumentType] - accepted, though its type names three others
        if report.halt:
            RunEvents(context.instance, context.run_id, NEW_TURN_JOB).plan(report.phase, str(report.key), time.time())
            raise halt_failure(report, report.halt, folder)
        context.log_event(materialization_event(context.instance, report, folder))
        yield dg.Output(None, metadata=_answer_metadata(report))

    return phase


def _turn_key(context: dg.OpExecutionContext) -> TurnKey:
    """The turn of the run, from its tags: a run that is executed again from a failed step has those of the run before it."""
    tags = _stored_run(context).tags
    return TurnKey.parse(f"{tags['pandora/user']}:{tags['pandora/turn']}")


def _stored_run(context: dg.OpExecutionContext) -> dg.DagsterRun:
    run = context.instance.get_run_by_id(context.run_id)
    if run is None:
        raise dg.Failure(f"{context.run_id}: the run was deleted", allow_retries=False)
    return run


def _answer_metadata(report: PhaseReport) -> dict[str, Any]:
    """The answer, or the question back, for the step that stores it."""
    if not report.has_answer or report.turn is None:
        return {}
    answer = ContextDocument.parse(report.turn.context).body(ANSWER_SECTION)
    return {"answer": dg.MetadataValue.md(redact(answer)), "state": report.manifest.state.value}
