"""A store with a runtime file whose servers are stand-ins, and `pandora serve` over it in a process of its own."""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.processes import PANDORA, environment

PROGRAM = Path(__file__).with_name("serving_program.py")
LAYERS = ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")
FAST = (
    "from pandora_dagster.runtime.serving import server_supervisor; Timing = server_supervisor.SupervisionTiming; "
    "server_supervisor.SupervisionTiming = lambda: Timing(check_interval_s=0.1, start_check_interval_s=0.05, first_restart_delay_s=0.05, "
    "max_restart_delay_s=0.1, grace_s=1.0, max_silence_s=3.0, status_interval_s=0.2); "
)
"""The same supervisor, less patient: a test does not wait for minutes."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def until(claim: Callable[[], object], what: str | Callable[[], str], *, seconds: float = 30.0) -> None:
    """Waits for the claim to hold; `what` is reported where it does not, as it stands by then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():
            return
        time.sleep(0.03)
    raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")


@dataclass
class World:
    """`servers`: name -> launch block, with `layers` for the layers it answers for; those that nobody names go to the first."""

    root: Path
    servers: dict[str, dict[str, Any]]
    ports: dict[str, int] = field(default_factory=dict)
    process: "subprocess.Popen[str] | None" = None

    def write(self) -> "World":
        self.root.mkdir(parents=True, exist_ok=True)
        first, use, report = next(iter(self.servers)), {}, {}
        for name, block in self.servers.items():
            port = self.ports.setdefault(name, free_port())
            launch = {"command": [sys.executable, str(PROGRAM)], **{k: v for k, v in block.items() if k != "layers"}}
            launch["options"] = [f"--child={self.root / (name + '.child')}", *launch.get("options", ())]
            report[name] = {"base_url": f"http://127.0.0.1:{port}/v1", "model": f"{name}-model", "context_length": 4_096, "launch": launch}
            use |= dict.fromkeys(block.get("layers", ()), name)
        layers = {layer: {"server": use.get(layer, first), "temperature": 0.0} for layer in LAYERS}
        file = {"preset": "p", "presets": {"p": {"servers": report, "layers": layers}}}
        (self.root / "runtime.yaml").write_text(json.dumps(file))  # JSON is YAML
        return self

    def serve(self, *arguments: str) -> "World":
        with (self.root / "stderr").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", FAST + PANDORA, "serve", *arguments],
                env=environment(self.root),
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                cwd=self.root,
            )
        return self

    def ended(self, number: int = signal.SIGTERM) -> int:
        """End `pandora serve` with this signal; its exit code."""
        assert self.process
        self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def output(self) -> str:
        return (self.root / "stderr").read_text()

    def states(self) -> dict[str, str]:
        try:
            report = json.loads((self.root / "serving" / "serving.json").read_text())
        except OSError:
            return {}
        now = self.process is None or self.process.pid == report["pid"]  # else of one that was killed
        return {name: standing["state"] for name, standing in report["servers"].items()} if now else {}

    def until(self, name: str, state: str, *, seconds: float = 30.0) -> None:
        until(lambda: self.states().get(name) == state, lambda: f"{name} {state}; now {self.states()}\n{self.output()}", seconds=seconds)

    def pid(self, name: str) -> int:
        """The server's process."""
        return int(json.loads((self.root / "serving" / f"{name}.process").read_text())["pid"])

    def child(self, name: str) -> int:
        return int((self.root / f"{name}.child").read_text())

    def get(self, name: str, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}{path}", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code
        except OSError:
            return 0

    def end_all(self) -> None:
        """Whatever a failed test left."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for record in (self.root / "serving").glob("*.process"):
            until(lambda record=record: not record.exists(), "the guard ends what its supervisor left", seconds=20)
        for path in self.root.glob("*.child"):
            if alive(int(path.read_text())):
                os.kill(int(path.read_text()), signal.SIGKILL)


def on_a_terminal(root: Path, until_so: Callable[[], bool]) -> tuple[int, str]:
    """What `pandora serve` shows on a terminal until that is so and Ctrl-C is pressed."""
    terminal, screen = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", FAST + PANDORA, "serve"],
            env=environment(root) | {"TERM": "xterm", "COLUMNS": "120"},
            stdin=screen,
            stdout=screen,
            stderr=screen,
            cwd=root,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        output, pressed = bytearray(), False
        while process.poll() is None or select.select([terminal], [], [], 0.2)[0]:
            if select.select([terminal], [], [], 0.1)[0]:
                output += os.read(terminal, 65_536)
            if not pressed and until_so():
                time.sleep(0.5)  # the table is drawn four times a second
                os.write(terminal, b"\x03")
                pressed = True
        return process.returncode, output.decode()
    finally:
        os.close(terminal)
        os.close(screen)
