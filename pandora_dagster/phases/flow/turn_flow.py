"""The flow of a turn: the table of phases, and how one of them runs. Dagster, `ask`, `chat` and `resume` all come here."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.phase_outputs import Reflection, TaskPlan
from pandora_dagster.contracts.turns import Manifest, PhaseRecord, Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.errors import DocumentError, HaltError, InputError
from pandora_dagster.phases.core import turn_indexing
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.halt_interventions import HALTING_ERRORS, close_intervention, intervention_type, open_intervention
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput
from pandora_dagster.phases.core.phase_report import PhaseReport, build_report, manifest_report, worst_verdicts
from pandora_dagster.phases.core.size_limits import compression_facts, compression_rows, fit_document, fit_sections
from pandora_dagster.phases.gather import context_gatherer
from pandora_dagster.phases.gather.session_history import open_question
from pandora_dagster.phases.steps import (
    answer_synthesis,
    clarification,
    conversation_summary,
    coordination,
    query_analysis,
    session_facts,
    task_plan,
    turn_completion,
)
from pandora_dagster.retrieval.turn_row import build_turn_row

PhaseFunction = Callable[[PhaseContext], Awaitable[PhaseOutput]]


@dataclass(frozen=True, slots=True)
class PhaseSpec:
    """One row of the flow. `branch`: the turn may take the other way, then nothing is written."""

    name: str
    number: str
    needs: tuple[str, ...]
    recipe: str | None
    section: int | None
    description: str
    branch: bool = False
    revision: str = "1"
    """The phase code's version: raise it when the code changes what it writes (DECISIONS 29)."""
    also: tuple[str, ...] = ()
    """Recipes that the phase may run beside its main one."""


async def _turn_request(ctx: PhaseContext) -> PhaseOutput:
    return PhaseOutput(shown=ctx.query)


PHASES: tuple[PhaseSpec, ...] = (
    PhaseSpec("turn_request", "", (), None, 0, "What the person asked: section 0, verbatim."),
    PhaseSpec("query_analysis", "0", ("turn_request",), query_analysis.ANALYZER, None, "What is asked and what it refers to."),
    PhaseSpec("reflection", "1", ("query_analysis",), query_analysis.REFLECTION, 1, "PROCEED, or CLARIFY with a question."),
    PhaseSpec(
        "clarification",
        "1",
        ("reflection",),
        turn_completion.SUMMARIZER,
        5,
        "The question back, saved and summarised.",
        branch=True,
        revision="2",
        also=(session_facts.FACTS, session_facts.PROFILE),
    ),
    PhaseSpec(
        "retrieval_plan",
        "2",
        ("reflection",),
        context_gatherer.RETRIEVAL,
        None,
        "Which earlier turns, memory, research and pages matter.",
        branch=True,
        revision="3",
    ),
    PhaseSpec(
        "gathered_context",
        "2",
        ("retrieval_plan",),
        context_gatherer.SYNTHESIS,
        2,
        "Section 2: what was found, with its sources.",
        revision="3",
    ),
    PhaseSpec("task_plan", "3", ("gathered_context",), task_plan.PLANNER, 3, "Section 3: the next step and the tasks.", revision="2"),
    PhaseSpec(
        "plan_clarification",
        "3",
        ("task_plan",),
        turn_completion.SUMMARIZER,
        5,
        "The Planner's question back.",
        branch=True,
        revision="2",
        also=(session_facts.FACTS, session_facts.PROFILE),
    ),
    PhaseSpec(
        "tool_results",
        "4",
        ("task_plan",),
        coordination.COORDINATOR,
        4,
        "Section 4: what the tools gave.",
        branch=True,
        revision="2",
        also=(coordination.EXECUTOR,),
    ),
    PhaseSpec("response", "5", ("tool_results",), answer_synthesis.SYNTHESIZER, 5, "Section 5: the answer, with citations.", revision="2"),
    PhaseSpec(
        "validation",
        "6",
        ("response",),
        answer_synthesis.VALIDATOR,
        6,
        "Section 6: the final gate, with bounded revisions.",
        revision="2",
        also=(answer_synthesis.SYNTHESIZER,),
    ),
    PhaseSpec("saved_turn", "7", ("validation",), None, None, "The turn is whole and saved.", revision="2"),
    PhaseSpec("turn_summary", "8", ("saved_turn",), turn_completion.SUMMARIZER, None, "The summary in the turn index.", revision="2"),
    PhaseSpec(
        "conversation_summary",
        "8",
        ("turn_summary",),
        conversation_summary.SUMMARIZER,
        None,
        "The session's rolling summary, carried on where it is due.",
    ),
    PhaseSpec(
        "session_facts",
        "8",
        ("turn_summary",),
        session_facts.FACTS,
        None,
        "What the person said of themselves, kept for the session; with consent for later ones.",
        also=(session_facts.PROFILE,),
    ),
)
"""In the order in which they run (DECISIONS 10)."""

