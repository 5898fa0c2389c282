"""How the phases of a turn run: under one lock, with one turn in memory. Dagster, `ask`, `chat` and `resume` all use it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.turns import Manifest, PhaseRecord, Turn
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import ConfigurationError, DocumentError, HaltError, InputError, RecipeValidationError
from pandora_dagster.phases.core import turn_indexing
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.halt_interventions import HALTING_ERRORS, close_intervention, intervention_type, open_intervention
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput
from pandora_dagster.phases.core.phase_report import PhaseReport, build_report, manifest_report, worst_verdicts
from pandora_dagster.phases.core.size_limits import compression_facts, compression_rows, fit_document, fit_sections
from pandora_dagster.phases.core.turn_lock import TurnLock
from pandora_dagster.phases.flow.phase_spec import PhaseSpec
from pandora_dagster.phases.flow.phase_table import PHASES, follow_ups, phase_order, phase_spec, phases_before, section_writers
from pandora_dagster.phases.gather.session_history import open_question


def start_turn(
    deps: PhaseDependencies,
    query: str,
    *,
    user: UserId,
    session: SessionId,
    mode: str = "chat",
    number: int | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> TurnKey:
    """Open a turn with the user's words in section 0; `number`: one that was allocated, `metadata`: of the client.

    Raises InputError for an empty query.
    """
    if not query.strip():
        raise InputError("query: empty; expected the words of a question or request")
    question = open_question(deps, user, session)
    turn = deps.turns.start(
        user, query, session=session, mode=mode, now=deps.clock(), replies_to=question, number=number, metadata=metadata
    )
    deps.index.put([build_turn_row(turn.manifest, turn.context, turn.files)])
    return turn.key


def check_recipes(recipes: RecipeCatalog, mode: str) -> None:
    """Load every recipe that a turn in `mode` may need up to its answer; raises RecipeValidationError with all faults of all of them.

    A turn is not begun whose last recipe is broken: it would halt there after all the calls before it.
    """
    faults: list[str] = []
    for name in dict.fromkeys(recipe.name for spec in PHASES if not spec.is_follow_up for recipe in spec.recipes):
        try:
            recipes.get(name, mode)
        except RecipeValidationError as error:
            faults.extend(error.faults)
        except ConfigurationError as error:
            faults.append(str(error))
    if faults:
        raise RecipeValidationError(faults)


async def run_phase(name: str, key: TurnKey, deps: PhaseDependencies, *, again: bool = True) -> PhaseReport:
    """Run one phase of one turn under the turn's lock; see `TurnRun.run_phase`."""
    with open_turn(key, deps) as run:
        return await run.run_phase(name, again=again)


async def run_turn(key: TurnKey, deps: PhaseDependencies, *, on_report: Callable[[PhaseReport], None] = lambda _: None) -> PhaseReport:
    """Run what is left of a turn, phase after phase; stops at a HALT, but for one of a follow-up, which stops no other phase.

    Returns the report of the phase that HALTed, else of the last one. Raises InputError where nothing is left. What another process
    finished before the lock was free is not done twice.
    """
    last: PhaseReport | None = None
    with open_turn(key, deps) as run:
        for name in unfinished_phases(key, deps):
            report = await run.run_phase(name, again=False)
            if report.skipped:
                continue
            last = last if last and last.halt else report
            on_report(report)
            if (report.halt and not phase_spec(name).is_follow_up) or report.manifest.state is TurnState.CLARIFY:
                break
    if last is None:
        raise InputError(f"{key}: nothing is left to do; the turn is {deps.turns.manifest(key).state}")
    return last


def unfinished_phases(key: TurnKey, deps: PhaseDependencies) -> tuple[str, ...]:
    """The phases of a stored turn that have not finished. The index row of a finished turn is verified, because a crash may have left
    an older one."""
    manifest = deps.turns.manifest(key)
    remaining = remaining_phases(manifest)
    if not remaining:
        turn_indexing.repair_row(deps, manifest)
    return remaining


def remaining_phases(manifest: Manifest) -> tuple[str, ...]:
    """The phases that have not finished, in order; none for a turn that is clarified, archived, abandoned or recorded."""
    if manifest.recorded or manifest.state in (TurnState.CLARIFY, TurnState.ARCHIVED, TurnState.ABANDONED):
        return ()
    order, follow_up_names = phase_order(), follow_ups()
    main_phases = [p.phase for p in manifest.phases if p.phase in order and p.phase not in follow_up_names]
    last = max(map(order.index, main_phases), default=-1)
    return tuple(name for name in order[last + 1 :] if not manifest.has_finished(name))


