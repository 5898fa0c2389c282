"""Many turns archived in one run: batches that are compressed while a thread brings the batch before them to the disk.

Bounded in memory (two batches; of a turn that is done only its row) and in calls at a time. A bad turn becomes an intervention and
a failed row, the rest goes on; a disk that refuses or a model that is down ends the run, which the next one finishes.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic

from pandora_dagster.contracts.archive import ArchivedTurn, ArchiveReport, DocumentRow, Due, Kept, Outcome, Stands
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.contracts.words import InterventionType, Priority, TurnState
from pandora_dagster.errors import DocumentError, HaltError, InputError, PandoraError, StoreError, UnknownTurnError
from pandora_dagster.phases import flow
from pandora_dagster.phases.archive_selection import Selected, judged_again, selection
from pandora_dagster.phases.archiving import PHASE, ArchiveDesk, Packed, packed, store
from pandora_dagster.phases.halting import kind_of
from pandora_dagster.selection.due import Selection
from pandora_dagster.selection.turn_row import row_of

_BATCH = 128
"""Turns that go to the disk together: they wait for it once, and two batches are what a run holds in memory."""
_BATCH_BYTES = 32 * 1024 * 1024
"""Bytes of their originals, beyond which a batch has fewer turns."""
_DOWN = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.CONFIG_ERROR})
"""What no other turn would be spared of."""
OnRow = Callable[[ArchivedTurn], None]


async def archive_turns(selected: Selected, desk: ArchiveDesk, *, on_row: OnRow = lambda row: None) -> ArchiveReport:
    """Archive what was selected. `on_row` is told of each turn as it is done; the report keeps sums and what failed.

    A turn that another process works on is tried last, once it is free. Never raises for one turn.
    """
    run = _Run(desk, selection(desk), selected.known, on_row, ArchiveReport(due=len(selected.due), not_due=selected.not_due))
    try:
        for wait_s, waiting in ((0.0, selected.due), (None, run.busy)):
            for some in _batches(waiting, desk):
                await run.batch(some, wait_s=wait_s)
            await run.finish()
        desk.cold.sweep()
    except StoreError as error:
        run.stop(str(error), error.hint)
    finally:
        run.close()
    return run.report


def _batches(waiting: Iterable[Due], desk: ArchiveDesk) -> Iterator[list[Due]]:
    some: list[Due] = []
    size = 0
    for due in waiting:
        more = desk.folders.size(due.key)
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
    made: list[Packed] = field(default_factory=list[Packed])
    left: list[Due] = field(default_factory=list[Due])
    """Archived by a run that was cut off."""
    started: float = field(default_factory=monotonic)


@dataclass(slots=True)
class _Stored:
    """What became of a batch at the disk."""

    after: list[Turn] = field(default_factory=list[Turn])
    settled: list[Due] = field(default_factory=list[Due])
    bad: list[tuple[Due, PandoraError]] = field(default_factory=list[tuple[Due, PandoraError]])

    @contextmanager
    def unless_bad(self, due: Due) -> Generator[None]:
        """What is wrong with this turn's documents is kept as that."""
        try:
            yield
        except DocumentError as error:
            self.bad.append((due, error))


