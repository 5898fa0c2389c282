"""How many calls a server is given: the laws of the controller, and that it finds what a server takes, whatever that is."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.model_calls import ModelAnswer
from pandora_dagster.runtime.sglang import admission
from pandora_dagster.runtime.sglang.concurrency_limit import INITIAL_CAPACITY, MAX_CAPACITY, ConcurrencyLimit, ServerLoad, parse_load
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang
from tests.runtime.sglang_packs import endpoints, pack, run

BOUNDS = st.none() | st.integers(1, 64)
LOADS = st.builds(ServerLoad, st.integers(0, 300), st.integers(0, 300))
EVENTS = st.lists(
    st.one_of(st.tuples(st.just("answered"), st.integers(1, 300)), st.tuples(st.just("refused"), st.integers(1, 300)), LOADS), max_size=80
)


@given(bound=BOUNDS, events=EVENTS)
def test_places_stay_within_their_bounds(bound: int | None, events: list[tuple[str, int] | ServerLoad]) -> None:
    """Whatever happens: at least one place, never more than the bound, unseen no more than what is safe; no reserve beyond the bound."""
    known, looked = ConcurrencyLimit.initial(bound), False
    for begun, event in enumerate(events, 1):
        if isinstance(event, ServerLoad):
            known, looked = known.after_load(event, known.capacity), True
        elif event[0] == "answered":
            known = known.after_answer(event[1])
        else:
            known = known.after_refusal(begun, begun, event[1])
        assert 1 <= known.capacity <= (bound or MAX_CAPACITY)
        assert 0 <= known.reserve <= (bound or MAX_CAPACITY) - known.capacity
        assert looked or known.capacity <= (bound or INITIAL_CAPACITY)


@given(load=LOADS, in_use=st.integers(0, 300), limit=st.integers(1, 256))
def test_a_look_never_gives_more_places(load: ServerLoad, in_use: int, limit: int) -> None:
    """It takes back what waits in vain, and bounds what answers may add: nothing where the queue is long enough, else as many again."""
    known = ConcurrencyLimit(256, 16, limit).after_load(load, in_use)
    grown = known
    for _ in range(600):
        grown = grown.after_answer(grown.capacity)
    assert known.limit <= limit and known.limit_until_next_poll <= 256
    if load.queued >= load.target_queue_length:
        assert grown == known
    else:
        assert known.limit == limit and grown.capacity in (limit, min(256, 2 * limit))


@given(in_use=st.integers(0, 300), limit=st.floats(1, 256))
def test_places_that_nobody_uses_do_not_grow(in_use: int, limit: float) -> None:
    """Only a call answered while all places were in use says that one more might be taken."""
    known = ConcurrencyLimit(256, 256, limit)
    grown = known.after_answer(in_use)
    assert grown.limit == limit if in_use < int(limit) else limit <= grown.limit <= limit + 1


@settings(max_examples=60)
@given(takes=st.integers(1, 200), others=st.integers(0, 20))
def test_it_finds_what_a_server_takes(takes: int, others: int) -> None:
    """A server that works on `takes` requests, some of them other users's: it is soon full, and little waits in its queue."""
    known = ConcurrencyLimit.initial(None)
    others = min(others, takes - 1)
    seen: list[ServerLoad] = []
    for _ in range(60):  # rounds: everything under way is answered once, then somebody looks
        for _ in range(known.capacity):
            known = known.after_answer(known.capacity)
        there = known.capacity + others
        seen.append(ServerLoad(min(takes, there), max(0, there - takes)))
        known = known.after_load(seen[-1], known.capacity)
    last = seen[-5:]
    assert all(load.running == takes for load in last), (known, last)
    assert max(load.queued for load in last) <= 2 * max(load.target_queue_length for load in last) + 1


def test_a_server_that_takes_fewer_later_gets_fewer() -> None:
    """The cache of a server fills up: what it can no longer work on at once is taken back after three polls, and given again bit by bit."""
    known = ConcurrencyLimit(256, 64, 64.0, saturation_seen=True)
    for _ in range(3):
        assert known.capacity == 64
        known = known.after_load(ServerLoad(20, 44), 64)
        assert not known.is_settled
    assert 20 <= known.capacity <= 24
    for _ in range(12):
        known = known.after_load(ServerLoad(known.capacity, 0), known.capacity)
        for _ in range(known.capacity):
            known = known.after_answer(known.capacity)
    assert known.capacity > 28


