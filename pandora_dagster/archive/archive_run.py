"""One archival run over many turns, in batches.

For each turn of a batch: take its lock, make the summary that it lacks, judge it by its manifest, compress it in memory. While one batch is
compressed, a thread writes the batch before it: cold objects, manifests, call index, lineage and, last, rows of the turn index. A run that
was cut off between those steps leaves archived turns with an old row; the next run finishes them (`interrupted`).

Memory is bounded by two batches, concurrent calls by a semaphore. A damaged turn becomes an intervention and a failed row of the
report, and the run continues. A disk that refuses, or an unreachable model, ends the run; the next run continues.
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

_MAX_BATCH_TURNS = 128
"""Turns that are written together, with one wait for fsync."""
_MAX_BATCH_BYTES = 32 * 1024 * 1024
"""Bytes of the originals of a batch."""
OnRow = Callable[[ArchivedTurn], None]


async def archive_turns(selected: ArchiveSelection, ctx: ArchiveContext, *, on_row: OnRow = lambda row: None) -> ArchiveReport:
    """Archive the selected turns. `on_row` receives each turn's row of the report; the report has the sums and the failed rows.

    A turn that another process has locked is tried again at the end, with a wait. No fault of a single turn is raised.
    """
    report = ArchiveReport(due=len(selected.due), not_due=selected.not_due)
    run = _ArchiveRun(ctx, current_eligibility(ctx), selected.indexed, on_row, report)
    try:
        for lock_wait_s, turns in ((0.0, selected.due), (None, run.busy)):
            for batch in _divide_into_batches(turns, ctx):
                await run.archive_batch(batch, lock_wait_s=lock_wait_s)
            await run.finish()
        ctx.cold.remove_partial_objects()
    except StoreError as error:
        run.stop(str(error), error.hint)
    finally:
        run.close()
    return run.report


def _divide_into_batches(turns: Iterable[DueTurn], ctx: ArchiveContext) -> Iterator[list[DueTurn]]:
    batch: list[DueTurn] = []
    batch_bytes = 0
    for due in turns:
        turn_bytes = ctx.folders.size(due.key)
        if batch and (len(batch) == _MAX_BATCH_TURNS or batch_bytes + turn_bytes > _MAX_BATCH_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(due)
        batch_bytes += turn_bytes
    if batch:
        yield batch


@dataclass(slots=True)
class _Batch:
    """Turns whose locks this run holds."""

    locks: ExitStack
    packed: list[PackedTurn] = field(default_factory=list[PackedTurn])
    interrupted: list[DueTurn] = field(default_factory=list[DueTurn])
    """Turns that an interrupted run archived without their rows in the index."""
    started: float = field(default_factory=monotonic)


@dataclass(slots=True)
class _StoredBatch:
    """The outcome of writing a batch."""

    archived: list[Turn] = field(default_factory=list[Turn])
    finished: list[DueTurn] = field(default_factory=list[DueTurn])
    """Turns of an interrupted run that are complete now."""
    failed: list[tuple[DueTurn, PandoraError]] = field(default_factory=list[tuple[DueTurn, PandoraError]])

    @contextmanager
    def collect_fault(self, due: DueTurn) -> Generator[None]:
        """Collect the DocumentError of one turn."""
        try:
            yield
        except DocumentError as error:
            self.failed.append((due, error))


class _ArchiveRun:
    """One run: the batch that is being written, the sums so far."""

    def __init__(
        self, ctx: ArchiveContext, eligibility: EligibilityRule, indexed: frozenset[TurnActivity], on_row: OnRow, report: ArchiveReport
    ) -> None:
        self._ctx, self._eligibility, self._indexed, self._on_row = ctx, eligibility, set(indexed), on_row
        self._background = replace(ctx.deps, priority=Priority.BATCH, is_maintenance=True)
        self._limit = asyncio.Semaphore(ctx.rules.concurrency)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._pending: tuple[_Batch, Future[_StoredBatch]] | None = None
        self.report = report
        self.busy: list[DueTurn] = []
        """Turns that another process held when they were tried."""

    async def archive_batch(self, due: Sequence[DueTurn], *, lock_wait_s: float | None) -> None:
        """Compress a batch while the one before it is written, then submit it to the writing thread. Raises StoreError.

        `lock_wait_s`: None waits as long as the store usually does.
        """
        if self.report.stopped:
            return
        batch = _Batch(ExitStack())
        try:
            for error in await asyncio.gather(*(self._archive_turn(turn, batch, lock_wait_s) for turn in due), return_exceptions=True):
                if error is not None:
                    raise error
            await self.finish()
        except BaseException:
            batch.locks.close()
            raise
        self._pending = (batch, self._writer.submit(self._store_batch, batch))

    async def finish(self) -> None:
        """Wait for the batch that is being written, and report its turns. Raises StoreError."""
        if self._pending is None:
            return
        (batch, writing), self._pending = self._pending, None
        with batch.locks:
            stored = await asyncio.wrap_future(writing)
        seconds = (monotonic() - batch.started) / max(len(stored.archived), 1)
        for turn in stored.archived:
            self._add_row(_archived_row(turn, seconds))
        for due in stored.finished:
            self._add_row(_outcome_row(due, ArchiveOutcome.FINISHED, "archived before; its folder and row are complete now"))
        for due, error in stored.failed:
            self._record_failure(due, error)

    def stop(self, why: str, hint: str) -> None:
        """Report why the run ends; no turn begins after this."""
        self.report = replace(self.report, stopped=why, hint=hint)

    def close(self) -> None:
        """Wait for the writing thread, and release the locks of its batch."""
        self._writer.shutdown()
        if self._pending:
            self._pending[0].locks.close()

    async def _archive_turn(self, due: DueTurn, batch: _Batch, lock_wait_s: float | None) -> None:
        """Lock and compress one turn, or report it as kept or failed."""
        async with self._limit:
            if self.report.stopped:
                return
            try:
                await self._lock_and_archive(due, batch, lock_wait_s)
            except HaltError as halt:
                self._record_halt(due, halt)
            except UnknownTurnError as error:
                self._add_row(_outcome_row(due, ArchiveOutcome.KEPT, f"it is gone: {error}"))
            except (DocumentError, InputError) as error:
                self._record_failure(due, error)
            except StoreError as error:
                if isinstance(error.__cause__, OSError):
                    raise  # the disk refuses: it would refuse every other turn too
                self._record_failure(due, error)

    async def _lock_and_archive(self, due: DueTurn, batch: _Batch, lock_wait_s: float | None) -> None:
        """Lock a turn and compress it; where it lacks its summary, run that phase first, which takes the lock itself."""
        for is_summary_due in (True, False):
            with ExitStack() as lock:
                try:
                    lock.enter_context(self._ctx.deps.turns.lock(due.key, wait_s=lock_wait_s))
                except StoreError as error:
                    if lock_wait_s is None:
                        self._add_row(_outcome_row(due, ArchiveOutcome.KEPT, str(error)))
                    else:
                        self.busy.append(due)
                    return
                manifest = self._ctx.deps.turns.manifest(due.key)
                if not _lacks_summary(manifest):
                    batch.locks.push(lock.pop_all())
                    await self._pack_or_keep(due, manifest, batch)
                    return
            if is_summary_due:
                await self._make_summary(due, manifest)
        self._add_row(_outcome_row(due, ArchiveOutcome.KEPT, "it has no summary, although its summary phase ran"))

    async def _pack_or_keep(self, due: DueTurn, manifest: Manifest, batch: _Batch) -> None:
        verdict = judge_manifest(manifest, self._ctx, self._eligibility)
        if isinstance(verdict, DueTurn):
            batch.packed.append(await pack_turn(verdict, self._ctx))
        elif verdict.cause is NotDueReason.ARCHIVED:
            batch.interrupted.append(due)
        else:
            self._add_row(_outcome_row(due, ArchiveOutcome.KEPT, verdict.reason))

    async def _make_summary(self, due: DueTurn, manifest: Manifest) -> None:
        """Make the summary that the row of a saved turn needs, where a crash prevented it. Raises HaltError."""
        # The summary changes the turn: its row is not up to date then.
        self._indexed.discard(TurnActivity(due.key, manifest.state, manifest.last_activity))
        report = await turn_flow.run_phase(phase_in_role(PhaseRole.SUMMARY), due.key, self._background, again=False)
        if report.halt:
            raise HaltError(report.halt.message, intervention_id=report.halt.id, hint=report.halt.hint)

    def _store_batch(self, batch: _Batch) -> _StoredBatch:
        """Write and index a batch, in the writing thread; a damaged turn stays unchanged. Raises StoreError."""
        stored = _StoredBatch()
        try:
            stored.archived += store_turns(batch.packed, self._ctx) if batch.packed else ()
        except DocumentError:  # one turn is damaged: each is tried alone
            for packed in batch.packed:
                with stored.collect_fault(packed.due):
                    stored.archived += store_turns([packed], self._ctx)
        packed_turns = {packed.due.key: packed for packed in batch.packed}
        self._index_turns([(packed_turns[turn.key], turn) for turn in stored.archived], stored)
        for due in batch.interrupted:
            with stored.collect_fault(due):
                self._finish_interrupted(due.key)
                stored.finished.append(due)
        return stored

    def _index_turns(self, turns: Sequence[tuple[PackedTurn, Turn]], stored: _StoredBatch) -> None:
        """Index archived turns by their original texts; a row that was up to date only changes its state.

        A turn whose session record is damaged is archived, and stays without a row until that is repaired.
        """
        # Rows last: a later run skips a turn whose row says archived.
        self._ctx.deps.calls.index_turns([(archived.key, archived.manifest.revision) for _, archived in turns])
        self._ctx.put_lineage((archived.manifest, packed.turn) for packed, archived in turns)
        indexed: list[Manifest] = []
        for packed, archived in turns:
            original = packed.turn
            if TurnActivity(original.key, original.manifest.state, original.manifest.last_activity) in self._indexed:
                indexed.append(archived.manifest)
            else:
                with stored.collect_fault(packed.due):
                    self._ctx.index_row(archived.manifest, original)
        if indexed:
            self._ctx.deps.index.update_states(indexed)

    def _finish_interrupted(self, key: TurnKey) -> None:
        """Complete a turn that an interrupted run archived: its folder, call index, lineage and row."""
        self._ctx.folders.reconcile(key)
        manifest, original = self._ctx.deps.turns.manifest(key), self._ctx.deps.turns.original(key)
        self._ctx.deps.calls.index_turns([(key, manifest.revision)])
        self._ctx.put_lineage([(manifest, original)])
        self._ctx.index_row(manifest, original)

    def _record_halt(self, due: DueTurn, halt: HaltError) -> None:
        self._add_row(_outcome_row(due, ArchiveOutcome.FAILED, str(halt), halt.intervention_id))
        if self._ctx.deps.interventions.show(halt.intervention_id).type in FATAL_INTERVENTIONS:
            self.stop(str(halt), halt.hint)

    def _record_failure(self, due: DueTurn, error: PandoraError) -> None:
        """Open an intervention for a damaged turn, which stays unchanged, and report it."""
        kind = intervention_type(error) if isinstance(error, DocumentError) else InterventionType.CORRUPT_DOCUMENT
        fields = {"user_id": due.key.user, "turn_id": due.key.turn_id, "phase": PHASE}
        opened = self._ctx.deps.interventions.open(kind, f"{due.key}: {error}", hint=error.hint, **fields)
        self._add_row(_outcome_row(due, ArchiveOutcome.FAILED, str(error), opened.id))

    def _add_row(self, row: ArchivedTurn) -> None:
        report = self.report
        counts = {**report.counts, row.outcome: report.counts.get(row.outcome, 0) + 1}
        failed = (*report.failed, row) if row.outcome is ArchiveOutcome.FAILED else report.failed
        self.report = replace(report.plus(row.documents, row.size), counts=counts, failed=failed)
        self._on_row(row)


def _lacks_summary(manifest: Manifest) -> bool:
    """Whether a saved turn lacks the summary that its row needs; a recorded turn needs none."""
    return manifest.state is TurnState.SAVED and not manifest.recorded and not manifest.has_finished(phase_in_role(PhaseRole.SUMMARY))


def _outcome_row(due: DueTurn, outcome: ArchiveOutcome, reason: str, intervention: str = "") -> ArchivedTurn:
    """The row of a turn that this run did not archive."""
    return ArchivedTurn(due.key, due.day.isoformat(), outcome, reason=reason, intervention=intervention)


def _archived_row(turn: Turn, seconds: float) -> ArchivedTurn:
    record = turn.manifest.archive
    if record is None:
        raise ValueError(f"{turn.key}: not archived: expected an archived turn")
    return ArchivedTurn(turn.key, record.day, ArchiveOutcome.ARCHIVED, record.documents, record.cold, record.size, seconds=seconds)
