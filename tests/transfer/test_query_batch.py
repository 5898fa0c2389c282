"""A file of queries as turns: each line its own, once; sessions in order; as many at once as there is capacity for."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.batches import Batch, BatchRow
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.errors import RuntimeUnreachableError, StoreError
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.records.batch_files import BatchFiles
from pandora_dagster.transfer.query_batch import BatchContext, batch_rows, open_batch, run_batch
from tests.phases.vocabulary import vocabulary

DAY = "2026-01-04"


class Server(ExtractiveRuntime):
    """Answers as the embedded runtime does, but not at once: calls overlap as they do at a server. It may be away."""

    def __init__(self, clock: Any) -> None:
        super().__init__(vocabulary(), clock)
        self.running = self.most = 0
        self.away_for: dict[str, int] = {}
        """Query -> how many of its calls meet nobody."""
        self.order: list[str] = []

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(pack.query)
        try:
            await asyncio.sleep(0.002)
            if self.away_for.get(pack.query, 0):
                self.away_for[pack.query] -= 1
                raise RuntimeUnreachableError("MIND at http://127.0.0.1:1/v1: refused: expected a reachable model server")
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        finally:
            self.running -= 1


@dataclass
class Places:
    """A capacity that a test sets."""

    count: int = 3
    asked: int = 0
    later: list[int] = field(default_factory=list)

    def max_concurrent_calls(self) -> int:
        self.asked += 1
        return self.later.pop(0) if self.later else self.count


@dataclass
class BatchRun:
    root: Path
    capacity: Places = field(default_factory=Places)

    def __post_init__(self) -> None:
        from datetime import UTC, datetime

        self.server = Server(lambda: datetime.now(UTC))
        self.app: App = open_app(load_settings({"PANDORA_ROOT": str(self.root)}), runtime=self.server, counter=vocabulary())
        self.ctx = BatchContext(self.app.dependencies, BatchFiles(self.root), self.capacity, UserId("me"))

    def open(self, *lines: Mapping[str, object] | str, digest: str = "ab" * 32) -> Batch:
        data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
        return open_batch(self.ctx, data, digest=digest, file="q.jsonl", day=DAY)

    def run(self, batch: Batch) -> tuple[tuple[BatchRow, ...], list[BatchRow]]:
        heard: list[BatchRow] = []
        return self.app.run(run_batch(batch, self.ctx, on_row=heard.append)), heard

    def phases(self) -> list[tuple[str, int]]:
        manifests = [self.app.turns.manifest(key) for key in sorted(self.app.turns.keys())]
        return [(f"{m.user_id}:{m.turn_id}", len(m.phases)) for m in manifests]


@pytest.fixture
def batch_run(tmp_path: Path):
    opened = BatchRun(tmp_path)
    yield opened
    opened.app.close()


def asks(count: int, **options: str) -> list[dict[str, str]]:
    return [{"query": f"What did desk number {n} cost?", **options} for n in range(count)]


def test_every_line_gets_its_turn_before_the_first_runs(batch_run: BatchRun) -> None:
    """Numbers are given by user, the record stands, and no turn exists yet; bad lines are in it with their reasons."""
    batch = batch_run.open(
        {"query": "a", "user": "ann", "id": "x"}, "nonsense", {"query": "b"}, {"query": "c", "user": "ann", "session": "s9"}
    )
    assert [(q.line, q.turn) for q in batch.queries] == [(1, "ann:turn_000001"), (3, "me:turn_000001"), (4, "ann:turn_000002")]
    assert [q.session for q in batch.queries] == ["batch-abababababab-1", "batch-abababababab-3", "s9"]
    assert [line.line for line in batch.rejected] == [2] and batch_run.phases() == []
    assert batch_run.open("whatever") == batch == BatchFiles(batch_run.root).find(batch.digest)


def test_all_lines_come_to_their_end(batch_run: BatchRun) -> None:
    """Each turn is saved with its words; every line is heard of once, and the rows come in the order of the lines."""
    rows, heard = batch_run.run(batch_run.open(*asks(5), "{"))
    assert [(row.line, row.state) for row in rows] == [(n, TurnState.SAVED) for n in range(1, 6)] + [(6, "rejected")]
    assert sorted(heard, key=lambda row: row.line) == list(rows) and all(row.is_finished for row in rows)
    assert all(row.tokens > 0 for row in rows[:5])
    assert "desk number 3" in batch_run.app.turns.load(batch_run.open().queries[3].key).context


def test_a_second_run_does_nothing_again(batch_run: BatchRun) -> None:
    """No phase runs, no call is made; what is reported is the same."""
    batch = batch_run.open(*asks(3))
    first, _ = batch_run.run(batch)
    before, batch_run.server.order = batch_run.phases(), []
    again, heard = batch_run.run(batch)
    assert again == first and len(heard) == 3 and batch_run.server.order == [] and batch_run.phases() == before


def test_a_run_that_was_cut_off_goes_on(batch_run: BatchRun) -> None:
    """One turn is done, one stopped in its middle, one was never begun: the second run finishes them, and nothing twice."""
    batch = batch_run.open(*asks(4))

    async def stopped(after: int) -> None:
        task = asyncio.ensure_future(run_batch(batch, batch_run.ctx))
        while len(batch_run.server.order) < after:  # noqa: ASYNC110 - a count of what others do
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    batch_run.capacity.count = 1
    batch_run.app.run(stopped(14))
    states = [batch_run.app.turns.manifest(key).state for key in sorted(batch_run.app.turns.keys())]
    assert TurnState.OPEN in states and len(states) < 4
    assert [row.state for row in batch_rows(batch, batch_run.app.dependencies)].count(TurnState.OPEN) >= 2
    rows, _ = batch_run.run(batch)
    assert all(row.state == TurnState.SAVED for row in rows)
    assert len(batch_run.phases()) == 4 and len({count for _, count in batch_run.phases()}) == 1
    for key in sorted(batch_run.app.turns.keys()):
        phases = [record.phase for record in batch_run.app.turns.load(key).manifest.phases]
        assert len(phases) == len(set(phases))


def test_turns_of_a_session_go_one_after_the_other(batch_run: BatchRun) -> None:
    """In the order of their lines, while other sessions run beside them."""
    batch_run.capacity.count = 8
    lines = [{"query": f"Question {n} of {s}", "session": s} for n in range(3) for s in ("one", "two")]
    batch_run.run(batch_run.open(*lines))
    for session in ("one", "two"):
        order = [query for query in batch_run.server.order if query.endswith(session)]
        assert order == sorted(order)
    first_of_two = batch_run.server.order.index("Question 0 of two")
    assert first_of_two < batch_run.server.order.index("Question 1 of one"), "sessions did not overlap"


@pytest.mark.parametrize(("places", "most"), [(1, 2), (4, 5)])
def test_no_more_turns_run_than_there_is_capacity_for(batch_run: BatchRun, places: int, most: int) -> None:
    """A quarter more turns than calls: a turn is not always at a server. And not fewer, where there are turns."""
    batch_run.capacity.count = places
    batch_run.run(batch_run.open(*asks(most + 2)))
    assert places <= batch_run.server.most <= most


def test_nothing_begins_while_no_server_is_there(batch_run: BatchRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no place anywhere a batch waits; it goes on when there is one."""
    monkeypatch.setattr("pandora_dagster.transfer.query_batch._CAPACITY_POLL_S", 0.01)
    batch_run.capacity.later = [0] * 20
    rows, _ = batch_run.run(batch_run.open(*asks(2)))
    assert all(row.state == TurnState.SAVED for row in rows) and batch_run.capacity.asked > 20


