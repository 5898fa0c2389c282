"""A server with priorities: a user's call goes before the archival run's, though it came last."""

import asyncio
from collections.abc import Iterator

import pytest

from pandora_dagster.contracts.enums import OutputFormat, Priority
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.sglang_packs import endpoints, pack, run
from tests.sglang.real_servers import CONTEXT, RealSglang, until

LIST = {"output_schema": {"type": "array", "minItems": 20, "maxItems": 20, "items": {"enum": ["a chair"]}}, "max_output_tokens": 2_000}


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSglang]:
    """Works on one request at a time, and lets no other interrupt it."""
    server = RealSglang(
        "ordered",
        tmp_path_factory.mktemp("ordered") / "ordered.log",
        {"--max-running-requests": "1", "--max-queued-requests": "32"},
        switches=("--enable-priority-scheduling", "--disable-priority-preemption"),
    )
    server.start()
    try:
        yield server.ready()
    finally:
        server.stop()


def test_a_users_call_goes_first(ordered: RealSglang) -> None:
    """Six calls wait in the server's own queue, the archival run's first: the live one is answered before every other that waited."""
    done: list[str] = []

    async def work() -> None:
        served = endpoints(ordered.base_url, model=ordered.model, context_length=CONTEXT, max_connections=32, priorities=True)
        runtime = SglangRuntime(served, keys={})

        async def call(name: str, priority: Priority) -> None:
            await runtime.complete(
                pack(call_id=name, priority=priority, temperature=1.0, output_format=OutputFormat.JSON, **LIST), timeout_s=300
            )
            done.append(name)

        calls = [asyncio.create_task(call(f"night-{n}", Priority.BATCH)) for n in range(6)]
        await asyncio.to_thread(until, lambda: ordered.waiting() >= 5)
        calls.append(asyncio.create_task(call("live", Priority.INTERACTIVE)))
        try:
            await asyncio.gather(*calls)
        finally:
            await runtime.aclose()

    run(work)
    assert done.index("live") <= 2 and len(done) == 7, done
