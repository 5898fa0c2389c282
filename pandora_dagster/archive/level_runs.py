"""What the levels above a turn are made with, and one run over many subjects: bounded, one bad subject does not stop the others.

Knows rows, locks and interventions; `narratives` and `digests` know what a level is.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date
from time import monotonic
from zoneinfo import ZoneInfo

from pandora_dagster.archive.eligibility import last_due_day, local_day
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import InterventionType, Priority
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import CallResult
from pandora_dagster.contracts.ports.lineage_storage import LineageWriter
from pandora_dagster.contracts.ports.user_storage import LevelStore
from pandora_dagster.contracts.user.summary_levels import LevelOutcome, LevelReport, LevelRow, LevelSubject, TextOrigin
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.errors import HaltError, InputError, PandoraError, StoreError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.halt_interventions import HALTING_ERRORS, intervention_type

_FATAL_INTERVENTIONS = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.CONFIG_ERROR})
"""What no other subject would be spared of."""
OnRow = Callable[[LevelRow], None]


@dataclass(frozen=True, slots=True)
class LevelRules:
    """What settings and 003 say of the levels."""

    zone: ZoneInfo
    quiet_days: int = 30
    """Days without activity after which a session, or a person, is at rest."""
    triggers: SummarizationConfig = field(default_factory=SummarizationConfig)
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class LevelContext:
    """What the levels are made with. `lineage`: told of the links of each level that is made; None where nobody listens."""

    deps: PhaseDependencies
    levels: LevelStore
    rules: LevelRules
    lineage: LineageWriter | None = None
    run_id: str = ""

    @property
    def background(self) -> PhaseDependencies:
        """The kit of calls for which nobody waits."""
        return replace(self.deps, priority=Priority.BATCH, at_rest=True)

    def made_by(self, result: CallResult) -> TextOrigin:
        record = result.record
        return TextOrigin(
            recipe=record.recipe,
            recipe_version=record.recipe_version,
            prompt_version=record.prompt_version,
            runtime=record.runtime,
            model=record.model,
            call_id=record.call_id,
            at=format_timestamp(self.deps.clock().replace(microsecond=0)),
            run_id=self.run_id,
        )

    def is_quiet(self, turns: Sequence[TurnActivity]) -> bool:
        """Whether none of these turns was active within the quiet days, so that little is to come. A day that can not be read is past."""
        last = last_due_day(self.deps.clock(), self.rules.zone, self.rules.quiet_days)
        return all(_activity_day(turn, self.rules.zone) <= last for turn in turns)

    def halt(self, phase: str, subject: LevelSubject, kind: InterventionType, message: str, *, hint: str, call: CallResult) -> HaltError:
        """The HALT of a level that judges a call's answer, with its intervention written."""
        names = ("recipe", "recipe_version", "call_id", "pack_ref", "answer_ref")
        judged = {name: str(getattr(call.record, name)) for name in names}
        opened = self.deps.interventions.open(kind, message, hint=hint, **_intervention_fields(phase, subject), **judged)
        return HaltError(message, intervention_id=opened.id, hint=hint)


LevelWork = Callable[[LevelSubject], Awaitable[LevelRow]]


async def run_subjects(subjects: Sequence[LevelSubject], work: LevelWork, ctx: LevelContext, *, phase: str, on_row: OnRow) -> LevelReport:
    """`work` on each subject under its lock, a few at a time; `on_row` is told of each as it is done. Never raises for one subject.

    One that another process works on is tried again in the end. One that an open intervention of `phase` names stays until that is
    resolved. A disk that refuses or a model that is down ends the run; the next one finishes it.
    """
    run = _LevelRun(ctx, phase, work, on_row, _open_interventions(ctx, phase, by_session=any(s.session for s in subjects)))
    for wait_s, waiting in ((0.0, subjects), (None, run.busy)):
        for start in range(0, len(waiting), ctx.rules.concurrency):
            if not run.report.stopped:
                await asyncio.gather(*(run.run_subject(subject, wait_s) for subject in waiting[start : start + ctx.rules.concurrency]))
    return run.report


class _LevelRun:
    """One run: what it told so far."""

    def __init__(self, ctx: LevelContext, phase: str, work: LevelWork, on_row: OnRow, named: Mapping[LevelSubject, str]) -> None:
        self._desk, self._phase, self._work, self._on_row, self._named = ctx, phase, work, on_row, named
        self.report = LevelReport()
        self.busy: list[LevelSubject] = []

    async def run_subject(self, subject: LevelSubject, wait_s: float | None) -> None:
        if self.report.stopped:
            return
        if intervention := self._named.get(subject):
            self._add_row(LevelRow(subject, LevelOutcome.KEPT, reason=f"intervention {intervention} is open: expected it resolved"))
            return
        with ExitStack() as locks:
            try:
                locks.enter_context(self._desk.levels.lock(subject, wait_s=wait_s))
            except StoreError as error:
                if wait_s is None:
                    self._add_row(LevelRow(subject, LevelOutcome.KEPT, reason=str(error)))
                else:
                    self.busy.append(subject)
                return
            await self._run_locked(subject)

    async def _run_locked(self, subject: LevelSubject) -> None:
        began = monotonic()
        try:
            self._add_row(replace(await self._work(subject), seconds=monotonic() - began))
        except HaltError as halt:
            self._record_halt(subject, halt)
        except (*HALTING_ERRORS, InputError) as error:
            self._record_failure(subject, error)
        except StoreError as error:
            self.report = replace(self.report, stopped=str(error), hint=error.hint)

    def _record_halt(self, subject: LevelSubject, halt: HaltError) -> None:
        self._add_row(LevelRow(subject, LevelOutcome.FAILED, reason=str(halt), intervention=halt.intervention_id))
        if self._desk.deps.interventions.show(halt.intervention_id).type in _FATAL_INTERVENTIONS:
            self.report = replace(self.report, stopped=str(halt), hint=halt.hint)

    def _record_failure(self, subject: LevelSubject, error: PandoraError) -> None:
        message = f"{subject}: {error}"
        kind = intervention_type(error) if isinstance(error, HALTING_ERRORS) else InterventionType.CORRUPT_DOCUMENT
        opened = self._desk.deps.interventions.open(kind, message, hint=error.hint, **_intervention_fields(self._phase, subject))
        self._add_row(LevelRow(subject, LevelOutcome.FAILED, reason=str(error), intervention=opened.id))

    def _add_row(self, row: LevelRow) -> None:
        counts = Counter(self.report.counts)
        counts[row.outcome] += 1
        failed = (*self.report.failed, row) if row.outcome is LevelOutcome.FAILED else self.report.failed
        self.report = replace(self.report, counts=dict(counts), failed=failed)
        self._on_row(row)


def _open_interventions(ctx: LevelContext, phase: str, *, by_session: bool) -> dict[LevelSubject, str]:
    """The subjects that open interventions name; one about a model that was down keeps nothing from a second try."""
    found = (i for i in ctx.deps.interventions.list(state="open") if i.phase == phase and i.type not in _FATAL_INTERVENTIONS)
    return {LevelSubject(UserId(i.user_id), i.session_id if by_session else ""): i.id for i in found}


def _intervention_fields(phase: str, subject: LevelSubject) -> dict[str, str]:
    return {"user_id": subject.user, "session_id": subject.session, "phase": phase}


def _activity_day(turn: TurnActivity, zone: ZoneInfo) -> date:
    try:
        return local_day(turn.last_activity, zone)
    except ValueError:
        return date.min
