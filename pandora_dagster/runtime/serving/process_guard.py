"""The process guard between `pandora serve` and one server: writes the server's log, and ends it when its supervisor is gone.

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
_CHUNK_BYTES = 65_536
_START_TIME = 18
"""Index of the start time, field 22 of /proc/PID/stat, among the fields after the state."""
_POLL_S = 0.05
_KILL_TIMEOUT_S = 10.0
_EXIT_NOT_STARTED = 127
"""The exit code of a shell for a command that it cannot start."""


class BoundedLog:
    """A log file of at most `limit` bytes, and the one before it, `<name>.1`. On a full disk output is lost and the server continues."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit = path, limit
        self._file, self._size = self._rotate(), 0

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._size + len(data) > self._limit:
                next_file = self._rotate()
                self._file.close()
                self._file, self._size = next_file, 0
            self._file.write(data)
            self._size += len(data)

    def _rotate(self) -> BinaryIO:
        if self._path.exists():
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        return self._path.open("ab", buffering=0)


def process_identity(pid: int) -> str:
    """Distinguishes a process from a later one with the same number: `<boot id>/<start time>`; "" where it has ended."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # the text in parentheses may have spaces
    except (OSError, ValueError):
        return ""
    return "" if state == b"Z" else f"{boot}/{fields[_START_TIME].decode()}"


def end_group(group: int, grace_s: float) -> None:
    """Send SIGTERM to a process group, SIGKILL after `grace_s` seconds; return when none of its processes runs."""
    for signal_number, timeout in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILL_TIMEOUT_S)):
        if not _send_signal(group, signal_number):
            return
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not is_group_alive(group):
                return
            time.sleep(_POLL_S)


def is_group_alive(group: int) -> bool:
    """Whether a process of the group is alive; one that has ended and waits to be collected is not."""
    if not _send_signal(group, 0):
        return False
    try:
        process_ids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return True
    return not process_ids or any(_is_alive_in(group, pid) for pid in process_ids)


def _is_alive_in(group: int, pid: str) -> bool:
    try:
        state, _, process_group = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(process_group) == group and state != b"Z"


def _send_signal(group: int, signal_number: int) -> bool:
    """Send a signal to a process group (0 only tests it); False where the group does not exist."""
    try:
        os.killpg(group, signal_number)
    except OSError:
        return False
    return True


def _set_parent_death_signal() -> None:
    """Let the kernel kill the server when this guard is killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run the server as the module describes; returns its exit code."""
    log_path, limit, record, grace, *command = arguments
    log = BoundedLog(Path(log_path), int(limit))
    wakeup_read, wakeup_write = os.pipe()
    for pipe_end in (wakeup_read, wakeup_write):
        os.set_blocking(pipe_end, False)
    signal.set_wakeup_fd(wakeup_write)
    for signal_number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(signal_number, _ignore_signal)
    for signal_number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    try:
        server = subprocess.Popen(  # noqa: S603 - the command of runtime.yaml
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_prepare_child,
        )
    except OSError as error:
        log.write(f"{command[0]}: {error.strerror or error}\n".encode())
        return _EXIT_NOT_STARTED
    _write_record(Path(record), server.pid)
    try:
        return _relay_output(server, log, wakeup_read, float(grace))
    finally:
        end_group(server.pid, 0)
        Path(record).unlink(missing_ok=True)


def _ignore_signal(signal_number: int, frame: FrameType | None) -> None:
    """Do nothing here: the number of the signal comes through the wake-up pipe."""


def _prepare_child() -> None:
    """Prepare the server's process before its program starts: default signals, and death together with this process."""
    for signal_number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_DFL)
    _set_parent_death_signal()


def _write_record(path: Path, pid: int) -> None:
    """Record the process, so that the next `pandora serve` can end it after a crash of this one."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps({"pid": pid, "identity": process_identity(pid)}), encoding="utf-8")
    temporary.replace(path)


def _relay_output(server: "subprocess.Popen[bytes]", log: BoundedLog, wakeup: int, grace_s: float) -> int:
    """Copy the server's output until it ends, or the supervisor closes the pipe; returns its exit code."""
    assert server.stdout is not None  # noqa: S101 - Popen got stdout=PIPE
    output, supervisor = server.stdout.fileno(), sys.stdin.fileno()
    os.set_blocking(output, False)
    watched = [output, supervisor, wakeup]
    deadline: float | None = None
    while server.poll() is None:
        remaining_s = None if deadline is None else deadline - time.monotonic()
        if remaining_s is not None and remaining_s <= 0:
            end_group(server.pid, 0)
            break
        ready = select.select(watched, [], [], remaining_s)[0]
        if output in ready and not _copy_chunk(output, log):
            watched.remove(output)
        is_terminated = wakeup in ready and signal.SIGTERM in os.read(wakeup, _CHUNK_BYTES)
        is_abandoned = supervisor in ready and not os.read(supervisor, 1)
        if deadline is None and (is_terminated or is_abandoned):
            watched = [fd for fd in watched if fd != supervisor]
            deadline = time.monotonic() + grace_s
            server.terminate()
    if deadline is not None:
        end_group(server.pid, max(0.0, deadline - time.monotonic()))
    if output in watched:
        _copy_chunk(output, log)
    code = server.wait()
    return code if code >= 0 else 128 - code


def _copy_chunk(source: int, log: BoundedLog) -> bool:
    """Copy the available output to the log; False at its end."""
    try:
        while data := os.read(source, _CHUNK_BYTES):
            log.write(data)
    except BlockingIOError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
