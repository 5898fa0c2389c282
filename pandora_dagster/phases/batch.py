"""Many queries at once: a file's lines become turns, each once, and as many of them run as the model servers take.

Knows the order of steps (numbers, the record, then the turns), so that what was cut off goes on and nothing runs twice. Knows no files.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.batches import Batch, Batches, BatchQuery, BatchRow, Capacity, RejectedLine
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.words import InterventionType, TurnState
from pandora_dagster.errors import DocumentError, InputError, PandoraError, UnknownTurnError
from pandora_dagster.phases import flow
from pandora_dagster.phases.kit import Kit
from pandora_dagster.text.batch_lines import Numbered, batch_lines

_LOOK_AGAIN_S = 1.0
OnRow = Callable[[BatchRow], None]


@dataclass(frozen=True, slots=True)
class BatchDesk:
    """What a batch works with."""

    kit: Kit
    batches: Batches
    capacity: Capacity
    user: UserId
    """Of lines that name none."""


def open_batch(desk: BatchDesk, data: bytes, *, digest: str, file: str, day: str) -> Batch:
    """The batch of a file's content: the one that was recorded, or a new one, whole on the disk with a turn for each good line."""
    known = desk.batches.find(digest)
    if known is not None:
        return known
    lines = tuple(batch_lines(data))
    good = [line for line in lines if isinstance(line, Numbered)]
    rejected = tuple(line for line in lines if isinstance(line, RejectedLine))
    queries = tuple(_query(line, key, digest) for line, key in _numbered(desk, good))
    return desk.batches.begin(Batch(digest=digest, file=file, day=day, queries=queries, rejected=rejected))


def _numbered(desk: BatchDesk, lines: Sequence[Numbered]) -> Iterator[tuple[Numbered, TurnKey]]:
    """Each line with a turn number that nobody else gets; numbers of a record that is never written stay unused."""
    owners = [UserId(line.asked.user) if line.asked.user else desk.user for line in lines]
    given = {owner: iter(desk.kit.turns.allocate(owner, count)) for owner, count in Counter(owners).items()}
    return ((line, TurnKey(owner, next(given[owner]))) for line, owner in zip(lines, owners, strict=True))


def _query(line: Numbered, key: TurnKey, digest: str) -> BatchQuery:
    """A line that names no session is one of its own: it waits for nobody."""
    session = line.asked.session or f"batch-{digest[:12]}-{line.number}"
    return BatchQuery(line=line.number, query=line.asked.query, turn=str(key), session=session, mode=line.asked.mode, id=line.asked.id)


async def run_batch(batch: Batch, desk: BatchDesk, *, on_row: OnRow = lambda _: None) -> tuple[BatchRow, ...]:
    """Run what is left of the batch's turns; the turns of a session one after the other, in the order of their lines.

    A turn that has come to its end stays as it is, one that HALTed is for a person to resume; where it HALTed because no server could be
    reached it is tried again when the others are through, until a round brings none of those to its end. `on_row` hears of each turn that
    has its end. Raises StoreError, also where another process runs this batch.
    """
    with desk.batches.running(batch):
        for row in rejected_rows(batch):
            on_row(row)
        left, before = await _run(batch.queries, desk, on_row), len(batch.queries) + 1
        while 0 < len(left) < before:
            left, before = await _run(left, desk, on_row), len(left)
        for query in left:
            on_row(_standing(query, desk.kit))
    return rows_of(batch, desk.kit)


async def _run(queries: Sequence[BatchQuery], desk: BatchDesk, on_row: OnRow) -> list[BatchQuery]:
    """Run these queries; those whose turn met no server come back and are not told yet."""
    waiting, running = deque(_by_session(queries)), set[asyncio.Task[None]]()
    away: list[BatchQuery] = []

    async def in_order(session: Sequence[BatchQuery]) -> None:
        for query in session:
            row = await _settled(query, desk.kit)
            if _met_nobody(row, desk.kit):
                away.append(query)
            else:
                on_row(row)

    try:
        while waiting or running:
            while waiting and len(running) < _at_once(desk.capacity):
                running.add(asyncio.create_task(in_order(waiting.popleft())))
            if not running:
                await asyncio.sleep(_LOOK_AGAIN_S)
                continue
            done, running = await asyncio.wait(running, timeout=_LOOK_AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return sorted(away, key=lambda query: query.line)


def _at_once(capacity: Capacity) -> int:
    """Turns under way: a few more than calls, since a turn is not always at a server; none while no server is there."""
    places = capacity.places()
    return places + max(1, places // 4) if places else 0


def _by_session(queries: Iterable[BatchQuery]) -> list[list[BatchQuery]]:
    sessions: dict[tuple[UserId, str], list[BatchQuery]] = {}
    for query in queries:
        sessions.setdefault((query.key.user, query.session), []).append(query)
    return list(sessions.values())


async def _settled(query: BatchQuery, kit: Kit) -> BatchRow:
    """Run what is left of one turn. What stops it alone is told in its row."""
    try:
        _opened(query, kit)
        row = row_of(query, kit)
        if (not row.intervention or _met_nobody(row, kit)) and flow.unfinished(query.key, kit):
            await flow.run_turn(query.key, kit)
            row = row_of(query, kit)
    except (InputError, DocumentError) as error:
        return _broken(query, error)
    return row


def _opened(query: BatchQuery, kit: Kit) -> None:
    """The turn, begun where it is not there yet."""
    try:
        kit.turns.manifest(query.key)
    except UnknownTurnError:
        user, number = query.key.user, query.key.number
        flow.start_turn(kit, query.query, user=user, session=SessionId(query.session), mode=query.mode, number=number)


def rows_of(batch: Batch, kit: Kit) -> tuple[BatchRow, ...]:
    """How every line of the batch stands, by line."""
    rows = [_standing(query, kit) for query in batch.queries]
    return tuple(sorted((*rows, *rejected_rows(batch)), key=lambda row: row.line))


def rejected_rows(batch: Batch) -> tuple[BatchRow, ...]:
    return tuple(BatchRow(line.line, "", "", "rejected", reason=line.reason) for line in batch.rejected)


def _standing(query: BatchQuery, kit: Kit) -> BatchRow:
    try:
        return row_of(query, kit)
    except UnknownTurnError:
        return BatchRow(query.line, query.id, query.turn, TurnState.OPEN)
    except DocumentError as error:
        return _broken(query, error)


def _broken(query: BatchQuery, error: PandoraError) -> BatchRow:
    return BatchRow(query.line, query.id, query.turn, TurnState.HALTED, reason=str(error))


def row_of(query: BatchQuery, kit: Kit) -> BatchRow:
    """How a turn stands by its documents; raises UnknownTurnError before it has begun."""
    manifest = kit.turns.manifest(query.key)
    spent = kit.calls.spent(query.key, manifest.revision, phase="")
    halt = manifest.intervention or ""
    return BatchRow(
        query.line,
        query.id,
        query.turn,
        manifest.state,
        intervention=halt,
        tokens=spent.tokens,
        ms=round(spent.ms, 1),
        reason=_said(halt, kit) if halt else "",
    )


def _said(intervention: str, kit: Kit) -> str:
    try:
        return kit.interventions.show(intervention).message
    except (InputError, DocumentError) as error:
        return str(error)


def _met_nobody(row: BatchRow, kit: Kit) -> bool:
    """Whether the turn, or what follows it, HALTed because no model server could be reached."""
    if not row.intervention:
        return False
    try:
        return kit.interventions.show(row.intervention).type == InterventionType.RUNTIME_UNREACHABLE
    except (InputError, DocumentError):
        return False
