# pyright: reportUnknownMemberType=false
# (signatures of dg.job and dg.define_asset_job name a bare PathLike)
"""The jobs that start turns: `new_turn` for one query, `batch` for the queries of files. The phases themselves run in the job `turn`."""

import dagster as dg
from pydantic import Field

from pandora_dagster.defs.batch import ASSET, JOB
from pandora_dagster.defs.turn.phase_assets import halt_failure, run_tags
from pandora_dagster.defs.turn.phase_runner import OpenTurn, TurnStarter
from pandora_dagster.defs.turn.turn_run import RunOutcome, execute_turn
from pandora_dagster.documents.turn_row import ANSWER_SECTION
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.flow import phase_table

BATCH_JOB = dg.define_asset_job(JOB, selection=[ASSET], description="The queries that wait in the inbox, on one day.")
_EXAMPLE_CONFIG = {"query": "Which chair did we order, and what did it cost?", "user": "example", "mode": "chat", "session": ""}
"""The preset of the launchpad; it runs unchanged over the shipped example history."""


class NewTurn(dg.Config):
    """What a user fills in to start a turn."""

    query: str = Field(description="What to ask, in plain words.")
    user: str = Field("", description="Whose history is read and continued; empty: PANDORA_USER.")
    mode: str = Field("chat", description="chat or code.")
    session: str = Field("", description="The conversation that the turn belongs to; empty: one a day.")


def new_turn_job(assets: list[dg.AssetsDefinition]) -> dg.JobDefinition:
    """The job `new_turn`: takes a number, adds the partition and runs the turn in its own process."""
    op = new_turn_op(assets)

    @dg.job(
        name="new_turn",
        description="Ask something: the turn gets its number and its partition, and runs through all phases.",
        config=dg.RunConfig(ops={op.name: NewTurn(**_EXAMPLE_CONFIG)}),
    )
    def new_turn() -> None:
        op()

    return new_turn


def new_turn_op(assets: list[dg.AssetsDefinition]) -> dg.OpDefinition:
    """The only op of `new_turn`: it starts the turn in a run of its own, and tags its own run with the turn."""

    @dg.op(name="ask", description="Starts a turn and runs it.")
    def ask(context: dg.OpExecutionContext, config: NewTurn, pandora: dg.ResourceParam[TurnStarter]) -> None:
        try:
            key = pandora.start(config.query, user=config.user, session=config.session, mode=config.mode)
        except PandoraError as error:
            raise dg.Failure(f"new_turn: {error}", allow_retries=False) from error
        with pandora.open(key) as turn:
            context.instance.add_run_tags(context.run_id, run_tags(key, turn.session))
            outcome = execute_turn(assets, turn, context.instance)
        _show_turn(context, turn, outcome)

    return ask


def _show_turn(context: dg.OpExecutionContext, turn: OpenTurn, outcome: RunOutcome) -> None:
    """Add the turn and its answer to the metadata of the run of `new_turn`; raise dg.Failure where the turn failed."""
    if not outcome.reports:
        raise dg.Failure(f"{outcome.key}: {outcome.error}", allow_retries=False)
    last_report = outcome.reports[-1]
    folder = turn.folder(last_report.manifest.revision)
    if outcome.halt:
        raise halt_failure(next(r for r in outcome.reports if r.halt), outcome.halt, folder)
    if not outcome.success:
        raise dg.Failure(f"{outcome.key}: {outcome.error}", allow_retries=False)
    writers = [spec.name for spec in phase_table.PHASES if spec.section == ANSWER_SECTION]
    answer = next((r.section for r in reversed(outcome.reports) if r.phase in writers and not r.skipped), "")
    metadata = {
        "turn": str(outcome.key),
        "run": outcome.run_id,
        "state": last_report.manifest.state.value,
        "path": dg.PathMetadataValue(folder),
    }
    context.add_output_metadata({**metadata, "answer": dg.MetadataValue.md(answer)})
