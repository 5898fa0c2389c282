"""Real SGLang servers for the tests: started in their own environment, waited for, stopped, killed and started again."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = REPOSITORY / ".venv-sglang"
MODEL = ENVIRONMENT / "tiny-model"
CONTEXT = 32_768
READY_S = 240.0
"""A start takes 20 seconds on two idle cores."""
STOPPED_S = 60.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_ON_CPU = {"--device": "cpu", "--attention-backend": "torch_native", "--mem-fraction-static": "0.1", "--max-total-tokens": "65536"}
_ARGUMENTS = {"--host": "127.0.0.1", "--grammar-backend": "xgrammar", "--reasoning-parser": "qwen3"}
_LAUNCH = (str(ENVIRONMENT / "bin" / "python"), str(REPOSITORY / "tests" / "sglang" / "server" / "launch.py"))
_SWITCHES = ("--enable-cache-report", "--enable-metrics", "--constrained-json-disable-any-whitespace", "--sleep-on-idle")


@dataclass
class RealSglang:
    """One server: the model is served as `model`; `arguments` and `environment` are its own beside the usual ones."""

    model: str
    log: Path
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    switches: tuple[str, ...] = ()
    launch: tuple[str, ...] = _LAUNCH
    model_path: Path = MODEL
    on_cpu: bool = True
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def start(self) -> "RealSglang":
        """Start it, on the port that it had before where it had one. Returns at once."""
        self.port = self.port or _free_port()
        where = {"--model-path": str(self.model_path), "--served-model-name": self.model, "--port": str(self.port)}
        fields = {**where, **(_ON_CPU if self.on_cpu else {}), **_ARGUMENTS, **self.arguments}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.launch, *(word for pair in fields.items() for word in pair), *_SWITCHES, *self.switches],
                stdout=log,
                stderr=subprocess.STDOUT,
                # one thread is 4 times as fast on two busy cores
                env=_own_environment() | ({"OMP_NUM_THREADS": "1"} if self.on_cpu else {}) | dict(self.environment),
                start_new_session=True,
            )
        return self

    def ready(self) -> "RealSglang":
        """Wait until it takes requests; what it logged stands in the failure where it does not."""
        assert self.process, "not started"
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"{self.model} ended with {self.process.returncode} while starting:\n{self._log_tail()}")
            if self.is_up():
                return self
            time.sleep(0.3)
        raise AssertionError(f"{self.model} was not ready after {READY_S:g} s:\n{self._log_tail()}")

    def is_up(self) -> bool:
        try:
            with _DIRECT.open(f"{self.url}/health", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> int:
        """End it as a user would, with SIGTERM; its exit code. One that does not end is killed, and its log is the failure."""
        assert self.process, "not started"
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOPPED_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.model} did not end on SIGTERM:\n{self._log_tail()}") from None

    def kill(self) -> None:
        """End it and its processes in the middle of whatever they do."""
        assert self.process, "not started"
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOPPED_S)

    def post(self, path: str, body: Mapping[str, object], *, timeout_s: float = 120) -> tuple[int, str]:
        """Status and body of a request as it would be without the runtime's care."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with _DIRECT.open(request, timeout=timeout_s) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def running(self) -> int:
        """Requests that it works on, as it says itself."""
        return int(self.metric("sglang:num_running_reqs"))

    def waiting(self) -> int:
        """Requests in its queue."""
        return int(self.metric("sglang:num_queue_reqs"))

    def metric(self, name: str) -> float:
        """The sum over a metric's lines."""
        with _DIRECT.open(f"{self.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{"))

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def until(true: Callable[[], bool], *, seconds: float = 60) -> None:
    """Waits for what will be so; fails where it is not in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not so within {seconds:g} s"
        time.sleep(0.05)


def _own_environment() -> dict[str, str]:
    """This process's, without what is meant for the project's own interpreter."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PANDORA_", "DAGSTER_", "VIRTUAL_ENV"))}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
