"""`pandora api` and `pandora pages` as processes of their own on a free port, and clients of it as users have them."""

import signal
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import openai

from tests.faults.processes import PANDORA, environment
from tests.fork_server import ForkedProcess, forked


@dataclass
class Api:
    """A running server over the store at `root`."""

    root: Path
    port: int
    process: ForkedProcess
    clients: ExitStack = field(default_factory=ExitStack)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, *, key: str = "none", **headers: str) -> openai.OpenAI:
        """OpenAI's own client; its headers name session and user."""
        named = {f"X-Pandora-{name.capitalize()}": value for name, value in headers.items()}
        direct = openai.DefaultHttpxClient(trust_env=False)
        made = openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, default_headers=named, http_client=direct)
        return self.clients.enter_context(made)

    def http(self, **more: object) -> httpx.Client:
        """A plain client."""
        return httpx.Client(base_url=self.url, trust_env=False, timeout=60, **more)  # type: ignore[arg-type]

    def stop(self) -> tuple[int, str]:
        """End it as a user or a service manager would; exit code and what it said."""
        self.process.send_signal(signal.SIGTERM)
        _, output = self.process.communicate(timeout=60)
        return self.process.wait(), output


@contextmanager
def started(
    root: Path, *options: str, env: Mapping[str, str] | None = None, code: str = PANDORA, door: str = "api", answers: str = "/health"
) -> Generator[Api]:
    """A server that answers; killed where a test leaves it. `code`: a program that takes the place of `pandora`; `door`: its command."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    root.parent.mkdir(parents=True, exist_ok=True)
    environ = {**environment(root), **(env or {})}
    process = forked(code, door, "--port", str(port), *options, env=environ, cwd=root.parent)
    api = Api(root, port, process)
    try:
        _wait(api, answers)
        yield api
    finally:
        api.clients.close()
        if process.poll() is None:
            process.kill()
            process.communicate()


def _wait(api: Api, answers: str) -> None:
    deadline = time.monotonic() + 60
    with api.http() as client:
        while time.monotonic() < deadline:
            if api.process.poll() is not None:
                raise AssertionError(f"it ended: {api.process.communicate()[1]}")
            try:
                if client.get(answers).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
    raise AssertionError("no answer within 60 s")


def turns_on_disk(root: Path, user: str) -> list[str]:
    folder = root / "users" / user / "turns"
    return sorted(path.name for path in folder.glob("turn_*"))