@contextmanager
def open_turn(key: TurnKey, deps: PhaseDependencies) -> Generator["TurnRun"]:
    """Hold the turn's lock, but while a tool of it runs. Raises UnknownTurnError, and StoreError where another process holds the lock, or
    runs a tool of the turn, too long."""
    lock = TurnLock(key, deps.turns)
    lock.acquire()
    try:
        yield TurnRun(key, deps, lock)
    finally:
        lock.release()


class TurnRun:
    """A turn under its lock (`open_turn`): phases run on the turn as the last commit returned it; its folder is read once."""

    def __init__(self, key: TurnKey, deps: PhaseDependencies, lock: TurnLock) -> None:
        self.key = key
        self._deps, self._lock = deps, lock
        self._turn: Turn | None = None
        """None before the first phase, and after an error that leaves open what was stored."""
        self._halt_id: str | None = None
        """The intervention that the turn had when the phase began; reopening a halted turn removes it from the manifest."""
        self._has_open_row = False
        """Whether the index row says that the turn is unfinished, so that a crash from here on is repaired."""

    async def run_phase(self, name: str, *, again: bool = True) -> PhaseReport:
        """Run one phase and commit what it wrote. A HALT is returned in the report, after its intervention is stored.

        A finished phase runs again, a saved turn's in a revision beside it; with `again=False` it is skipped. Raises InputError where a
        phase that it needs has not finished.
        """
        spec = phase_spec(name)
        try:
            turn = self._load()
        except DocumentError as error:
            return self._report_unreadable(spec, error)
        if not spec.is_on_path(turn) or not (again or name in remaining_phases(turn.manifest)):
            return PhaseReport(name, self.key, turn.manifest, skipped=True, turn=turn)
        if missing := next((need for need in spec.needs if not turn.manifest.has_finished(need)), ""):
            raise InputError(f"{self.key}: {name}: {missing} has not finished; run it first, or the whole turn")
        self._turn, self._halt_id = None, turn.manifest.intervention
        ctx = self._context(spec, self._reopen(spec, turn))
        report = await self._run_spec(spec, ctx)
        self._turn = ctx.turn
        close_intervention(self._deps, turn.manifest.intervention, report.manifest)
        return replace(report, turn=ctx.turn, has_answer=spec.has_answer and report.halt is None)

    def _load(self) -> Turn:
        if self._turn is None:
            self._turn = self._deps.turns.load(self.key)
            self._has_open_row = self._turn.manifest.state in turn_indexing.UNSETTLED_STATES
        return self._turn

    def _context(self, spec: PhaseSpec, turn: Turn) -> PhaseContext:
        before = phases_before(spec.name)
        files = tuple(name for earlier in before for name in earlier.files)
        return PhaseContext(spec.name, turn, self._deps, files, tuple(e.section for e in before if e.section is not None), lock=self._lock)

    def _reopen(self, spec: PhaseSpec, turn: Turn) -> Turn:
        """The turn made ready for the phase; a new revision is in the index from its start, as every open turn is."""
        order, follow_up_names = phase_order(), follow_ups()
        reruns = spec.name not in remaining_phases(turn.manifest)
        if spec.is_follow_up:
            order = tuple(name for name in order if name == spec.name or name not in follow_up_names)
        if reruns or not self._has_open_row:
            turn_indexing.reopen_row(self._deps, turn.manifest, reruns=reruns)
            self._has_open_row = True
        reopened = self._deps.turns.reopen(turn, phase=spec.name, order=order)
        if reopened.manifest.revision != turn.manifest.revision:
            if self._deps.lineage:
                self._deps.lineage.put([(reopened.manifest, reopened)])
            row = build_turn_row(reopened.manifest, reopened.context, reopened.files)
            self._deps.index.put([row.model_copy(update={"state": TurnState.OPEN})])
        return reopened

    async def _run_spec(self, spec: PhaseSpec, ctx: PhaseContext) -> PhaseReport:
        try:
            output = await fit_sections(ctx, await spec.function(ctx))
        except HaltError as halt:
            return self._record_halt(ctx, self._deps.interventions.show(halt.intervention_id))
        except HALTING_ERRORS as error:
            call = ctx.results[-1].record if ctx.results else None
            kind = intervention_type(error)
            intervention = open_intervention(self._deps, spec.name, ctx.turn.manifest, kind, str(error), hint=error.hint, call=call)
            return self._record_halt(ctx, intervention)
        report = self._commit(spec, ctx, output)
        try:
            return await _fit_committed(ctx, output, report)
        except HaltError as halt:
            return self._record_halt(ctx, self._deps.interventions.show(halt.intervention_id))

    def _commit(self, spec: PhaseSpec, ctx: PhaseContext, output: PhaseOutput) -> PhaseReport:
        context = ctx.context_document
        for number, body in sorted(output.sections.items()):
            context = context.with_section(number, body)
        verdicts = worst_verdicts([v for r in ctx.results for v in r.verdicts] + [*output.verdicts, *ctx.compression_verdicts])
        record = PhaseRecord(
            phase=ctx.phase,
            finished_at=self._deps.now,
            recipes={r.record.recipe: r.record.recipe_version for r in ctx.results},
            runtimes=tuple(dict.fromkeys(r.record.runtime for r in ctx.results)),
            report=manifest_report(ctx.results, verdicts, {**output.facts, **compression_rows(ctx.compressions)}),
        )
        ctx.turn = self._deps.turns.commit(
            ctx.turn,
            phase=record,
            context=context.render() if output.sections else None,
            files=output.files,
            state=spec.final_state,
            **{"runtime": self._deps.runtime, "intervention": self._other_halt(spec, ctx), **_activity_fields(ctx), **output.manifest},
        )
        # A saved turn is indexed after its follow-ups, because the answer does not wait for the index (decision 16,
        # docs/decisions/16-the-answer-comes-first.md), and after each one that follows a HALT of another, which stays left to do.
        if not remaining_phases(ctx.turn.manifest) or ctx.turn.manifest.intervention:
            self._index(ctx.turn)
        shown_output = replace(output, facts={**output.facts, **compression_facts(ctx.compressions)})
        return build_report(ctx, ctx.turn, shown_output, verdicts)

    def _other_halt(self, spec: PhaseSpec, ctx: PhaseContext) -> str | None:
        """The intervention of a later phase that has not finished yet: finishing this phase, or running it again, does not resolve it."""
        if not self._halt_id or spec.has_answer:
            return None
        try:
            halted_phase = self._deps.interventions.show(self._halt_id).phase
        except (InputError, DocumentError):
            return None
        return self._halt_id if halted_phase != ctx.phase and halted_phase in remaining_phases(ctx.turn.manifest) else None

    def _record_halt(self, ctx: PhaseContext, intervention: Intervention) -> PhaseReport:
        """Store that the turn stopped. What follows a saved turn cannot unsave it (decision 16,
        docs/decisions/16-the-answer-comes-first.md)."""
        state = ctx.turn.manifest.state
        if state not in (TurnState.SAVED, TurnState.CLARIFY):
            state = TurnState.HALTED
        ctx.turn = self._deps.turns.commit(
            ctx.turn, phase=None, files=ctx.halt_files, state=state, intervention=intervention.id, **_activity_fields(ctx)
        )
        self._index(ctx.turn)
        return build_report(ctx, ctx.turn, PhaseOutput(), worst_verdicts([v for r in ctx.results for v in r.verdicts]), halt=intervention)

    def _report_unreadable(self, spec: PhaseSpec, error: DocumentError) -> PhaseReport:
        """A turn whose documents are damaged: nothing of it is changed; the intervention names the fault."""
        manifest = self._deps.turns.manifest(self.key)
        halt = open_intervention(self._deps, spec.name, manifest, intervention_type(error), str(error), hint=error.hint)
        return PhaseReport(spec.name, self.key, manifest, halt=halt)

    def _index(self, turn: Turn) -> None:
        turn_indexing.index_turn(self._deps, turn)
        self._has_open_row = turn.manifest.state in turn_indexing.UNSETTLED_STATES


async def _fit_committed(ctx: PhaseContext, output: PhaseOutput, report: PhaseReport) -> PhaseReport:
    """The committed phase's report; context.md is back under its limit before the next phase begins
    (specification 000, section 25, level 2)."""
    if not output.sections:
        return report
    counts_before = len(ctx.compressions), len(ctx.overflows)
    turn = await fit_document(ctx, output.sections, section_writers())
    if (len(ctx.compressions), len(ctx.overflows)) == counts_before:
        return report
    verdicts = worst_verdicts([*report.verdicts, *ctx.compression_verdicts])
    return replace(report, manifest=turn.manifest, verdicts=verdicts, facts={**report.facts, **compression_facts(ctx.compressions)})


def _activity_fields(ctx: PhaseContext) -> dict[str, str]:
    """The field by which maintenance keeps the turn's last activity; none for any other commit, which is an activity."""
    return {"last_activity": ctx.turn.manifest.last_activity} if ctx.deps.is_maintenance else {}
