"""Several programs as one command: they start together and end together."""

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import FrameType

_POLL_S = 0.2
_TERM_WAIT_S = 20.0
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_process_group(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> int:
    """Run the commands until one ends or this process gets a signal to end; then end all.

    Returns 0 after a signal, else the exit code of the program that ended by itself.
    """
    signals: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        signals.append(number)

    before = {number: signal.signal(number, on_signal) for number in _END_SIGNALS}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            # each in its own process group: Ctrl-C reaches this process only, which ends them in order
            started.append(subprocess.Popen(command, env=environment, start_new_session=True))  # noqa: S603 - programs of this environment
        while not signals and all(process.poll() is None for process in started):
            time.sleep(_POLL_S)
        return 0 if signals else next((code for process in started if (code := process.poll()) is not None), 0)
    finally:
        _end(started)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Send SIGTERM to all running processes, and SIGKILL to those that do not end in time."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _TERM_WAIT_S
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