class _Run:
    """One run: the batch at the disk, the sums so far."""

    def __init__(self, desk: ArchiveDesk, rules: Selection, known: frozenset[Stands], on_row: OnRow, report: ArchiveReport) -> None:
        self._desk, self._rules, self._known, self._on_row = desk, rules, set(known), on_row
        self._night = replace(desk.kit, priority=Priority.NIGHT, at_rest=True)
        self._limit = asyncio.Semaphore(desk.rules.concurrency)
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._under_way: tuple[_Batch, Future[_Stored]] | None = None
        self.report = report
        self.busy: list[Due] = []
        """Turns that another process worked on when their turn came."""

    async def batch(self, due: Sequence[Due], *, wait_s: float | None) -> None:
        """Compress a batch while the one before it goes to the disk, then send it. Raises StoreError."""
        if self.report.stopped:
            return
        batch = _Batch(ExitStack())
        try:
            for refused in await asyncio.gather(*(self._taken(one, batch, wait_s) for one in due), return_exceptions=True):
                if refused is not None:
                    raise refused
            await self.finish()
        except BaseException:
            batch.locks.close()
            raise
        self._under_way = (batch, self._disk.submit(self._stored, batch))

    async def finish(self) -> None:
        """Wait for the batch at the disk, and tell of its turns. Raises StoreError."""
        if self._under_way is None:
            return
        (batch, stored), self._under_way = self._under_way, None
        with batch.locks:
            done = await asyncio.wrap_future(stored)
        seconds = (monotonic() - batch.started) / max(len(done.after), 1)
        for turn in done.after:
            self._row(_row(turn, seconds))
        for due in done.settled:
            self._row(
                ArchivedTurn(due.key, due.day.isoformat(), Outcome.FINISHED, reason="archived before; its folder and row are settled")
            )
        for due, error in done.bad:
            self._failed(due, error)

    def stop(self, why: str, hint: str) -> None:
        """No turn is begun after this."""
        self.report = replace(self.report, stopped=why, hint=hint)

    def close(self) -> None:
        """What was sent to the disk is waited for; its locks end."""
        self._disk.shutdown()
        if self._under_way:
            self._under_way[0].locks.close()

    async def _taken(self, due: Due, batch: _Batch, wait_s: float | None) -> None:
        """One turn, locked and compressed, or told as kept or failed."""
        async with self._limit:
            if self.report.stopped:
                return
            try:
                await self._locked(due, batch, wait_s)
            except HaltError as halt:
                self._halted(due, halt)
            except UnknownTurnError as error:
                self._row(ArchivedTurn(due.key, due.day.isoformat(), Outcome.KEPT, reason=f"it is gone: {error}"))
            except (DocumentError, InputError) as error:
                self._failed(due, error)
            except StoreError as error:
                if isinstance(error.__cause__, OSError):
                    raise  # the disk refuses: no other turn would be spared
                self._failed(due, error)

    async def _locked(self, due: Due, batch: _Batch, wait_s: float | None) -> None:
        with ExitStack() as lock:
            try:
                lock.enter_context(self._desk.kit.turns.lock(due.key, wait_s=wait_s))
            except StoreError as error:
                if wait_s is None:
                    self._row(ArchivedTurn(due.key, due.day.isoformat(), Outcome.KEPT, reason=str(error)))
                else:
                    self.busy.append(due)
                return
            manifest = self._desk.kit.turns.manifest(due.key)
            if not _lacks_summary(manifest):
                batch.locks.push(lock.pop_all())
                await self._judged(due, manifest, batch)
                return
        await self._summarised(due, manifest)
        await self._locked(due, batch, wait_s)

    async def _judged(self, due: Due, manifest: Manifest, batch: _Batch) -> None:
        judged = judged_again(manifest, self._desk, self._rules)
        if isinstance(judged, Due):
            batch.made.append(await packed(judged, self._desk))
        elif judged.kept is Kept.ARCHIVED:
            batch.left.append(due)
        else:
            self._row(ArchivedTurn(due.key, due.day.isoformat(), Outcome.KEPT, reason=judged.reason))

    async def _summarised(self, due: Due, manifest: Manifest) -> None:
        """The summary that a saved turn's row needs, made where a crash kept it back. Raises HaltError."""
        self._known.discard(Stands(due.key, manifest.state, manifest.last_activity))
        report = await flow.run_phase("turn_summary", due.key, self._night, again=False)
        if report.halt:
            raise HaltError(report.halt.message, intervention_id=report.halt.id, hint=report.halt.hint)

    def _stored(self, batch: _Batch) -> _Stored:
        """The batch on the disk and in the index, in a thread; one bad turn of it is left out. Raises StoreError."""
        done = _Stored()
        try:
            done.after += store(batch.made, self._desk) if batch.made else ()
        except DocumentError:
            for one in batch.made:
                with done.unless_bad(one.due):
                    done.after += store([one], self._desk)
        before = {one.due.key: one.turn for one in batch.made}
        self._indexed([(before[turn.key], turn) for turn in done.after])
        for due in batch.left:
            with done.unless_bad(due):
                self._settle(due.key)
                done.settled.append(due)
        return done

    def _indexed(self, turns: Sequence[tuple[Turn, Turn]]) -> None:
        """Rows made of the originals: where the index had the turn as it was, its texts stay there."""
        # rows last: a turn whose row says archived is not looked at again
        self._desk.kit.calls.settle_all([(after.key, after.manifest.revision) for _, after in turns])
        if self._desk.kit.lineage and turns:
            self._desk.kit.lineage.put([(after.manifest, before) for before, after in turns])
        same: list[Manifest] = []
        for before, after in turns:
            if Stands(before.key, before.manifest.state, before.manifest.last_activity) in self._known:
                same.append(after.manifest)
            else:
                self._put(after.manifest, before)
        if same:
            self._desk.kit.index.restate(same)

    def _settle(self, key: TurnKey) -> None:
        """What a run that was cut off left to do: the folder, row, lineage."""
        self._desk.folders.settle(key)
        manifest, original = self._desk.kit.turns.manifest(key), self._desk.kit.turns.original(key)
        self._desk.kit.calls.settle(key, manifest.revision)
        if self._desk.kit.lineage:
            self._desk.kit.lineage.put([(manifest, original)])
        self._put(manifest, original)

    def _put(self, manifest: Manifest, original: Turn) -> None:
        row = row_of(manifest, original.context, original.files, preamble=self._desk.preamble(manifest))
        self._desk.kit.index.put([row])

    def _halted(self, due: Due, halt: HaltError) -> None:
        self._row(_failure(due, str(halt), halt.intervention_id))
        if self._desk.kit.interventions.show(halt.intervention_id).type in _DOWN:
            self.stop(str(halt), halt.hint)

    def _failed(self, due: Due, error: PandoraError) -> None:
        """A turn that is not sound stays as it is, and a person is told."""
        kind = kind_of(error) if isinstance(error, DocumentError) else InterventionType.CORRUPT_DOCUMENT
        fields = {"user_id": due.key.user, "turn_id": due.key.turn_id, "phase": PHASE}
        opened = self._desk.kit.interventions.open(kind, f"{due.key}: {error}", hint=error.hint, **fields)
        self._row(_failure(due, str(error), opened.id))

    def _row(self, row: ArchivedTurn) -> None:
        known = self.report
        counts = {**known.counts, row.outcome: known.counts.get(row.outcome, 0) + 1}
        self.report = replace(
            known,
            counts=counts,
            documents=known.documents + len(row.documents),
            compressed=known.compressed + sum(not d.whole for d in row.documents),
            tokens_before=known.tokens_before + sum(d.tokens_before for d in row.documents),
            tokens_after=known.tokens_after + sum(d.tokens_after for d in row.documents),
            facts=known.facts + sum(d.facts for d in row.documents),
            facts_kept=known.facts_kept + sum(d.facts_kept for d in row.documents),
            cold_bytes=known.cold_bytes + row.size,
            failed=(*known.failed, row) if row.outcome is Outcome.FAILED else known.failed,
        )
        self._on_row(row)


def _lacks_summary(manifest: Manifest) -> bool:
    return manifest.state is TurnState.SAVED and not manifest.recorded and not manifest.finished("turn_summary")


def _failure(due: Due, reason: str, intervention: str) -> ArchivedTurn:
    return ArchivedTurn(due.key, due.day.isoformat(), Outcome.FAILED, reason=reason, intervention=intervention)


def _row(turn: Turn, seconds: float) -> ArchivedTurn:
    record = turn.manifest.archive
    if record is None:
        raise ValueError(f"{turn.key}: not archived: expected an archived turn")
    documents = tuple(DocumentRow(d.name, d.tokens_before, d.tokens_after, d.facts, d.facts_kept, d.whole) for d in record.documents)
    return ArchivedTurn(turn.key, record.day, Outcome.ARCHIVED, documents, record.cold, record.size, seconds=seconds)
