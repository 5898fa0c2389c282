"""One run of a summary level over many subjects: sessions (level L2) or users (level L3).

Each subject is worked on under its lock, with bounded concurrency, and gives one row. A fault of one subject becomes an intervention and a
failed row, and the run continues. `session_narratives` and `user_digests` define the work.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date
from time import monotonic
from zoneinfo import ZoneInfo

from pandora_dagster.archive.archive_selection import last_due_day, local_day
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import InterventionType, Priority
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import CallRequest, CallResult, CallSite, InputDocument
from pandora_dagster.contracts.ports.lineage_storage import LineageWriter
from pandora_dagster.contracts.ports.user_storage import LevelStore
from pandora_dagster.contracts.user.summary_levels import LevelOutcome, LevelReport, LevelRow, LevelSubject, TextOrigin
from pandora_dagster.errors import HaltError, InputError, PandoraError, StoreError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.halt_interventions import FATAL_INTERVENTIONS, HALTING_ERRORS, intervention_type

OnRow = Callable[[LevelRow], None]


@dataclass(frozen=True, slots=True)
class LevelRules:
    """Settings of the levels. `triggers`: the numbers of specification 003."""

    zone: ZoneInfo
    quiet_days: int = 30
    """Days without activity after which a session, or a user, is quiet."""
    triggers: SummarizationConfig = field(default_factory=SummarizationConfig)
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class LevelContext:
    """Dependencies of the levels. `lineage`, if given, receives the links of each text that is made."""

    deps: PhaseDependencies
    levels: LevelStore
    rules: LevelRules
    lineage: LineageWriter | None = None
    run_id: str = ""

    @property
    def background(self) -> PhaseDependencies:
        """Dependencies with batch priority, for calls that no user waits for."""
        return replace(self.deps, priority=Priority.BATCH, is_maintenance=True)

    def text_origin(self, result: CallResult) -> TextOrigin:
        """The origin of a text that this call made now."""
        record = result.record
        return TextOrigin(
            recipe=record.recipe,
            recipe_version=record.recipe_version,
            prompt_version=record.prompt_version,
            runtime=record.runtime,
            model=record.model,
            call_id=record.call_id,
            at=self.deps.now,
            run_id=self.run_id,
        )

    def is_quiet(self, turns: Sequence[TurnActivity]) -> bool:
        """Whether none of these turns was active within the quiet days. An unreadable day counts as past."""
        last_quiet_day = last_due_day(self.deps.clock(), self.rules.zone, self.rules.quiet_days)
        return all(_activity_day(turn, self.rules.zone) <= last_quiet_day for turn in turns)

    async def call(self, recipe: str, phase: str, subject: LevelSubject, documents: tuple[InputDocument, ...], *, limit: int) -> CallResult:
        """Run a recipe that writes at most `limit` tokens about a subject."""
        request = CallRequest(
            recipe=recipe,
            query="",
            site=CallSite(phase, subject.user, subject.session, priority=Priority.BATCH),
            documents=documents,
            variables={"max_tokens": str(limit)},
        )
        return await self.deps.execution.call(request)

    def halt(self, phase: str, subject: LevelSubject, kind: InterventionType, message: str, *, hint: str, call: CallResult) -> HaltError:
        """Open an intervention for a call whose answer was refused; returns the HaltError to raise."""
        names = ("recipe", "recipe_version", "call_id", "pack_ref", "answer_ref")
        call_fields = {name: str(getattr(call.record, name)) for name in names}
        opened = self.deps.interventions.open(kind, message, hint=hint, **_intervention_fields(phase, subject), **call_fields)
        return HaltError(message, intervention_id=opened.id, hint=hint)


LevelWork = Callable[[LevelSubject], Awaitable[LevelRow]]


async def run_subjects(subjects: Sequence[LevelSubject], work: LevelWork, ctx: LevelContext, *, phase: str, on_row: OnRow) -> LevelReport:
    """Run `work` on each subject under its lock, with bounded concurrency; `on_row` receives each row. No fault of one subject is raised.

    A subject that another process has locked is tried again at the end, with a wait. A subject with an open intervention of `phase` is
    skipped. A disk that refuses, or an unreachable model, ends the run; the next run continues.
    """
    run = _LevelRun(ctx, phase, work, on_row, _open_interventions(ctx, phase, by_session=any(s.session for s in subjects)))
    step = ctx.rules.concurrency
    for lock_wait_s, pending in ((0.0, subjects), (None, run.busy)):
        for start in range(0, len(pending), step):
            await asyncio.gather(*(run.run_subject(subject, lock_wait_s) for subject in pending[start : start + step]))
    return run.report


class _LevelRun:
    """One run and its report so far."""

    def __init__(self, ctx: LevelContext, phase: str, work: LevelWork, on_row: OnRow, interventions: Mapping[LevelSubject, str]) -> None:
        self._ctx, self._phase, self._work, self._on_row, self._interventions = ctx, phase, work, on_row, interventions
        self.report = LevelReport()
        self.busy: list[LevelSubject] = []
        """Subjects that another process had locked when they were tried."""

    async def run_subject(self, subject: LevelSubject, lock_wait_s: float | None) -> None:
        """Lock a subject and run the work on it; without the lock the subject is busy, or kept where `lock_wait_s` is None."""
        if self.report.stopped:
            return
        if intervention := self._interventions.get(subject):
            self._add_row(LevelRow(subject, LevelOutcome.KEPT, reason=f"intervention {intervention} is open: expected it resolved"))
            return
        with ExitStack() as locks:
            try:
                locks.enter_context(self._ctx.levels.lock(subject, wait_s=lock_wait_s))
            except StoreError as error:
                if lock_wait_s is None:
                    self._add_row(LevelRow(subject, LevelOutcome.KEPT, reason=str(error)))
                else:
                    self.busy.append(subject)
                return
            await self._run_locked(subject)

    async def _run_locked(self, subject: LevelSubject) -> None:
        started = monotonic()
        try:
            self._add_row(replace(await self._work(subject), seconds=monotonic() - started))
        except HaltError as halt:
            self._record_halt(subject, halt)
        except (*HALTING_ERRORS, InputError) as error:
            self._record_failure(subject, error)
        except StoreError as error:
            self.report = replace(self.report, stopped=str(error), hint=error.hint)

    def _record_halt(self, subject: LevelSubject, halt: HaltError) -> None:
        self._add_row(LevelRow(subject, LevelOutcome.FAILED, reason=str(halt), intervention=halt.intervention_id))
        if self._ctx.deps.interventions.show(halt.intervention_id).type in FATAL_INTERVENTIONS:
            self.report = replace(self.report, stopped=str(halt), hint=halt.hint)

    def _record_failure(self, subject: LevelSubject, error: PandoraError) -> None:
        message = f"{subject}: {error}"
        kind = intervention_type(error) if isinstance(error, HALTING_ERRORS) else InterventionType.CORRUPT_DOCUMENT
        opened = self._ctx.deps.interventions.open(kind, message, hint=error.hint, **_intervention_fields(self._phase, subject))
        self._add_row(LevelRow(subject, LevelOutcome.FAILED, reason=str(error), intervention=opened.id))

    def _add_row(self, row: LevelRow) -> None:
        counts = Counter(self.report.counts)
        counts[row.outcome] += 1
        failed = (*self.report.failed, row) if row.outcome is LevelOutcome.FAILED else self.report.failed
        self.report = replace(self.report, counts=dict(counts), failed=failed)
        self._on_row(row)


def _open_interventions(ctx: LevelContext, phase: str, *, by_session: bool) -> dict[LevelSubject, str]:
    """Subject -> its open intervention. One about an unreachable model is left out: the subject is tried again."""
    interventions = (i for i in ctx.deps.interventions.list(state="open") if i.phase == phase and i.type not in FATAL_INTERVENTIONS)
    return {LevelSubject(UserId(i.user_id), i.session_id if by_session else ""): i.id for i in interventions}


def _intervention_fields(phase: str, subject: LevelSubject) -> dict[str, str]:
    return {"user_id": subject.user, "session_id": subject.session, "phase": phase}


def _activity_day(turn: TurnActivity, zone: ZoneInfo) -> date:
    """The local day of a turn's last activity; `date.min` where it cannot be read."""
    try:
        return local_day(turn.last_activity, zone)
    except ValueError:
        return date.min
