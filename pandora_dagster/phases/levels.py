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

from pandora_dagster.compression.levels.config import SummarizationConfig
from pandora_dagster.contracts.archive import Stands
from pandora_dagster.contracts.calls import CallResult
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.levels import LevelOutcome, LevelReport, LevelRow, LevelStore, MadeBy, Subject
from pandora_dagster.contracts.lineage import KeepsLineage
from pandora_dagster.contracts.words import InterventionType, Priority
from pandora_dagster.errors import HaltError, InputError, PandoraError, StoreError
from pandora_dagster.phases.halting import HALTING, kind_of
from pandora_dagster.phases.kit import Kit
from pandora_dagster.selection.due import day_of, last_due_day
from pandora_dagster.text.dates import stamp

_DOWN = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.CONFIG_ERROR})
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
class LevelDesk:
    """What the levels are made with. `lineage`: told of the links of each level that is made; None where nobody listens."""

    kit: Kit
    levels: LevelStore
    rules: LevelRules
    lineage: KeepsLineage | None = None
    run_id: str = ""

    @property
    def night(self) -> Kit:
        """The kit of calls for which nobody waits."""
        return replace(self.kit, priority=Priority.NIGHT, at_rest=True)

    def made_by(self, result: CallResult) -> MadeBy:
        record = result.record
        return MadeBy(
            recipe=record.recipe,
            recipe_version=record.recipe_version,
            prompt_version=record.prompt_version,
            runtime=record.runtime,
            model=record.model,
            call_id=record.call_id,
            at=stamp(self.kit.clock().replace(microsecond=0)),
            run_id=self.run_id,
        )

    def at_rest(self, turns: Sequence[Stands]) -> bool:
        """Whether none of these turns was active within the quiet days, so that little is to come. A day that can not be read is past."""
        last = last_due_day(self.kit.clock(), self.rules.zone, self.rules.quiet_days)
        return all(_day(turn, self.rules.zone) <= last for turn in turns)

    def halt(self, phase: str, subject: Subject, kind: InterventionType, message: str, *, hint: str, call: CallResult) -> HaltError:
        """The HALT of a level that judges a call's answer, with its intervention written."""
        names = ("recipe", "recipe_version", "call_id", "pack_ref", "answer_ref")
        judged = {name: str(getattr(call.record, name)) for name in names}
        opened = self.kit.interventions.open(kind, message, hint=hint, **_fields(phase, subject), **judged)
        return HaltError(message, intervention_id=opened.id, hint=hint)


Work = Callable[[Subject], Awaitable[LevelRow]]


async def each(subjects: Sequence[Subject], work: Work, desk: LevelDesk, *, phase: str, on_row: OnRow) -> LevelReport:
    """`work` on each subject under its lock, a few at a time; `on_row` is told of each as it is done. Never raises for one subject.

    One that another process works on is tried again in the end. One that an open intervention of `phase` names stays until that is
    resolved. A disk that refuses or a model that is down ends the run; the next one finishes it.
    """
    run = _Run(desk, phase, work, on_row, _named(desk, phase, by_session=any(s.session for s in subjects)))
    for wait_s, waiting in ((0.0, subjects), (None, run.busy)):
        for start in range(0, len(waiting), desk.rules.concurrency):
            if not run.report.stopped:
                await asyncio.gather(*(run.one(subject, wait_s) for subject in waiting[start : start + desk.rules.concurrency]))
    return run.report


class _Run:
    """One run: what it told so far."""

    def __init__(self, desk: LevelDesk, phase: str, work: Work, on_row: OnRow, named: Mapping[Subject, str]) -> None:
        self._desk, self._phase, self._work, self._on_row, self._named = desk, phase, work, on_row, named
        self.report = LevelReport()
        self.busy: list[Subject] = []

    async def one(self, subject: Subject, wait_s: float | None) -> None:
        if self.report.stopped:
            return
        if intervention := self._named.get(subject):
            self._tell(LevelRow(subject, LevelOutcome.KEPT, reason=f"intervention {intervention} is open: expected it resolved"))
            return
        with ExitStack() as locks:
            try:
                locks.enter_context(self._desk.levels.lock(subject, wait_s=wait_s))
            except StoreError as error:
                if wait_s is None:
                    self._tell(LevelRow(subject, LevelOutcome.KEPT, reason=str(error)))
                else:
                    self.busy.append(subject)
                return
            await self._locked(subject)

    async def _locked(self, subject: Subject) -> None:
        began = monotonic()
        try:
            self._tell(replace(await self._work(subject), seconds=monotonic() - began))
        except HaltError as halt:
            self._halted(subject, halt)
        except (*HALTING, InputError) as error:
            self._failed(subject, error)
        except StoreError as error:
            self.report = replace(self.report, stopped=str(error), hint=error.hint)

    def _halted(self, subject: Subject, halt: HaltError) -> None:
        self._tell(LevelRow(subject, LevelOutcome.FAILED, reason=str(halt), intervention=halt.intervention_id))
        if self._desk.kit.interventions.show(halt.intervention_id).type in _DOWN:
            self.report = replace(self.report, stopped=str(halt), hint=halt.hint)

    def _failed(self, subject: Subject, error: PandoraError) -> None:
        message = f"{subject}: {error}"
        kind = kind_of(error) if isinstance(error, HALTING) else InterventionType.CORRUPT_DOCUMENT
        opened = self._desk.kit.interventions.open(kind, message, hint=error.hint, **_fields(self._phase, subject))
        self._tell(LevelRow(subject, LevelOutcome.FAILED, reason=str(error), intervention=opened.id))

    def _tell(self, row: LevelRow) -> None:
        counts = Counter(self.report.counts)
        counts[row.outcome] += 1
        failed = (*self.report.failed, row) if row.outcome is LevelOutcome.FAILED else self.report.failed
        self.report = replace(self.report, counts=dict(counts), failed=failed)
        self._on_row(row)


def _named(desk: LevelDesk, phase: str, *, by_session: bool) -> dict[Subject, str]:
    """The subjects that open interventions name; one about a model that was down keeps nothing from a second try."""
    found = (i for i in desk.kit.interventions.list(state="open") if i.phase == phase and i.type not in _DOWN)
    return {Subject(UserId(i.user_id), i.session_id if by_session else ""): i.id for i in found}


def _fields(phase: str, subject: Subject) -> dict[str, str]:
    return {"user_id": subject.user, "session_id": subject.session, "phase": phase}


def _day(turn: Stands, zone: ZoneInfo) -> date:
    try:
        return day_of(turn.last_activity, zone)
    except ValueError:
        return date.min
