"""A process between `pandora serve` and one server: writes the log, and ends the server when its supervisor is gone.

    python process_guard.py LOG BYTES RECORD GRACE COMMAND...

Standard input is a pipe from the supervisor: when it closes, the server gets SIGTERM, and after GRACE seconds its whole process group
gets SIGKILL. A server that ends by itself takes the rest of its group along. The exit code is the server's (128 + n for signal n).
Needs nothing but the standard library, so that it starts fast and without the project's environment.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
_CHUNK = 65_536
_POLL_S = 0.05


class BoundedLog:
    """A file of at most `limit` bytes and the one before it, `<name>.1`. On a full disk the output is lost, and the server goes on."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit = path, limit
        self._file, self._size = self._rotate(), 0

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._size + len(data) > self._limit:
                file = self._rotate()
                self._file.close()
                self._file, self._size = file, 0
            self._file.write(data)
            self._size += len(data)

    def _rotate(self) -> BinaryIO:
        if self._path.exists():
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        return self._path.open("ab", buffering=0)


def process_identity(pid: int) -> str:
    """Distinguishes a process from a later one with the same number: boot time and start time; "" where there is none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state == b"Z" else f"{boot}/{fields[18].decode()}"


def end_group(group: int, grace_s: float) -> None:
    """Send SIGTERM to a process group, SIGKILL after `grace_s` seconds; return when none of its processes runs."""
    for wanted, timeout in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
        if not _signalled(group, wanted):
            return
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not is_group_alive(group):
                return
            time.sleep(_POLL_S)


def is_group_alive(group: int) -> bool:
    """Whether a process of the group is alive; one that has ended and waits to be collected is not."""
    if not _signalled(group, 0):
        return False
    try:
        everyone = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return True
    return not everyone or any(_alive_in(group, pid) for pid in everyone)


def _alive_in(group: int, pid: str) -> bool:
    try:
        state, _, of_group = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(of_group) == group and state != b"Z"


def _signalled(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def _set_parent_death_signal() -> None:
    """Let the kernel kill the server when this guard is killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(words: list[str]) -> int:
    log_path, limit, record, grace, *command = words
    log = BoundedLog(Path(log_path), int(limit))
    awake, waker = os.pipe()
    for end in (awake, waker):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, _ignore_signal)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        server = subprocess.Popen(  # noqa: S603 - the command of runtime.yaml
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_prepare_child,
        )
    except OSError as fault:
        log.write(f"{command[0]}: {fault.strerror or fault}\n".encode())
        return 127
    _write_record(Path(record), server.pid)
    try:
        return _relay_output(server, log, awake, float(grace))
    finally:
        end_group(server.pid, 0)
        Path(record).unlink(missing_ok=True)


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    """Ignore the signal here: its number comes through the wake-up pipe."""


def _prepare_child() -> None:
    """Prepare the server's process before its program starts: default signals, and death together with this process."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _set_parent_death_signal()


def _write_record(path: Path, pid: int) -> None:
    """Record the process, so that the next `pandora serve` can end it after a crash of this one."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"pid": pid, "identity": process_identity(pid)}), encoding="utf-8")
    part.replace(path)


def _relay_output(server: "subprocess.Popen[bytes]", log: BoundedLog, awake: int, grace_s: float) -> int:
    """Copy the server's output until it ends, or the supervisor closes the pipe; returns its exit code."""
    assert server.stdout is not None  # noqa: S101 - a pipe was asked for
    says, hold = server.stdout.fileno(), sys.stdin.fileno()
    os.set_blocking(says, False)
    watched = [says, hold, awake]
    deadline: float | None = None
    while server.poll() is None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            end_group(server.pid, 0)
            break
        ready = select.select(watched, [], [], left)[0]
        if says in ready and not _copy_chunk(says, log):
            watched.remove(says)
        signalled = awake in ready and signal.SIGTERM in os.read(awake, _CHUNK)
        is_released = hold in ready and not os.read(hold, 1)
        if deadline is None and (signalled or is_released):
            watched = [fd for fd in watched if fd != hold]
            deadline = time.monotonic() + grace_s
            server.terminate()
    if deadline is not None:
        end_group(server.pid, max(0.0, deadline - time.monotonic()))
    if says in watched:
        _copy_chunk(says, log)
    code = server.wait()
    return code if code >= 0 else 128 - code


def _copy_chunk(source: int, log: BoundedLog) -> bool:
    """Copy the available output; False at its end."""
    try:
        while data := os.read(source, _CHUNK):
            log.write(data)
    except BlockingIOError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
