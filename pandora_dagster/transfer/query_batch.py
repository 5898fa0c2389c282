"""Batches of queries: each line of a file becomes one turn, and turns run concurrently up to the capacity of the model servers.

The order of the steps (numbers, the record, then the turns) lets an interrupted batch continue, and no turn runs twice.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.batches import Batch, BatchQuery, BatchRow, RejectedLine
from pandora_dagster.contracts.enums import InterventionType, TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports.model_runtime import Capacity
from pandora_dagster.contracts.ports.record_storage import Batches
from pandora_dagster.errors import DocumentError, InputError, PandoraError, UnknownTurnError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.transfer.batch_file import QueryLine, read_batch_lines

_RETRY_S = 1.0
OnRow = Callable[[BatchRow], None]


@dataclass(frozen=True, slots=True)
class BatchContext:
    """Dependencies of a batch."""

    deps: PhaseDependencies
    batches: Batches
    capacity: Capacity
    user: UserId
    """The user of lines that name none."""


def open_batch(ctx: BatchContext, data: bytes, *, digest: str, file: str, day: str) -> Batch:
    """The batch of a file's content: the recorded one, or a new one, stored completely with a turn key for each good line."""
    known = ctx.batches.find(digest)
    if known is not None:
        return known
    lines = tuple(read_batch_lines(data))
    good = [line for line in lines if not isinstance(line, RejectedLine)]
    rejected = tuple(line for line in lines if isinstance(line, RejectedLine))
    owners = [UserId(line.user) if line.user else ctx.user for _, line in good]
    numbers = {
        owner: iter(ctx.deps.turns.allocate(owner, count)) for owner, count in Counter(owners).items()
    }  # unused where no record follows
    keys = [TurnKey(owner, next(numbers[owner])) for owner in owners]
    queries = tuple(_batch_query(number, line, key, digest) for (number, line), key in zip(good, keys, strict=True))
    return ctx.batches.begin(Batch(digest=digest, file=file, day=day, queries=queries, rejected=rejected))


def _batch_query(number: int, line: QueryLine, key: TurnKey, digest: str) -> BatchQuery:
    """The query of a line; one that names no session gets a session of its own, so that it waits for no other line."""
    session = line.session or f"batch-{digest[:12]}-{number}"
    return BatchQuery(line=number, query=line.query, turn=str(key), session=session, mode=line.mode, id=line.id)


async def run_batch(batch: Batch, ctx: BatchContext, *, on_row: OnRow = lambda _: None) -> tuple[BatchRow, ...]:
    """Run the unfinished turns of the batch; the turns of a session one after the other, in the order of their lines.

    A finished turn is left unchanged; a turn that HALTed waits for a user to resume it. A turn that HALTed because no server could be
    reached is tried again after the others, until a round finishes none of these. `on_row` receives the row of each finished turn.
    Raises StoreError, also where another process runs this batch.
    """
    with ctx.batches.running(batch):
        for row in rejected_rows(batch):
            on_row(row)
        left, before = await _run_queries(batch.queries, ctx, on_row), len(batch.queries) + 1
        while 0 < len(left) < before:
            left, before = await _run_queries(left, ctx, on_row), len(left)
        for query in left:
            on_row(_stored_row(query, ctx.deps))
    return batch_rows(batch, ctx.deps)


