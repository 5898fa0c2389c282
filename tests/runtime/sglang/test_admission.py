"""How the runtime stays up over servers on real sockets: full, away, coming back, several of them, and calls that are given up."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer, Priority
from pandora_dagster.contracts.model_calls import ModelAnswer
from pandora_dagster.errors import EndpointDownError, EndpointFullError, ModelRejectedError, ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang import circuit_breaker
from pandora_dagster.runtime.sglang.admission_queue import AdmissionQueue
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang, hangs, resets, response
from tests.runtime.sglang_packs import endpoints, pack, run


class Heard:
    """Meters in dictionaries."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = {}
        self.levels: dict[str, float] = {}

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self.counts[name] = self.counts.get(name, 0.0) + amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.levels[name] = value


def over(server: FakeSglang, work: Callable[[SglangRuntime], Awaitable[Any]], *, heard: Heard | None = None, **options: Any) -> Any:
    async def opened() -> Any:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url, **options), keys={}, meters=heard)
            try:
                return await work(runtime)
            finally:
                await runtime.aclose()

    return run(opened)


def test_a_full_queue_reaches_no_caller() -> None:
    """40 calls at a server that takes three at once, allowed 40: each gets its answer, and the places come down to what it takes."""
    server, heard = FakeSglang(max_running=2, max_queued=1, takes_s=0.02, says=lambda body: body["rid"]), Heard()

    async def work(runtime: SglangRuntime) -> list[ModelAnswer]:
        return await asyncio.gather(*(runtime.complete(pack(call_id=f"call-{n:02}"), timeout_s=10) for n in range(40)))

    answers = over(server, work, heard=heard, max_connections=40, patience_s=20)
    assert [a.text.partition("/")[0] for a in answers] == [f"call-{n:02}" for n in range(40)]
    assert heard.levels["pandora_server_places"] <= 6 and heard.levels["pandora_server_running"] == 0
    assert 40 <= len(server.requests) == 40 + heard.counts["pandora_server_full_total"]
    assert max(a.queued_ms for a in answers) > 100


def test_waiting_for_a_full_server_is_bounded() -> None:
    """When patience is over one sentence says what the server said; the wait stands in the error."""

    async def work(runtime: SglangRuntime) -> None:
        await runtime.complete(pack(), timeout_s=5)

    began = time.monotonic()
    with pytest.raises(
        EndpointFullError, match=r"no free slot within 0\.4 s; last reply: status 503: The request queue is full\."
    ) as caught:
        over(FakeSglang(max_running=0, max_queued=0), work, patience_s=0.4)
    assert time.monotonic() - began < 30 and caught.value.queued_ms > 200 and not caught.value.retryable


def test_places_grow_again() -> None:
    """After a full spell a server that takes more, and does not tell its queue, is given more."""
    server, heard = FakeSglang(max_running=1, max_queued=0, takes_s=0.002, has_metrics=False), Heard()

    async def work(runtime: SglangRuntime) -> tuple[float, float]:
        async def many() -> None:
            await asyncio.gather(*(runtime.complete(pack(), timeout_s=5) for _ in range(12)))

        await many()
        low = heard.levels["pandora_server_places"]
        server.max_queued = 99
        for _ in range(4):
            await many()
        return low, heard.levels["pandora_server_places"]

    low, high = over(server, work, heard=heard, max_connections=8, patience_s=20)
    assert low <= 3 < high <= 8


def test_a_live_call_goes_before_work_that_can_wait() -> None:
    """Whoever came first, the queue for places is in order of priority, then of coming; the server is reported where it takes it."""
    server = FakeSglang(takes_s=0.02, says=lambda body: body["rid"])
    order = [Priority.BATCH, Priority.BATCH, Priority.FOLLOW_UP, Priority.INTERACTIVE, Priority.BATCH, Priority.INTERACTIVE]

    async def work(runtime: SglangRuntime) -> None:
        calls = [runtime.complete(pack(call_id=f"call-{n}", priority=p), timeout_s=5) for n, p in enumerate(order)]
        await asyncio.gather(*calls)

    over(server, work, max_connections=1, priorities=True)
    came = [body["rid"].partition("/")[0] for body in server.requests]
    assert came == ["call-0", "call-3", "call-5", "call-2", "call-1", "call-4"]
    assert [body["priority"] for body in server.requests] == [0, 2, 2, 1, 0, 0]


def test_a_server_without_priorities_is_sent_none() -> None:
    """It might refuse the field."""
    server = FakeSglang()
    over(server, lambda runtime: runtime.complete(pack(priority=Priority.BATCH), timeout_s=5))
    assert "priority" not in server.requests[0]