ORDER: tuple[str, ...] = tuple(spec.name for spec in PHASES)
SPECS = {spec.name: spec for spec in PHASES}
_FOLLOW_UPS = tuple(spec.name for spec in PHASES if spec.needs == ("turn_summary",))
"""What a saved turn is followed by, each by itself: none needs another, and one that HALTs stops none."""
SECTION_OF = {spec.name: spec.section for spec in PHASES if spec.section}
"""Phase -> the section of context.md that it writes."""
_FUNCTIONS: dict[str, PhaseFunction] = {
    "turn_request": _turn_request,
    "query_analysis": query_analysis.query_analysis,
    "reflection": query_analysis.reflection,
    "clarification": clarification.clarification,
    "retrieval_plan": context_gatherer.retrieval_plan,
    "gathered_context": context_gatherer.gathered_context,
    "task_plan": task_plan.task_plan,
    "plan_clarification": clarification.plan_clarification,
    "tool_results": coordination.tool_results,
    "response": answer_synthesis.response,
    "validation": answer_synthesis.validation,
    "saved_turn": turn_completion.saved_turn,
    "turn_summary": turn_completion.turn_summary,
    "conversation_summary": conversation_summary.conversation_summary,
    "session_facts": session_facts.session_facts,
}


def start_turn(
    deps: PhaseDependencies, query: str, *, user: UserId, session: SessionId, mode: str = "chat", number: int | None = None
) -> TurnKey:
    """Open a turn with the person's words in section 0; `number`: one that was allocated. Raises InputError for an empty query."""
    if not query.strip():
        raise InputError("query: empty; expected the words of a question or request")
    asked = open_question(deps, user, session)
    turn = deps.turns.start(user, query, session=session, mode=mode, now=deps.clock(), replies_to=asked, number=number)
    deps.index.put([build_turn_row(turn.manifest, turn.context, turn.files)])
    return turn.key


async def run_phase(name: str, key: TurnKey, deps: PhaseDependencies, *, again: bool = True) -> PhaseReport:
    """Run one phase of one turn and commit what it wrote. A HALT comes back in the report, after it is written down.

    A finished phase runs again, a saved turn's in a revision beside it; with `again=False` it is skipped.
    """
    spec = SPECS[name]
    with deps.turns.lock(key):
        try:
            turn = deps.turns.load(key)
        except DocumentError as error:
            return _report_unreadable(spec, key, deps, error)
        if not _is_on_path(spec, turn) or not (again or name in remaining_phases(turn.manifest)):
            return PhaseReport(name, key, turn.manifest, skipped=True)
        if missing := next((need for need in spec.needs if not turn.manifest.finished(need)), ""):
            raise InputError(f"{key}: {name}: {missing} has not finished; run it first, or the whole turn")
        report = await _run_spec(spec, _reopen(spec, turn, deps), deps)
        close_intervention(deps, turn.manifest.intervention, report.manifest)
        return report


