"""One archival run over many turns: a batch is compressed while a thread writes the batch before it.

Memory is bounded by two batches, calls by a semaphore. A bad turn becomes an intervention and a failed row, and the run continues; a
refusing disk or an unreachable model ends the run, and the next run finishes it.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic

from pandora_dagster.archive.archive_selection import ArchiveSelection, EligibilityRule, current_eligibility, judge_manifest
from pandora_dagster.archive.turn_archival import PHASE, ArchiveContext, PackedTurn, pack_turn, store_turns
from pandora_dagster.contracts.archive_records import (
    ArchivedTurn,
    ArchiveOutcome,
    ArchiveReport,
    DueTurn,
    NotDueReason,
    TurnActivity,
)
from pandora_dagster.contracts.enums import InterventionType, Priority, TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import DocumentError, HaltError, InputError, PandoraError, StoreError, UnknownTurnError
from pandora_dagster.phases.core.halt_interventions import FATAL_INTERVENTIONS, intervention_type
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.phase_table import phase_in_role

_BATCH = 128
"""Turns that are written together: one fsync wait for all; a run has two batches in memory."""
_BATCH_BYTES = 32 * 1024 * 1024
"""Limit for the originals of a batch, in bytes."""
OnRow = Callable[[ArchivedTurn], None]


async def archive_turns(selected: ArchiveSelection, ctx: ArchiveContext, *, on_row: OnRow = lambda row: None) -> ArchiveReport:
    """Archive the selected turns. `on_row` receives each turn's row; the report has sums and failures.

    A turn that another process holds is tried last, once it is free. Never raises for one turn.
    """
    run = _ArchiveRun(ctx, current_eligibility(ctx), selected.known, on_row, ArchiveReport(due=len(selected.due), not_due=selected.not_due))
    try:
        for wait_s, waiting in ((0.0, selected.due), (None, run.busy)):
            for some in _batches(waiting, ctx):
                await run.archive_batch(some, wait_s=wait_s)
            await run.finish()
        ctx.cold.remove_partial_objects()
    except StoreError as error:
        run.stop(str(error), error.hint)
    finally:
        run.close()
    return run.report


def _batches(waiting: Iterable[DueTurn], ctx: ArchiveContext) -> Iterator[list[DueTurn]]:
    some: list[DueTurn] = []
    size = 0
    for due in waiting:
        more = ctx.folders.size(due.key)
        if some and (len(some) == _BATCH or size + more > _BATCH_BYTES):
            yield some
            some, size = [], 0
        some.append(due)
        size += more
    if some:
        yield some


@dataclass(slots=True)
class _Batch:
    """Turns whose locks are held."""

    locks: ExitStack
    made: list[PackedTurn] = field(default_factory=list[PackedTurn])
    left: list[DueTurn] = field(default_factory=list[DueTurn])
    """Archived by an interrupted run."""
    started: float = field(default_factory=monotonic)


@dataclass(slots=True)
class _StoredBatch:
    """The outcome of writing a batch."""

    after: list[Turn] = field(default_factory=list[Turn])
    settled: list[DueTurn] = field(default_factory=list[DueTurn])
    bad: list[tuple[DueTurn, PandoraError]] = field(default_factory=list[tuple[DueTurn, PandoraError]])

    @contextmanager
    def collect_fault(self, due: DueTurn) -> Generator[None]:
        """Collect the DocumentError of one turn."""
        try:
            yield
        except DocumentError as error:
            self.bad.append((due, error))


class _ArchiveRun:
    """One run: the batch that is being written, the sums so far."""

    def __init__(
        self, ctx: ArchiveContext, rules: EligibilityRule, known: frozenset[TurnActivity], on_row: OnRow, report: ArchiveReport
    ) -> None:
        self._ctx, self._rules, self._known, self._on_row = ctx, rules, set(known), on_row
        self._background = replace(ctx.deps, priority=Priority.BATCH, is_maintenance=True)
        self._limit = asyncio.Semaphore(ctx.rules.concurrency)
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._pending: tuple[_Batch, Future[_StoredBatch]] | None = None
        self.report = report
        self.busy: list[DueTurn] = []
        """Turns that another process held when they were tried."""

    async def archive_batch(self, due: Sequence[DueTurn], *, wait_s: float | None) -> None:
        """Compress a batch while the one before it is written, then submit it. Raises StoreError."""
        if self.report.stopped:
            return
        batch = _Batch(ExitStack())
        try:
            for refused in await asyncio.gather(*(self._archive_turn(one, batch, wait_s) for one in due), return_exceptions=True):
                if refused is not None:
                    raise refused
            await self.finish()
        except BaseException:
            batch.locks.close()
            raise
        self._pending = (batch, self._disk.submit(self._store_batch, batch))

    async def finish(self) -> None:
        """Wait for the batch that is being written, and report its turns. Raises StoreError."""
        if self._pending is None:
            return
        (batch, stored), self._pending = self._pending, None
        with batch.locks:
            done = await asyncio.wrap_future(stored)
        seconds = (monotonic() - batch.started) / max(len(done.after), 1)
        for turn in done.after:
            self._add_row(_archived_row(turn, seconds))
        for due in done.settled:
            self._add_row(_row(due, ArchiveOutcome.FINISHED, "archived before; its folder and row are complete now"))
        for due, error in done.bad:
            self._record_failure(due, error)

    def stop(self, why: str, hint: str) -> None:
        """No turn is begun after this."""
        self.report = replace(self.report, stopped=why, hint=hint)

    def close(self) -> None:
        """Wait for the writing thread, and release the locks of its batch."""
        self._disk.shutdown()
        if self._pending:
            self._pending[0].locks.close()

    async def _archive_turn(self, due: DueTurn, batch: _Batch, wait_s: float | None) -> None:
        """Lock and compress one turn, or report it as kept or failed."""
        async with self._limit:
            if self.report.stopped:
                return
            try:
                await self._archive_locked(due, batch, wait_s)
            except HaltError as halt:
                self._record_halt(due, halt)
            except UnknownTurnError as error:
                self._add_row(_row(due, ArchiveOutcome.KEPT, f"it is gone: {error}"))
            except (DocumentError, InputError) as error:
                self._record_failure(due, error)
            except StoreError as error:
                if isinstance(error.__cause__, OSError):
                    raise  # the disk refuses: it would refuse every other turn too
                self._record_failure(due, error)

    async def _archive_locked(self, due: DueTurn, batch: _Batch, wait_s: float | None) -> None:
        with ExitStack() as lock:
            try:
                lock.enter_context(self._ctx.deps.turns.lock(due.key, wait_s=wait_s))
            except StoreError as error:
                if wait_s is None:
                    self._add_row(_row(due, ArchiveOutcome.KEPT, str(error)))
                else:
                    self.busy.append(due)
                return
            manifest = self._ctx.deps.turns.manifest(due.key)
            if not _lacks_summary(manifest):
                batch.locks.push(lock.pop_all())
                await self._pack_or_keep(due, manifest, batch)
                return
        await self._make_summary(due, manifest)
        await self._archive_locked(due, batch, wait_s)

    async def _pack_or_keep(self, due: DueTurn, manifest: Manifest, batch: _Batch) -> None:
        judged = judge_manifest(manifest, self._ctx, self._rules)
        if isinstance(judged, DueTurn):
            batch.made.append(await pack_turn(judged, self._ctx))
        elif judged.cause is NotDueReason.ARCHIVED:
            batch.left.append(due)
        else:
            self._add_row(_row(due, ArchiveOutcome.KEPT, judged.reason))

    async def _make_summary(self, due: DueTurn, manifest: Manifest) -> None:
        """Make the summary that the row of a saved turn needs, where a crash prevented it. Raises HaltError."""
        self._known.discard(TurnActivity(due.key, manifest.state, manifest.last_activity))
        report = await turn_flow.run_phase(phase_in_role(PhaseRole.SUMMARY), due.key, self._background, again=False)
        if report.halt:
            raise HaltError(report.halt.message, intervention_id=report.halt.id, hint=report.halt.hint)

    def _store_batch(self, batch: _Batch) -> _StoredBatch:
        """Write and index a batch, in a thread; a bad turn is left out. Raises StoreError."""
        done = _StoredBatch()
        try:
            done.after += store_turns(batch.made, self._ctx) if batch.made else ()
        except DocumentError:
            for one in batch.made:
                with done.collect_fault(one.due):
                    done.after += store_turns([one], self._ctx)
        before = {one.due.key: one.turn for one in batch.made}
        self._index_turns([(before[turn.key], turn) for turn in done.after])
        for due in batch.left:
            with done.collect_fault(due):
                self._finish_interrupted(due.key)
                done.settled.append(due)
        return done

    def _index_turns(self, turns: Sequence[tuple[Turn, Turn]]) -> None:
        """Index turns by their originals; rows that were up to date keep their texts and change their state only."""
        # Rows last: a later run skips a turn whose row says archived.
        self._ctx.deps.calls.index_turns([(after.key, after.manifest.revision) for _, after in turns])
        self._ctx.put_lineage((after.manifest, before) for before, after in turns)
        same: list[Manifest] = []
        for before, after in turns:
            if TurnActivity(before.key, before.manifest.state, before.manifest.last_activity) in self._known:
                same.append(after.manifest)
            else:
                self._ctx.index_row(after.manifest, before)
        if same:
            self._ctx.deps.index.update_states(same)

    def _finish_interrupted(self, key: TurnKey) -> None:
        """Finish an interrupted run for one turn: folder, call index, lineage, row."""
        self._ctx.folders.reconcile(key)
        manifest, original = self._ctx.deps.turns.manifest(key), self._ctx.deps.turns.original(key)
        self._ctx.deps.calls.index_turns([(key, manifest.revision)])
        self._ctx.put_lineage([(manifest, original)])
        self._ctx.index_row(manifest, original)

    def _record_halt(self, due: DueTurn, halt: HaltError) -> None:
        self._add_row(_row(due, ArchiveOutcome.FAILED, str(halt), halt.intervention_id))
        if self._ctx.deps.interventions.show(halt.intervention_id).type in FATAL_INTERVENTIONS:
            self.stop(str(halt), halt.hint)

    def _record_failure(self, due: DueTurn, error: PandoraError) -> None:
        """Leave a damaged turn unchanged, and open an intervention."""
        kind = intervention_type(error) if isinstance(error, DocumentError) else InterventionType.CORRUPT_DOCUMENT
        fields = {"user_id": due.key.user, "turn_id": due.key.turn_id, "phase": PHASE}
        opened = self._ctx.deps.interventions.open(kind, f"{due.key}: {error}", hint=error.hint, **fields)
        self._add_row(_row(due, ArchiveOutcome.FAILED, str(error), opened.id))

    def _add_row(self, row: ArchivedTurn) -> None:
        known = self.report
        counts = {**known.counts, row.outcome: known.counts.get(row.outcome, 0) + 1}
        failed = (*known.failed, row) if row.outcome is ArchiveOutcome.FAILED else known.failed
        self.report = replace(known.plus(row.documents, row.size), counts=counts, failed=failed)
        self._on_row(row)


def _lacks_summary(manifest: Manifest) -> bool:
    return manifest.state is TurnState.SAVED and not manifest.recorded and not manifest.has_finished(phase_in_role(PhaseRole.SUMMARY))


def _row(due: DueTurn, outcome: ArchiveOutcome, reason: str, intervention: str = "") -> ArchivedTurn:
    """The row of a turn that this run did not archive."""
    return ArchivedTurn(due.key, due.day.isoformat(), outcome, reason=reason, intervention=intervention)


def _archived_row(turn: Turn, seconds: float) -> ArchivedTurn:
    record = turn.manifest.archive
    if record is None:
        raise ValueError(f"{turn.key}: not archived: expected an archived turn")
    return ArchivedTurn(turn.key, record.day, ArchiveOutcome.ARCHIVED, record.documents, record.cold, record.size, seconds=seconds)