async def _run_queries(queries: Sequence[BatchQuery], ctx: BatchContext, on_row: OnRow) -> list[BatchQuery]:
    """Run these queries; returns those whose turn reached no server, which are not reported yet."""
    waiting, running = deque(_by_session(queries)), set[asyncio.Task[None]]()
    unreached: list[BatchQuery] = []

    async def in_order(session: Sequence[BatchQuery]) -> None:
        for query in session:
            row = await _run_query(query, ctx.deps)
            if _found_no_server(row, ctx.deps):
                unreached.append(query)
            else:
                on_row(row)

    try:
        while waiting or running:
            while waiting and len(running) < _concurrency(ctx.capacity):
                running.add(asyncio.create_task(in_order(waiting.popleft())))
            if not running:
                await asyncio.sleep(_RETRY_S)
                continue
            done, running = await asyncio.wait(running, timeout=_RETRY_S, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return sorted(unreached, key=lambda query: query.line)


def _concurrency(capacity: Capacity) -> int:
    """Turns to run concurrently: a quarter more than calls, since a turn does not always wait for a server; 0 without a server."""
    calls = capacity.max_concurrent_calls()
    return calls + max(1, calls // 4) if calls else 0


def _by_session(queries: Iterable[BatchQuery]) -> list[list[BatchQuery]]:
    sessions: dict[tuple[UserId, str], list[BatchQuery]] = {}
    for query in queries:
        sessions.setdefault((query.key.user, query.session), []).append(query)
    return list(sessions.values())


async def _run_query(query: BatchQuery, deps: PhaseDependencies) -> BatchRow:
    """Run the unfinished phases of one turn. An error that stops this turn only is reported in its row."""
    try:
        _open_turn(query, deps)
        row = query_row(query, deps)
        if (not row.intervention or _found_no_server(row, deps)) and turn_flow.unfinished_phases(query.key, deps):
            await turn_flow.run_turn(query.key, deps)
            row = query_row(query, deps)
    except (InputError, DocumentError) as error:
        return _error_row(query, error)
    return row


def _open_turn(query: BatchQuery, deps: PhaseDependencies) -> None:
    """Start the turn if it does not exist yet."""
    try:
        deps.turns.manifest(query.key)
    except UnknownTurnError:
        user, number = query.key.user, query.key.number
        turn_flow.start_turn(deps, query.query, user=user, session=SessionId(query.session), mode=query.mode, number=number)


def batch_rows(batch: Batch, deps: PhaseDependencies) -> tuple[BatchRow, ...]:
    """The state of every line of the batch, by line."""
    rows = [_stored_row(query, deps) for query in batch.queries]
    return tuple(sorted((*rows, *rejected_rows(batch)), key=lambda row: row.line))


def rejected_rows(batch: Batch) -> tuple[BatchRow, ...]:
    return tuple(BatchRow(line.line, "", "", "rejected", reason=line.reason) for line in batch.rejected)


def _stored_row(query: BatchQuery, deps: PhaseDependencies) -> BatchRow:
    try:
        return query_row(query, deps)
    except UnknownTurnError:
        return BatchRow(query.line, query.id, query.turn, TurnState.OPEN)
    except DocumentError as error:
        return _error_row(query, error)


def _error_row(query: BatchQuery, error: PandoraError) -> BatchRow:
    return BatchRow(query.line, query.id, query.turn, TurnState.HALTED, reason=str(error))


def query_row(query: BatchQuery, deps: PhaseDependencies) -> BatchRow:
    """The state of a turn from its documents; raises UnknownTurnError before it has started."""
    manifest = deps.turns.manifest(query.key)
    usage = deps.calls.usage(query.key, manifest.revision, phase="")
    halt = manifest.intervention or ""
    return BatchRow(
        query.line,
        query.id,
        query.turn,
        manifest.state,
        intervention=halt,
        tokens=usage.tokens,
        ms=round(usage.ms, 1),
        reason=_intervention_message(halt, deps) if halt else "",
    )


def _intervention_message(intervention: str, deps: PhaseDependencies) -> str:
    try:
        return deps.interventions.show(intervention).message
    except (InputError, DocumentError) as error:
        return str(error)


def _found_no_server(row: BatchRow, deps: PhaseDependencies) -> bool:
    """Whether the turn, or a phase after it, HALTed because no model server could be reached."""
    if not row.intervention:
        return False
    try:
        return deps.interventions.show(row.intervention).type == InterventionType.RUNTIME_UNREACHABLE
    except (InputError, DocumentError):
        return False