def test_a_layers_own_limits() -> None:
    """No more calls of a layer at once, and a minute, than its limits say; other layers go past the ones that wait."""
    server = FakeSglang(takes_s=0.03, says=lambda body: body["rid"])
    limits = {"NERVES": {"max_at_once": 1}, "VOICE": {"per_minute": 2}}

    async def work(runtime: SglangRuntime) -> list[Any]:
        nerves = [runtime.complete(pack(call_id=f"nerves-{n}", layer=ModelLayer.NERVES), timeout_s=5) for n in range(3)]
        voice = [runtime.complete(pack(call_id=f"voice-{n}", layer=ModelLayer.VOICE), timeout_s=5) for n in range(3)]
        mind = runtime.complete(pack(call_id="mind"), timeout_s=5)
        return await asyncio.gather(*nerves, *voice, mind, return_exceptions=True)

    answers = over(server, work, layers=limits, patience_s=1)
    came = [body["rid"].partition("/")[0] for body in server.requests]
    assert came.index("nerves-0") < came.index("nerves-1") and all(a.queued_ms > 25 for a in answers[1:3])
    assert [type(a) for a in answers[3:6]] == [ModelAnswer, ModelAnswer, EndpointFullError]
    assert isinstance(answers[6], ModelAnswer) and came.index("mind") < came.index("nerves-1")


