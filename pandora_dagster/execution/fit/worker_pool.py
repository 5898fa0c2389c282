"""Compressions without a model in worker processes: an archival run has many, and one Python process works on one at a time.

Each worker has a socket of its own. A worker that dies or does not answer loses nothing: its text, and all later ones, are compressed in
this process. When this process ends, in whatever way, the workers find their socket closed and exit, even in the middle of a text.
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


_TIMEOUT_S = 600.0
"""For one text; one of 150,000 tokens takes half a minute."""


@dataclass(frozen=True, slots=True)
class _Worker:
    """A process and this end of its socket."""

    process: "subprocess.Popen[bytes]"
    socket: Connection

    def kill(self) -> None:
        """End the process at once, also a stopped one; its work is discarded."""
        self.process.kill()
        self.process.wait()
        self.socket.close()


class CompressionWorkerPool:
    """Compresses in at most `processes` processes, which start as texts come, each with a copy of `counter`; `report` is called once
    where one of them dies, or takes longer than `timeout_s` over a text."""

    def __init__(
        self,
        processes: int,
        counter: TokenMeasure,
        report: Callable[[str], None],
        environment: Mapping[str, str],
        *,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._environment = environment
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="apart")
        self._of_thread = local()
        self._open = ExitStack()
        self._counter, self._report, self._is_broken, self._timeout_s = counter, report, False, timeout_s

    async def __call__(self, contract: CompressionContract, tokens: int) -> CompressionOutcome:
        if not self._is_broken:
            made = await asyncio.wrap_future(self._threads.submit(self._worker_outcome, (contract.request, tokens)))
            if made is not None:
                return made
        return compress_structurally(contract, tokens)

    def close(self) -> None:
        """End the workers after their current texts."""
        self._threads.shutdown(cancel_futures=True)
        self._open.close()

    def _worker_outcome(self, asked: _CompressionJob) -> CompressionOutcome | None:
        """The outcome from the worker of this thread; None after a failure of the worker."""
        try:
            if not hasattr(self._of_thread, "worker"):
                self._of_thread.worker = self._start_worker()
            worker: _Worker = self._of_thread.worker
            bound = Timer(self._timeout_s, worker.process.kill)  # its socket closes: sending and receiving end
            bound.start()
            try:
                worker.socket.send(asked)
                return worker.socket.recv()
            finally:
                bound.cancel()
        except (OSError, EOFError) as error:
            if not self._is_broken:
                self._is_broken = True
                self._report(f"a process that compressed texts has ended ({error!r}): the remaining texts are compressed in this one")
            return None

    def _start_worker(self) -> _Worker:
        here, there = Pipe()
        with there:
            command = [sys.executable, "-m", __name__, str(there.fileno())]
            environment = {**self._environment, "PYTHONPATH": os.pathsep.join(sys.path)}
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[there.fileno()])  # noqa: S603 - this interpreter, this module
        worker = _Worker(process, here)
        self._open.callback(worker.kill)
        here.send(self._counter)
        return worker


def spare_processor_count() -> int:
    """Processors of this machine that are free for others than this process."""
    return len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) - 1


def _serve(socket: Connection) -> None:
    """Answer requests until the socket closes. A failed request is answered by None: the parent tries it and reports the error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    Thread(target=_exit_when_closed, args=[socket], daemon=True).start()
    counter: TokenMeasure = socket.recv()
    while True:
        asked: _CompressionJob = socket.recv()
        made: CompressionOutcome | None = None
        with suppress(Exception):
            request, tokens = asked
            made = compress_structurally(CompressionContract(request, counter), tokens)
        socket.send(made)


def _exit_when_closed(socket: Connection) -> None:
    """Wait until the other end of the socket is closed, then end this process at once: its answer is not read."""
    closed = select.poll()
    closed.register(socket.fileno(), 0)  # a hang-up is reported without being requested
    closed.poll()
    os._exit(0)


if __name__ == "__main__":
    with suppress(OSError, EOFError), Connection(int(sys.argv[1])) as socket:
        _serve(socket)
