"""The real servers, started once for all tests, and calls as the project makes them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sglang.real_servers import ENVIRONMENT, MODEL, RealSglang

WAITING_S, RUNNING_S = 2, 6


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RealSglang]]:
    """`tiny` takes what comes; `small` works on one request, lets one wait, and loses patience with both."""
    if not (MODEL / ".made").exists():
        pytest.fail(f"{MODEL.relative_to(ENVIRONMENT.parent)} is missing: make test-sglang builds it", pytrace=False)
    logs = tmp_path_factory.mktemp("sglang")
    started = {
        "tiny": RealSglang("tiny", logs / "tiny.log", {"--max-running-requests": "16", "--max-queued-requests": "64"}),
        "small": RealSglang(
            "small",
            logs / "small.log",
            {"--max-running-requests": "1", "--max-queued-requests": "1"},
            {"SGLANG_REQ_WAITING_TIMEOUT": str(WAITING_S), "SGLANG_REQ_RUNNING_TIMEOUT": str(RUNNING_S)},
        ),
    }
    try:
        for server in started.values():
            server.start()
        yield {name: server.ready() for name, server in started.items()}
    finally:
        ends = {name: server.stop() for name, server in started.items() if server.process}
    assert set(ends.values()) == {0}, f"servers ended with {ends}"


@pytest.fixture
def server(servers: dict[str, RealSglang]) -> RealSglang:
    return servers["tiny"]


@pytest.fixture
def small(servers: dict[str, RealSglang]) -> RealSglang:
    return servers["small"]


@pytest.fixture
def runtime_file(tmp_path: Path, server: RealSglang, small: RealSglang) -> Path:
    """`runtime.yaml` of a store at `tmp_path`: VOICE on the small server, every other layer on the other."""
    path = tmp_path / "runtime.yaml"
    path.write_text(f"""\
preset: real
presets:
  real:
    servers:
      tiny: {{base_url: {server.base_url}, model: tiny, context_length: 32768}}
      small: {{base_url: {small.base_url}, model: small, context_length: 32768, max_connections: 1}}
    layers:
      REFLEX: {{server: tiny, temperature: 1.0}}
      NERVES: {{server: tiny, temperature: 1.0}}
      MIND: {{server: tiny, temperature: 1.0}}
      VOICE: {{server: small, temperature: 1.0}}
      EYES: {{server: tiny, temperature: 1.0}}
""")
    return path