def test_a_queue_that_empties_by_itself_is_no_saturation() -> None:
    """A server on a GPU compiles a kernel, then reads many prompts at once: for a moment most of the calls wait in its queue. It takes 64,
    and gets them within a few polls."""
    known = ConcurrencyLimit.initial(None)
    for load in (ServerLoad(4, 12), ServerLoad(8, 8)):
        known = known.after_load(load, 16)
        assert known.capacity == 16 and not known.saturation_seen and not known.is_settled
    for _ in range(3):
        known = known.after_load(ServerLoad(known.capacity, 0), known.capacity)
        for _ in range(known.capacity):
            known = known.after_answer(known.capacity)
    assert known.capacity >= 64


PAGE = b"""\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",model_name="tiny",priority=""} 12.0
sglang:num_running_reqs{dp_rank="0",model_name="tiny",priority="2"} 5.0
sglang:num_running_reqs{dp_rank="1",model_name="tiny",priority=""} 3.0
sglang:num_running_reqs_offline_batch{model_name="tiny"} 99.0
sglang:num_queue_reqs{model_name="tiny"} 2.0
"""


def test_calls_that_do_not_arrive_ask_for_no_more() -> None:
    """Forty places, ten requests at the server and none in its queue: what is slow is on this side, and stays as it is."""
    known = ConcurrencyLimit(256, 80, 40.0).after_load(ServerLoad(10, 0), 40)
    assert known.limit_until_next_poll == 40 and known.after_answer(40) == known


def test_the_page_of_a_server_is_read() -> None:
    """Ranks are added up; what a priority has of the total is not added to it; other figures are left alone."""
    assert parse_load(PAGE) == ServerLoad(15, 2)


@pytest.mark.parametrize("page", [b"", b'{"sglang:num_running_reqs": 0}', b"sglang:num_running_reqs{} 4\n", PAGE.replace(b"12.0", b"nan")])
def test_a_page_that_does_not_tell_both_tells_nothing(page: bytes) -> None:
    """A gateway's page, metrics that are off, half a page, a figure that is none."""
    assert parse_load(page) is None


class PacedServer(FakeSglang):
    """Answers a request when its load was read twice since, and the last ones at once: however busy the machine is, a call takes as long
    as two looks."""

    async def work(self) -> None:
        begun = self.looks
        while self.looks < begun + 2 and len(self.requests) < CALLS:  # noqa: ASYNC110 - counts of what others do
            await asyncio.sleep(0.001)


CALLS = 500


def test_a_server_is_kept_full_and_never_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server for 30 at once that queues without end: places grow from 16 until it is full, no further, and nothing is refused."""
    monkeypatch.setattr(admission, "_POLL_INTERVAL_S", 0.005)
    server = PacedServer(max_running=30, max_queued=10_000)

    async def work() -> tuple[int, list[ModelAnswer]]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url), keys={})
            try:
                calls = (runtime.complete(pack(call_id=f"call-{n:03}", priority=Priority.BATCH), timeout_s=300) for n in range(CALLS))
                answers = await asyncio.gather(*calls)
                return runtime.max_concurrent_calls(), answers
            finally:
                await runtime.aclose()

    places, answers = run(work)
    assert len(answers) == CALLS and server.most_running == 30
    assert 30 <= places <= 44


def test_a_users_call_waits_for_no_archival_run_call_to_end() -> None:
    """All slots are taken by batch calls, and none of them ends: a live one is answered in the slots that are reserved."""
    server = FakeSglang(max_running=64, takes_s=3_600)

    async def work() -> tuple[ModelAnswer, int]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url), keys={})
            try:
                batch = [asyncio.ensure_future(runtime.complete(pack(priority=Priority.BATCH), timeout_s=300)) for _ in range(40)]
                while server.running < INITIAL_CAPACITY:  # noqa: ASYNC110 - a count of what others do
                    await asyncio.sleep(0.001)
                server.takes_s = 0
                live = await runtime.complete(pack(call_id="live"), timeout_s=300)
                ended = sum(task.done() for task in batch)
                for task in batch:
                    task.cancel()
                await asyncio.gather(*batch, return_exceptions=True)
                return live, ended
            finally:
                await runtime.aclose()

    live, ended = run(work)
    assert live.text and ended == 0
