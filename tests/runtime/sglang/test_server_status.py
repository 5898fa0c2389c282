"""What `check` tells of each layer's server."""

import asyncio
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.runtime.sglang.server_status import LayerStatus
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang, hangs, response, sends
from tests.runtime.sglang_packs import endpoints


def look(server: FakeSglang, **options: Any) -> tuple[LayerStatus, ...]:
    async def work() -> tuple[LayerStatus, ...]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url, **options), keys={})
            try:
                return await runtime.check(timeout_s=2)
            finally:
                await runtime.aclose()

    return asyncio.run(work())


def test_a_good_server() -> None:
    """All layers are well, in the stack's order, with the context the server reports."""
    found = look(FakeSglang(context=8_192))
    assert tuple(status.layer for status in found) == tuple(ModelLayer)
    assert all(s.ok and s.reachable and s.right_model and s.context == 8_192 and s.model == "tiny" and not s.remedy for s in found)


@pytest.mark.parametrize("server", [FakeSglang(has_health=False), FakeSglang(lists_context=False)], ids=["no /health", "no length"])
def test_what_a_server_need_not_offer(server: FakeSglang) -> None:
    """A gateway without /health, or a list without lengths, is no fault."""
    assert all(status.ok for status in look(server))


CASES: dict[str, tuple[FakeSglang, bool, bool, str, str]] = {
    "wrong model": (FakeSglang(model="big"), True, False, "serves big: expected tiny", "Set model in runtime.yaml"),
    "small context": (FakeSglang(context=2_048), True, True, "takes 2048 tokens: expected the 4096", "Set context_length to 2048"),
    "starting": (FakeSglang(starting=True), False, False, "status 503: expected an answer", "still starting"),
    "silent": (FakeSglang(misbehaves=hangs()), False, False, "no complete answer within 2 s", "load"),
    "closed": (FakeSglang(misbehaves=sends(b"")), False, False, "expected a reachable model server", "log"),
    "no key": (FakeSglang(api_key="k"), True, False, "status 401: Unauthorized", "api_key_env"),
    "another service": (FakeSglang(misbehaves=sends(response(200, b"<html>"))), True, False, "lists no models", "Correct base_url"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong(case: str) -> None:
    """Each fault is reported for its layer and endpoint, with its remedy; nothing is raised."""
    server, reachable, right, expected, remedy = CASES[case]
    server.port = 0
    for status in look(server):
        assert (status.reachable, status.right_model, status.ok) == (reachable, right, False)
        assert status.message.startswith(f"{status.layer} at {server.base_url}: ") and expected in status.message
        assert remedy in status.remedy


def test_a_missing_key_is_reported() -> None:
    """A layer whose key is not set is reported so, and nothing is sent."""
    server = FakeSglang()
    assert {s.message.partition("/v1: ")[2] for s in look(server, api_key_env="NO_KEY")} == {"NO_KEY is not set: expected the server's key"}
    assert server.connections == 0


def test_every_copy_of_a_model_is_looked_at() -> None:
    """One that is away is reported by its own address, layer by layer."""
    found = look(FakeSglang(), replicas=["http://127.0.0.1:9/v1"])
    assert [s.ok for s in found] == [True, False] * len(ModelLayer)
    assert all("127.0.0.1:9/v1: refused the connection" in s.message for s in found[1::2])


def test_a_shared_server_is_asked_once() -> None:
    """Five layers on one server cost one connection."""
    server = FakeSglang()
    look(server)
    assert server.connections == 1