def test_a_turn_that_met_no_server_is_tried_again(batch_run: BatchRun) -> None:
    """After the others; where the server is back it ends well, where it is not it is reported with its intervention."""
    batch = batch_run.open(*asks(3))
    # five tries are one call's patience: the first turn's first call fails whole, the second's in every round
    batch_run.server.away_for = {batch.queries[0].query: 5, batch.queries[1].query: 100}
    rows, heard = batch_run.run(batch)
    assert [row.state for row in rows] == [TurnState.SAVED, TurnState.HALTED, TurnState.SAVED]
    assert [row.line for row in heard] == [3, 1, 2] and rows[1].is_finished
    halt = batch_run.app.interventions.show(rows[1].intervention)
    assert halt.type == "runtime_unreachable" and "refused" in rows[1].reason


def test_turns_are_tried_again_for_as_long_as_one_comes_to_its_end(batch_run: BatchRun) -> None:
    """A server that was away three times costs no turn; none is reported before it has its end, and each is reported once."""
    batch = batch_run.open(*asks(4))
    batch_run.server.away_for = {query.query: 5 * rounds for rounds, query in enumerate(batch.queries)}
    rows, heard = batch_run.run(batch)
    assert all(row.state == TurnState.SAVED and not row.intervention for row in rows)
    assert [row.line for row in heard] == [1, 2, 3, 4]


def test_turns_that_meet_nobody_end(batch_run: BatchRun) -> None:
    """Where a round brings none to its end there is no further one: every turn is reported with its intervention, none runs for ever."""
    batch = batch_run.open(*asks(2))
    batch_run.server.away_for = {query.query: 1_000 for query in batch.queries}
    rows, heard = batch_run.run(batch)
    assert [row.state for row in rows] == [TurnState.HALTED] * 2 == [row.state for row in heard]
    assert batch_run.server.away_for[batch.queries[0].query] == 1_000 - 2 * 5


def test_a_batch_runs_once_at_a_time(batch_run: BatchRun) -> None:
    """Another process that has it is left alone."""
    batch = batch_run.open(*asks(1))
    with BatchFiles(batch_run.root).running(batch), pytest.raises(StoreError, match=r"another process works on the queries of q\.jsonl"):
        batch_run.run(batch)


def test_a_turn_that_is_damaged_keeps_nobody(batch_run: BatchRun) -> None:
    """Its line says what is wrong with it; the others go on."""
    batch = batch_run.open(*asks(2))
    batch_run.run(batch)
    (Path(batch_run.app.folder(batch.queries[0].key)) / "turn.json").write_text("{")
    rows, _ = batch_run.run(batch)
    assert [row.state for row in rows] == [TurnState.HALTED, TurnState.SAVED] and "turn.json" in rows[0].reason
    assert not rows[0].is_finished