async def run_turn(key: TurnKey, deps: PhaseDependencies, *, on_report: Callable[[PhaseReport], None] = lambda _: None) -> PhaseReport:
    """Run what is left of a turn, phase after phase; stops at a HALT. Returns the last phase's report.

    Raises InputError where nothing is left. What another process finishes meanwhile is not done twice.
    """
    last: PhaseReport | None = None
    for name in unfinished_phases(key, deps):
        report = await run_phase(name, key, deps, again=False)
        if report.skipped:
            continue
        last = report
        on_report(report)
        if report.halt or report.manifest.state is TurnState.CLARIFY:
            break
    if last is None:
        raise InputError(f"{key}: nothing is left to do; the turn is {deps.turns.manifest(key).state}")
    return last


def unfinished_phases(key: TurnKey, deps: PhaseDependencies) -> tuple[str, ...]:
    """The phases of a stored turn that have not finished. One that is done is held against its index row, which a crash may have
    kept back."""
    manifest = deps.turns.manifest(key)
    if not (left := remaining_phases(manifest)):
        turn_indexing.repair_row(deps, manifest)
    return left


def remaining_phases(manifest: Manifest) -> tuple[str, ...]:
    """The phases that have not finished, in order; none for a turn that is clarified, archived, abandoned or recorded."""
    if manifest.recorded or manifest.state in (TurnState.CLARIFY, TurnState.ARCHIVED, TurnState.ABANDONED):
        return ()
    last = max((ORDER.index(p.phase) for p in manifest.phases if p.phase in SPECS and p.phase not in _FOLLOW_UPS), default=-1)
    return tuple(name for name in ORDER[last + 1 :] if not manifest.finished(name))


async def _run_spec(spec: PhaseSpec, turn: Turn, deps: PhaseDependencies) -> PhaseReport:
    ctx = PhaseContext(spec.name, turn, deps)
    try:
        written = await fit_sections(ctx, await _FUNCTIONS[spec.name](ctx))
    except HaltError as halt:
        return _record_halt(ctx, deps.interventions.show(halt.intervention_id))
    except HALTING_ERRORS as error:
        return _record_halt(
            ctx,
            open_intervention(deps, spec.name, turn.manifest, intervention_type(error), str(error), hint=error.hint, call=_last_call(ctx)),
        )
    report = _commit(ctx, written)
    try:
        return await _fit_committed(ctx, written, report)
    except HaltError as halt:
        return _record_halt(ctx, deps.interventions.show(halt.intervention_id))


async def _fit_committed(ctx: PhaseContext, written: PhaseOutput, report: PhaseReport) -> PhaseReport:
    """The committed phase's report; context.md is back under its limit before the next phase begins (000 section 25, level 2)."""
    if not written.sections:
        return report
    before = len(ctx.compressions), len(ctx.overflows)
    turn = await fit_document(ctx, written.sections, SECTION_OF)
    if (len(ctx.compressions), len(ctx.overflows)) == before:
        return report
    verdicts = worst_verdicts([*report.verdicts, *ctx.compression_verdicts])
    return replace(report, manifest=turn.manifest, verdicts=verdicts, facts={**report.facts, **compression_facts(ctx.compressions)})


def _commit(ctx: PhaseContext, written: PhaseOutput) -> PhaseReport:
    context = ContextDocument.parse(ctx.turn.context)
    for number, body in sorted(written.sections.items()):
        context = context.with_section(number, body)
    verdicts = worst_verdicts([v for r in ctx.results for v in r.verdicts] + [*written.verdicts, *ctx.compression_verdicts])
    record = PhaseRecord(
        phase=ctx.phase,
        finished_at=format_timestamp(ctx.deps.clock().replace(microsecond=0)),
        recipes={r.record.recipe: r.record.recipe_version for r in ctx.results},
        runtimes=tuple(dict.fromkeys(r.record.runtime for r in ctx.results)),
        report=manifest_report(ctx.results, verdicts, {**written.facts, **compression_rows(ctx.compressions)}),
    )
    turn = ctx.deps.turns.commit(
        ctx.turn,
        phase=record,
        context=context.render() if written.sections else None,
        files=written.files,
        state=written.state,
        **{"runtime": ctx.deps.runtime, "intervention": _other_halt(ctx), **_activity_fields(ctx), **written.manifest},
    )
    ctx.turn = turn
    # A saved turn is done once what follows it is: the answer does not wait for the index (DECISIONS 16).
    if not remaining_phases(turn.manifest):
        turn_indexing.index_turn(ctx.deps, turn)
    shown = replace(written, facts={**written.facts, **compression_facts(ctx.compressions)})
    return build_report(ctx, turn, shown, verdicts)


