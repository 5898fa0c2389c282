"""Compressions without a model in worker processes, so that an archival run uses several processors.

Each thread of the pool has a worker process and a socket to it: it sends the token counter once, then a request for each text, and
receives a `CompressionOutcome`. If a worker dies or does not answer, its text and all later ones are compressed in this process. When this
process ends, however it ends, the workers find their socket closed and exit, even in the middle of a text.
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
from threading import Thread, Timer, local

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

    `report` is called once, when a process dies or takes longer than `timeout_s` for a text.
    """

    def __init__(
        self,
        processes: int,
        counter: TokenMeasure,
        report: Callable[[str], None],
        environment: Mapping[str, str],
        *,
        timeout_s: float = _TEXT_TIMEOUT_S,
    ) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="compression")
        self._thread_state = local()
        self._cleanup = ExitStack()
        self._counter, self._report, self._is_broken, self._timeout_s = counter, report, False, timeout_s

    async def __call__(self, contract: CompressionContract, tokens: int) -> CompressionOutcome:
        if not self._is_broken:
            outcome = await asyncio.wrap_future(self._threads.submit(self._worker_outcome, (contract.request, tokens)))
            if outcome is not None:
                return outcome
        return compress_structurally(contract, tokens)

    def close(self) -> None:
        """End the workers after their current texts."""
        self._threads.shutdown(cancel_futures=True)
        self._cleanup.close()

    def _worker_outcome(self, job: _CompressionJob) -> CompressionOutcome | None:
        """The outcome from the worker of this thread; None after a failure of the worker."""
        try:
            if not hasattr(self._thread_state, "worker"):
                self._thread_state.worker = self._start_worker()
            worker: _Worker = self._thread_state.worker
            watchdog = Timer(self._timeout_s, worker.process.kill)  # a killed worker's socket closes, which ends send and recv
            watchdog.start()
            try:
                worker.socket.send(job)
                return worker.socket.recv()
            finally:
                watchdog.cancel()
        except (OSError, EOFError) as error:
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
