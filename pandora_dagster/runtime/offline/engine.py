"""One worker process and what it was asked. Knows its lines; knows no packs and judges no answer."""

import asyncio
import contextlib
import itertools
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pandora_dagster.errors import RuntimeUnreachableError

_LONGEST_LINE = 64 * 1024 * 1024
_ENDS_WITHIN_S = 30.0
_STDERR_TAIL = 2_000
"""Characters of what it said last, for the sentence that tells of its end."""
Line = Mapping[str, Any]


@dataclass(slots=True)
class OfflineEngine:
    """A worker of one server of the runtime file, on one event loop; started by its first question, and again where it died."""

    where: str
    command: Sequence[str]
    environment: Mapping[str, str]
    start_s: float
    places: int = 1
    """Questions at once; the worker's own number once it is there."""
    _process: Process | None = None
    _reading: asyncio.Task[None] | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: dict[str, asyncio.Future[Line]] = field(default_factory=dict[str, asyncio.Future[Line]])
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _last: str = ""

    async def ask(self, question: Line) -> Line:
        """The worker's line about one question; raises RuntimeUnreachableError where it can not be started, or ends meanwhile."""
        await self.ready()
        name, answer = f"q{next(self._numbers)}/", asyncio.get_running_loop().create_future()
        self._waiting[name] = answer
        try:
            await self._send({"id": name, **question})
            return cast(Line, await answer)
        except BaseException:
            with contextlib.suppress(RuntimeUnreachableError):
                await self._send({"abort": name})
            raise
        finally:
            self._waiting.pop(name, None)

    async def ready(self) -> None:
        """Returns when the worker takes questions."""
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            await self._start()

    async def close(self) -> None:
        """End the worker, as closing its standard input does."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _start(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=dict(self.environment), limit=_LONGEST_LINE
            )
        except OSError as error:
            raise self._exit_error(f"{self.command[0]}: {error.strerror or error}") from error
        self._process, self._last = process, ""
        beside = asyncio.create_task(self._listen(process))
        try:
            async with asyncio.timeout(self.start_s):
                told = await _read_line(process)
        except TimeoutError:
            process.kill()
            raise self._exit_error(f"not ready within {self.start_s:g} s") from None
        if told is None or not told.get("ready"):
            await process.wait()
            await asyncio.gather(beside, return_exceptions=True)
            raise self._exit_error(f"it ended with {process.returncode} while starting")
        self.places = int(told["places"])
        self._reading = asyncio.create_task(self._read(process, beside))

    async def _read(self, process: Process, beside: asyncio.Task[None]) -> None:
        """Hand each line to whoever asked; when there are no more, nobody waits any longer."""
        while (line := await _read_line(process)) is not None:
            answer = self._waiting.get(str(line.get("id")))
            if answer is not None and not answer.done():
                answer.set_result(line)
        await process.wait()
        await asyncio.gather(beside, return_exceptions=True)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._exit_error(f"it ended with {process.returncode}"))

    async def _listen(self, process: Process) -> None:
        while process.stderr is not None and (said := await process.stderr.read(65_536)):
            self._last = (self._last + said.decode(errors="replace"))[-_STDERR_TAIL:]

    async def _send(self, what: Line) -> None:
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise self._exit_error("it is not there")
        process.stdin.write(json.dumps(what).encode() + b"\n")
        with contextlib.suppress(ConnectionError):  # its end is told to whoever waits
            await process.stdin.drain()

    def _exit_error(self, what: str) -> RuntimeUnreachableError:
        lines = [line for line in self._last.splitlines() if line.strip()]
        said = f" ({lines[-1].strip()[:300]})" if lines else ""
        return RuntimeUnreachableError(
            f"{self.where}: the engine's process: {what}{said}: expected it to answer",
            hint="Check PANDORA_SGLANG_PYTHON, and the server's launch block in runtime.yaml.",
        )


async def _read_line(process: Process) -> Line | None:
    """The worker's next line; None where it has ended."""
    line = await process.stdout.readline() if process.stdout else b""
    try:
        return cast(Line, json.loads(line)) if line else None
    except ValueError:
        return None