def _activity_fields(ctx: PhaseContext) -> dict[str, str]:
    """What a commit says of the turn's last activity; nothing where it is one."""
    return {"last_activity": ctx.turn.manifest.last_activity} if ctx.deps.at_rest else {}


def _other_halt(ctx: PhaseContext) -> str | None:
    """The intervention of another phase that follows the saved turn and is still left to do: finishing this one does not mend it."""
    manifest = ctx.turn.manifest
    if not manifest.intervention or ctx.phase not in _FOLLOW_UPS:
        return None
    try:
        halted = ctx.deps.interventions.show(manifest.intervention).phase
    except (InputError, DocumentError):
        return None
    return manifest.intervention if halted != ctx.phase and halted in remaining_phases(manifest) else None


def _record_halt(ctx: PhaseContext, intervention: Intervention) -> PhaseReport:
    """Write down that the turn stopped. What follows a saved turn can not unsave it (DECISIONS 16)."""
    saved = ctx.turn.manifest.state in (TurnState.SAVED, TurnState.CLARIFY)
    state = ctx.turn.manifest.state if saved else TurnState.HALTED
    turn = ctx.deps.turns.commit(ctx.turn, phase=None, files=ctx.kept, state=state, intervention=intervention.id, **_activity_fields(ctx))
    turn_indexing.index_turn(ctx.deps, turn)
    return build_report(ctx, turn, PhaseOutput(), worst_verdicts([v for r in ctx.results for v in r.verdicts]), halt=intervention)


def _report_unreadable(spec: PhaseSpec, key: TurnKey, deps: PhaseDependencies, error: DocumentError) -> PhaseReport:
    """A turn whose documents are damaged: nothing of it is touched, the intervention names the fault."""
    manifest = deps.turns.manifest(key)
    return PhaseReport(
        spec.name, key, manifest, halt=open_intervention(deps, spec.name, manifest, intervention_type(error), str(error), hint=error.hint)
    )


def _reopen(spec: PhaseSpec, turn: Turn, deps: PhaseDependencies) -> Turn:
    """The turn made ready for the phase; a new revision is in the index from its start, as every open turn is."""
    order = [name for name in ORDER if name == spec.name or name not in _FOLLOW_UPS] if spec.name in _FOLLOW_UPS else ORDER
    turn_indexing.reopen_row(deps, turn.manifest, redone=spec.name not in remaining_phases(turn.manifest))
    ready = deps.turns.reopen(turn, phase=spec.name, order=order)
    if ready.manifest.revision != turn.manifest.revision:
        if deps.lineage:
            deps.lineage.put([(ready.manifest, ready)])
        deps.index.put([build_turn_row(ready.manifest, ready.context, ready.files).model_copy(update={"state": TurnState.OPEN})])
    return ready


def _last_call(ctx: PhaseContext) -> CallRecord | None:
    return ctx.results[-1].record if ctx.results else None


def _is_on_path(spec: PhaseSpec, turn: Turn) -> bool:
    """Whether the turn goes this way: the branch is read from the parsed answer of the phase before."""
    if not spec.branch:
        return True
    if spec.needs == ("reflection",):
        if "reflection.json" not in turn.files:
            return True
        clarifies = Reflection.model_validate_json(turn.files["reflection.json"]).decision == "CLARIFY"
        return clarifies == (spec.name == "clarification")
    if "task_plan.json" not in turn.files:
        return True
    clarifies = TaskPlan.model_validate_json(turn.files["task_plan.json"]).next_step == "clarify"
    return clarifies == (spec.name == "plan_clarification")
