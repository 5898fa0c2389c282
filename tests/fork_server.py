"""Processes that begin with the program's modules imported: forked from a server that has done nothing but import them.

Most of what a start of `pandora` costs is imports, and some hundred processes are started to be killed or to write at the same time as
others. Each is a process like any other: its own number, locks, threads, environment, folder and end. What is lost is that the order of
sets differs from one to the next. Starts themselves are tested with interpreters of their own (tests/cli, tests/faults/test_wheel.py).
"""

import atexit
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TextIO

REPOSITORY = Path(__file__).parents[1]
_SERVER = "from tests.fork_server import serve; import sys; serve(int(sys.argv[1]))"
_READS_ENVIRONMENT = "pandora_dagster.definitions"
"""Made from the settings of the process that imports it, so that the server leaves it out."""
_LOADED_BY_NAME = (
    "alembic.command",
    "dagster._core.storage.event_log.sqlite",
    "dagster._core.storage.runs.sqlite",
    "dagster._core.storage.schedules.sqlite",
    "dagster._core.storage.sqlite_storage",
)
_MESSAGE = 1 << 17


class ForkedProcess:
    """What tests use of `subprocess.Popen`, for a process that the server forked."""

    def __init__(self, args: list[str], answers: socket.socket, stdout: TextIO, stderr: TextIO) -> None:
        self.args, self.stdout, self.stderr = args, stdout, stderr
        self.returncode: int | None = None
        self._answers = answers
        self.pid = int(answers.recv(_MESSAGE))

    def poll(self) -> int | None:
        """The exit code, or None while it runs; -9 where it was killed with signal 9."""
        return self._code(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Everything on stdout and stderr, once both and the process have ended."""
        until = None if timeout is None else time.monotonic() + timeout
        texts = ["", ""]

        def read(place: int, stream: TextIO) -> None:
            texts[place] = stream.read()

        with self.stdout, self.stderr:
            threads = [threading.Thread(target=read, args=each, daemon=True) for each in enumerate((self.stdout, self.stderr))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(None if until is None else max(0.0, until - time.monotonic()))
                if thread.is_alive():
                    self.kill()
                    thread.join()
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(None if until is None else max(1.0, until - time.monotonic()))
        return texts[0], texts[1]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _code(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                told = self._answers.recv(_MESSAGE)
            except (BlockingIOError, TimeoutError):
                return None
            assert told, "the fork server has ended"
            self.returncode = int(told)
            self._answers.close()
        return self.returncode


def forked(code: str, *arguments: str, env: Mapping[str, str], cwd: Path) -> ForkedProcess:
    """As `subprocess.Popen([sys.executable, "-c", code, *arguments], env=env, cwd=cwd, ...)` with a pipe for each of stdout and stderr."""
    answers, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    (out, written_out), (err, written_err) = os.pipe(), os.pipe()
    order = json.dumps({"code": code, "arguments": arguments, "env": dict(env), "cwd": str(cwd)}).encode()
    with other_end:
        socket.send_fds(_control(os.getpid()), [order], [written_out, written_err, other_end.fileno()])
    os.close(written_out)
    os.close(written_err)
    return ForkedProcess([sys.executable, "-c", code, *arguments], answers, os.fdopen(out), os.fdopen(err))


@cache
def _control(process: int) -> socket.socket:
    """The socket of this process's server, which ends when the socket is closed."""
    assert process == os.getpid()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PANDORA_", "DAGSTER_"))}
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # one thread: a process that forks may have no other
        env=own | {"PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"},
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    def end() -> None:
        ours.close()
        server.wait(30)

    atexit.register(end)
    return ours


def serve(control_fd: int) -> None:
    """Fork a process for each order until the other end is closed. In a forked process: run what was ordered, and return."""
    _import_all()
    assert threading.active_count() == 1
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # may be ignored by the tests' process, which gave it to this one
    signal.signal(signal.SIGINT, signal.default_int_handler)
    control = socket.socket(fileno=control_fd)
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno())
    waiting: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(control, selectors.EVENT_READ)
        ready.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is woken:
                    woken.recv(_MESSAGE)
                    _tell_ends(waiting)
                    continue
                message, fds, _, _ = socket.recv_fds(control, _MESSAGE, 3)
                if not message:
                    return
                answers = socket.socket(fileno=fds[2])
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    ready.close()
                    for end in (control, woken, wakes, answers, *waiting.values()):
                        end.close()
                    _become(json.loads(message), fds[0], fds[1])
                    return
                for fd in fds[:2]:
                    os.close(fd)
                answers.send(str(pid).encode())
                waiting[pid] = answers


def _tell_ends(waiting: dict[int, socket.socket]) -> None:
    """Each process that has ended leaves its exit code with the test that started it."""
    for pid in list(waiting):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with waiting.pop(pid) as answers:
                try:
                    answers.send(str(os.waitstatus_to_exitcode(status)).encode())
                except BrokenPipeError:
                    continue  # the test has forgotten it


def _become(order: dict[str, object], out: int, err: int) -> None:
    """What `python -c` does, from here on."""
    for fd, standard in ((out, 1), (err, 2)):
        os.dup2(fd, standard)
        os.close(fd)
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[arg-type]
    os.chdir(order["cwd"])  # type: ignore[arg-type]
    sys.argv[:] = ["-c", *order["arguments"]]  # type: ignore[misc]
    exec(compile(order["code"], "<string>", "exec"), vars(sys.modules["__main__"]))  # type: ignore[arg-type]


def _import_all() -> None:
    """Every module of the program that this environment can import, and those that Dagster loads by name."""
    import pandora_dagster

    for module in pkgutil.walk_packages(pandora_dagster.__path__, "pandora_dagster."):
        if module.name != _READS_ENVIRONMENT:
            try:
                importlib.import_module(module.name)
            except ImportError:
                continue  # an extra that is not installed
    for name in _LOADED_BY_NAME:
        importlib.import_module(name)
