"""Runs batches of queries: each line of a file becomes one turn, and turns run concurrently up to the capacity of the model servers.

The steps are: allocate turn numbers, store the batch record, run the turns. In this order an interrupted batch continues, and no turn runs
twice: the record names the turn of each line.
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

_SESSION_DIGEST_DIGITS = 12
_CAPACITY_POLL_S = 1.0
"""Seconds after which the capacity of the model servers is read again."""
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
    """The batch of a file's content: the recorded one, or a new one, stored completely with a turn key for each valid line."""
    stored_batch = ctx.batches.find(digest)
    if stored_batch is not None:
        return stored_batch
    lines = tuple(read_batch_lines(data))
    valid_lines = [line for line in lines if not isinstance(line, RejectedLine)]
    rejected = tuple(line for line in lines if isinstance(line, RejectedLine))
    owners = [UserId(line.user) if line.user else ctx.user for _, line in valid_lines]
    numbers = {
        owner: iter(ctx.deps.turns.allocate(owner, count)) for owner, count in Counter(owners).items()
    }  # if the process ends before the record is stored, these numbers stay unused
    keys = [TurnKey(owner, next(numbers[owner])) for owner in owners]
    queries = tuple(_batch_query(number, line, key, digest) for (number, line), key in zip(valid_lines, keys, strict=True))
    return ctx.batches.begin(Batch(digest=digest, file=file, day=day, queries=queries, rejected=rejected))


def _batch_query(number: int, line: QueryLine, key: TurnKey, digest: str) -> BatchQuery:
    """The query of a line; one that names no session gets a session of its own, so that it waits for no other line."""
    session = line.session or f"batch-{digest[:_SESSION_DIGEST_DIGITS]}-{number}"
    return BatchQuery(line=number, query=line.query, turn=str(key), session=session, mode=line.mode, id=line.id)


async def run_batch(batch: Batch, ctx: BatchContext, *, on_row: OnRow = lambda _: None) -> tuple[BatchRow, ...]:
    """Run the unfinished turns of the batch; the turns of a session one after the other, in the order of their lines.

    A finished turn is left unchanged; a turn that HALTed waits for a user to resume it. A turn that HALTed because no server could be
    reached is tried again after the others, until such a further round finishes none of these. `on_row` receives the row of each finished
    turn. Raises StoreError, also where another process runs this batch.
    """
    with ctx.batches.running(batch):
        for row in rejected_rows(batch):
            on_row(row)
        unreached, previous_count = await _run_queries(batch.queries, ctx, on_row), len(batch.queries) + 1
        while 0 < len(unreached) < previous_count:
            unreached, previous_count = await _run_queries(unreached, ctx, on_row), len(unreached)
        for query in unreached:
            on_row(_stored_row(query, ctx.deps))
    return batch_rows(batch, ctx.deps)


async def _run_queries(queries: Sequence[BatchQuery], ctx: BatchContext, on_row: OnRow) -> list[BatchQuery]:
    """Run these queries; return those whose turn reached no server, which `on_row` has not received."""
    waiting_sessions, running_tasks = deque(_group_by_session(queries)), set[asyncio.Task[None]]()
    unreached_queries: list[BatchQuery] = []

    async def run_in_order(session: Sequence[BatchQuery]) -> None:
        for query in session:
            row = await _run_query(query, ctx.deps)
            if _is_unreached(row, ctx.deps):
                unreached_queries.append(query)
            else:
                on_row(row)

    try:
        while waiting_sessions or running_tasks:
            while waiting_sessions and len(running_tasks) < _concurrency(ctx.capacity):
                running_tasks.add(asyncio.create_task(run_in_order(waiting_sessions.popleft())))
            if not running_tasks:
                await asyncio.sleep(_CAPACITY_POLL_S)
                continue
            finished_tasks, running_tasks = await asyncio.wait(running_tasks, timeout=_CAPACITY_POLL_S, return_when=asyncio.FIRST_COMPLETED)
            for task in finished_tasks:
                task.result()
    finally:
        for task in running_tasks:
            task.cancel()
        await asyncio.gather(*running_tasks, return_exceptions=True)
    return sorted(unreached_queries, key=lambda query: query.line)


def _concurrency(capacity: Capacity) -> int:
    """Turns to run concurrently: a quarter more than calls, since a turn does not always wait for a server; 0 without a server."""
    calls = capacity.max_concurrent_calls()
    return calls + max(1, calls // 4) if calls else 0


def _group_by_session(queries: Iterable[BatchQuery]) -> list[list[BatchQuery]]:
    sessions: dict[tuple[UserId, str], list[BatchQuery]] = {}
    for query in queries:
        sessions.setdefault((query.key.user, query.session), []).append(query)
    return list(sessions.values())


async def _run_query(query: BatchQuery, deps: PhaseDependencies) -> BatchRow:
    """Run the unfinished phases of one turn. An error that stops this turn only is reported in its row."""
    try:
        _open_turn(query, deps)
        row = query_row(query, deps)
        if (not row.intervention or _is_unreached(row, deps)) and turn_flow.unfinished_phases(query.key, deps):
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


def _is_unreached(row: BatchRow, deps: PhaseDependencies) -> bool:
    """Whether the turn, or a phase after it, HALTed because no model server could be reached."""
    if not row.intervention:
        return False
    try:
        return deps.interventions.show(row.intervention).type == InterventionType.RUNTIME_UNREACHABLE
    except (InputError, DocumentError):
        return False
