"""Compressions without a model in worker processes: an archival run uses several processors, and no text takes longer than its time.

Each thread of the pool has a worker process and a socket to it: it sends the token counter once, then a request for each text, and
receives a `CompressionOutcome`. A worker that takes longer than the time for one text is killed, and its text is left out with that reason;
the next text gets a new worker. If a worker dies, its text and all later ones are compressed in this process. When this process ends,
however it ends, the workers find their socket closed and exit, even in the middle of a text.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Event, Thread, Timer, local

from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.execution.fit.compression_contract import CompressionContract, CompressionOutcome, compress_structurally

_CompressionJob = tuple[CompressionRequest, int]
"""A request, and the tokens of its text."""
_TEXT_TIMEOUT_S = 600.0
"""Time for one text; one of 150,000 tokens takes half a minute."""


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker process and this end of its socket."""

    process: "subprocess.Popen[bytes]"
    socket: Connection

    def kill(self) -> None:
        """Kill the process, even a stopped one; its work is discarded."""
        self.process.kill()
        self.process.wait()
        self.socket.close()


class CompressionWorkerPool:
    """Compresses in at most `processes` processes, which start when texts come, each with a copy of `counter`.

    A text of fewer than `min_tokens` tokens is compressed in this process, and so in a few seconds. `report` is called once, when a
    process dies.
    """

    def __init__(
        self,
        processes: int,
        counter: TokenMeasure,
        report: Callable[[str], None],
        environment: Mapping[str, str],
        *,
        min_tokens: int = 0,
        timeout_s: float = _TEXT_TIMEOUT_S,
    ) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="compression")
        self._thread_state = local()
        self._cleanup = ExitStack()
        self._counter, self._report, self._is_broken = counter, report, False
        self._min_tokens, self._timeout_s = min_tokens, timeout_s

    async def __call__(self, contract: CompressionContract, tokens: int) -> CompressionOutcome:
        if tokens >= self._min_tokens and not self._is_broken:
            outcome = await asyncio.wrap_future(self._threads.submit(self._worker_outcome, (contract.request, tokens)))
            if outcome is not None:
                return outcome
        return compress_structurally(contract, tokens)

    def close(self) -> None:
        """End the workers after their current texts."""
        self._threads.shutdown(cancel_futures=True)
        self._cleanup.close()

    def _worker_outcome(self, job: _CompressionJob) -> CompressionOutcome | None:
        """The outcome from the worker of this thread, a HALT after the time for one text; None after a failure of the worker."""
        expired = Event()
        try:
            if not hasattr(self._thread_state, "worker"):
                self._thread_state.worker = self._start_worker()
            worker: _Worker = self._thread_state.worker
            watchdog = Timer(self._timeout_s, _kill_late, [worker, expired])
            watchdog.start()
            try:
                worker.socket.send(job)
                return worker.socket.recv()
            finally:
                watchdog.cancel()
        except (OSError, EOFError) as error:
            if expired.is_set():
                del self._thread_state.worker
                return CompressionOutcome(None, job[1], job[1], halted=f"no compression within {self._timeout_s:g} s", is_late=True)
            if not self._is_broken:
                self._is_broken = True
                self._report(f"a process that compressed texts has ended ({error!r}): the remaining texts are compressed in this one")
            return None

    def _start_worker(self) -> _Worker:
        """Start a worker process and send it the token counter."""
        socket, worker_socket = Pipe()
        with worker_socket:
            command = [sys.executable, "-m", __name__, str(worker_socket.fileno())]
            environment = {**self._environment, "PYTHONPATH": os.pathsep.join(sys.path)}
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[worker_socket.fileno()])  # noqa: S603 - this interpreter, this module
        worker = _Worker(process, socket)
        self._cleanup.callback(worker.kill)
        socket.send(self._counter)
        return worker


def _kill_late(worker: _Worker, expired: Event) -> None:
    """End the send or receive of a worker that is late: the socket of a killed process closes."""
    expired.set()
    worker.process.kill()


def spare_processor_count() -> int:
    """The processors that this process may use, but one for itself."""
    return len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) - 1


def _serve(socket: Connection) -> None:
    """Answer requests until the socket closes; None for a failed one, which the parent then runs itself and so raises its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    Thread(target=_exit_when_closed, args=[socket], daemon=True).start()
    counter: TokenMeasure = socket.recv()
    while True:
        job: _CompressionJob = socket.recv()
        outcome: CompressionOutcome | None = None
        with suppress(Exception):
            request, tokens = job
            outcome = compress_structurally(CompressionContract(request, counter), tokens)
        socket.send(outcome)


def _exit_when_closed(socket: Connection) -> None:
    """Wait until the other end of the socket is closed, then end this process at once: its answer is not read."""
    poller = select.poll()
    poller.register(socket.fileno(), 0)  # no event is requested; a hang-up is always reported
    poller.poll()
    os._exit(0)


if __name__ == "__main__":
    with suppress(OSError, EOFError), Connection(int(sys.argv[1])) as socket:
        _serve(socket)
