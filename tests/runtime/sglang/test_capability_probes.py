"""What a server is found to do by a few small calls."""

import asyncio
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.runtime.sglang.capability_probes import ServerProbes
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang
from tests.runtime.sglang_packs import endpoints


def able(**changes: Any) -> FakeSglang:
    return FakeSglang(**{"says": lambda _: '{"ok": true}', **changes})


def probed(server: FakeSglang, *, timeout_s: float = 5.0, **options: Any) -> tuple[ServerProbes, ...]:
    async def work() -> tuple[ServerProbes, ...]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url, **options), keys={})
            try:
                return await runtime.probe(tuple(ModelLayer), timeout_s=timeout_s)
            finally:
                await runtime.aclose()

    return asyncio.run(work())


@pytest.mark.parametrize("chat", [True, False])
def test_a_server_that_can_all(chat: bool) -> None:
    """One server for five layers is asked once; all it can do is reported, with what its small calls take."""
    server = able(templated=chat)
    (found,) = probed(server, chat=chat)
    assert found.name == "one" and found.layers == tuple(ModelLayer) and found.latency_ms is not None and found.latency_ms > 0
    assert [p.what for p in found.probes] == ["chat template", "structured output", "prefix cache", "metrics"]
    assert all(p.ok and not p.remedy for p in found.probes), found.probes
    assert len(server.requests) == 5 and ("messages" in server.requests[0]) is chat


LACKS: dict[str, tuple[FakeSglang, dict[str, Any], str, str, str]] = {
    "template": (able(templated=False), {}, "chat template", "no chat template", "Set chat: false"),
    "schema": (able(says=lambda _: "Yes."), {}, "structured output", "does not fit its schema: 'Yes.'", "--grammar-backend xgrammar"),
    "cache report": (able(reports_cache=False), {}, "prefix cache", "does not report", "--enable-cache-report"),
    "cache": (able(caches=False), {}, "prefix cache", "0 of ", "--disable-radix-cache"),
    "metrics": (able(has_metrics=False), {}, "metrics", "no figures of SGLang", "--enable-metrics"),
    "an answer": (able(takes_s=3), {"timeout_s": 0.5}, "small calls", "within 0.5 s", "load"),
    "room": (able(max_running=0, max_queued=0), {}, "small calls", "status 503", "fewer concurrent calls"),
}


@pytest.mark.parametrize("case", LACKS)
def test_what_a_server_lacks(case: str) -> None:
    """One ability is missing: it is reported with its remedy, and the others are not touched by it."""
    server, options, what, says, remedy = LACKS[case]
    server.port = 0
    (found,) = probed(server, **options)
    (lacking,) = [p for p in found.probes if not p.ok]
    assert lacking.what == what and says in lacking.says and remedy in lacking.remedy