def test_an_endpoint_that_is_gone_is_left_alone_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After five failures in a row a sentence comes at once, without a connection; later one call tries, and its answer opens the way."""
    monkeypatch.setattr(circuit_breaker, "FIRST_PAUSE_S", 0.3)
    server, heard = FakeSglang(misbehaves=resets()), Heard()

    async def work(runtime: SglangRuntime) -> None:
        for brk in range(circuit_breaker.FAILURES_TO_OPEN):
            with pytest.raises(RuntimeUnreachableError) as caught:
                await runtime.complete(pack(), timeout_s=5)
            assert type(caught.value) is RuntimeUnreachableError, brk
        with pytest.raises(EndpointDownError, match=r"5 calls in a row failed, the last one with: .*; circuit open for") as caught:
            await runtime.complete(pack(), timeout_s=5)
        assert str(caught.value).startswith(f"MIND at {server.base_url}: ") and "resume" in caught.value.hint
        assert str(caught.value).count("expected") == 1 and await runtime.count(pack()) is None
        assert server.connections == 5 and heard.levels["pandora_server_left_alone"] == 1
        server.misbehaves = None
        await asyncio.sleep(0.4)
        together = await asyncio.gather(*(runtime.complete(pack(), timeout_s=5) for _ in range(4)))
        assert len(together) == 4 and heard.levels["pandora_server_left_alone"] == 0

    over(server, work, heard=heard)
    assert heard.counts["pandora_server_unreachable_total"] == 5


def test_an_endpoint_that_comes_back_is_asked_for_its_model() -> None:
    """It was away: with another model it is reported as such and sent nothing, with its own it answers and is not asked again."""
    server = FakeSglang(misbehaves=resets())

    async def work(runtime: SglangRuntime) -> None:
        with pytest.raises(RuntimeUnreachableError):
            await runtime.complete(pack(), timeout_s=5)
        server.misbehaves, server.model = None, "another"
        for _ in range(2):
            with pytest.raises(ModelRejectedError, match="serves another: expected tiny"):
                await runtime.complete(pack(), timeout_s=5)
        assert not server.requests
        server.model = "tiny"
        assert (await runtime.complete(pack(), timeout_s=5)).text
        server.model = "nobody asks for it"
        assert (await runtime.complete(pack(), timeout_s=5)).text

    over(server, work)


def test_each_call_goes_to_the_address_with_the_fewest_under_way() -> None:
    """Six at once on three addresses with room for all of them at each: two each; while one has a long call, the next go past it."""
    servers = [FakeSglang(takes_s=0.3) for _ in range(3)]

    async def work() -> list[list[int]]:
        async with servers[0], servers[1], servers[2]:
            options = endpoints(servers[0].base_url, replicas=[one.base_url for one in servers[1:]], max_connections=8)
            runtime, seen = SglangRuntime(options, keys={}), list[list[int]]()

            async def asked(calls: int) -> None:
                await asyncio.gather(*(runtime.complete(pack(), timeout_s=5) for _ in range(calls)))
                seen.append([len(one.requests) for one in servers])

            try:
                await asked(6)
                long = asyncio.create_task(asked(1))
                await asyncio.sleep(0.05)
                await asked(2)
                await long
                return seen
            finally:
                await runtime.aclose()

    first, _, last = sorted(run(work), key=sum)
    assert first == [2, 2, 2] and last == [3, 3, 3]


def test_a_layers_minute_is_a_minute() -> None:
    """Of two calls a minute the third waits until 60 s after the first began, and no longer."""
    now = [1_000.0]

    async def work() -> None:
        options = endpoints("http://127.0.0.1:9/v1", layers={"VOICE": {"per_minute": 2}})
        server = options[ModelLayer.VOICE].server
        gate = AdmissionQueue(
            server, {server.base_url: circuit_breaker.CircuitBreaker(lambda: now[0])}, clock=lambda: now[0], spread=lambda: 0.5
        )

        async def call() -> None:
            ticket = gate.issue_ticket(options[ModelLayer.VOICE], Priority.INTERACTIVE)
            await gate.enter(ticket)
            gate.leave(ticket)

        await call()
        now[0] += 1.0
        await call()
        now[0] += 58.9
        third = asyncio.create_task(call())
        await asyncio.sleep(0.01)
        assert not third.done()
        now[0] += 0.2
        await asyncio.wait_for(third, 2)

    run(work)


def test_calls_share_the_addresses_that_are_there() -> None:
    """Three copies of a model share the calls; one that is slower gets fewer, and one that is gone gets none."""
    slow, quick, away = FakeSglang(takes_s=0.2), FakeSglang(takes_s=0.02), FakeSglang(misbehaves=resets())

    async def work() -> list[Any]:
        async with slow, quick, away:
            options = endpoints(slow.base_url, replicas=[quick.base_url, away.base_url], max_connections=4)
            runtime = SglangRuntime(options, keys={})
            try:
                first = [await asyncio.gather(runtime.complete(pack(), timeout_s=5), return_exceptions=True) for _ in range(3)]
                for _ in range(20):
                    await asyncio.gather(*(runtime.complete(pack(), timeout_s=5) for _ in range(12)), return_exceptions=True)
                    if away.connections >= circuit_breaker.FAILURES_TO_OPEN:
                        break
                before = len(slow.requests), len(quick.requests), away.connections
                answers = await asyncio.gather(*(runtime.complete(pack(), timeout_s=5) for _ in range(40)))
                return [first, before, answers, (len(slow.requests), len(quick.requests), away.connections)]
            finally:
                await runtime.aclose()

    _, before, answers, after = run(work)
    assert len(answers) == 40 and after[2] == before[2]
    assert 4 <= after[0] - before[0] < after[1] - before[1]


@pytest.mark.parametrize("ends", ["time-out", "cancelled", "listener gone"])
def test_a_call_that_is_given_up_is_taken_back_from_the_server(ends: str) -> None:
    """The server is reported by the id of that very request."""
    server = FakeSglang(misbehaves=None if ends == "listener gone" else hangs())

    def gone(_: str) -> None:
        raise BrokenPipeError("the terminal is gone")

    async def work(runtime: SglangRuntime) -> None:
        call = asyncio.create_task(
            runtime.complete(
                pack(call_id="given-up"), timeout_s=0.2 if ends == "time-out" else 60, on_words=gone if ends == "listener gone" else None
            )
        )
        if ends == "cancelled":
            await asyncio.sleep(0.2)
            call.cancel()
        with pytest.raises({"time-out": ModelTimeoutError, "cancelled": asyncio.CancelledError}.get(ends, BrokenPipeError)):
            await call

    over(server, work)
    assert server.aborted == ["given-up/1/"]


def test_a_call_that_is_cancelled_while_it_waits_leaves_its_place_to_others() -> None:
    """Neither the queue nor the places remember it; nothing was sent, so nothing is taken back."""
    server = FakeSglang(takes_s=0.1)

    async def work(runtime: SglangRuntime) -> None:
        first = asyncio.create_task(runtime.complete(pack(call_id="first"), timeout_s=5))
        waits = asyncio.create_task(runtime.complete(pack(call_id="waits"), timeout_s=5))
        last = asyncio.create_task(runtime.complete(pack(call_id="last"), timeout_s=5))
        await asyncio.sleep(0.05)
        waits.cancel()
        await asyncio.gather(first, last)
        assert waits.cancelled()

    over(server, work, max_connections=1)
    assert [body["rid"].partition("/")[0] for body in server.requests] == ["first", "last"] and not server.aborted


def test_a_full_server_that_asks_for_a_pause_gets_it() -> None:
    """It is asked again then and not before; one that asks for more than the patience is asked once more within it."""
    for asks, patience_s, least, most in (("1", 8.0, 0.95, 7.0), ("60", 0.5, 0.4, 10.0)):
        server, began = FakeSglang(misbehaves=None), time.monotonic()

        async def once(writer: Any, server: FakeSglang = server, asks: str = asks) -> None:
            server.misbehaves = None
            writer.write(response(503, b"{}", retry_after=asks))

        server.misbehaves = once
        answer = over(server, lambda runtime: runtime.complete(pack(), timeout_s=5), patience_s=patience_s)
        assert answer.text and least <= time.monotonic() - began <= most
