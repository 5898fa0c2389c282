"""The `sglang-offline` runtime: the models of the runtime file in child processes, without servers.

Each child process runs `offline_worker.py`, whose docstring describes the JSON lines that both exchange.
"""

import asyncio
import contextlib
import itertools
import json
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.errors import ConfigurationError, ModelRejectedError, ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.runtime.serving.launch_command import Service, full_command, server_environment, services
from pandora_dagster.runtime.sglang.completion_replies import complete_reply
from pandora_dagster.runtime.sglang.completion_requests import Request, completion_request
from pandora_dagster.runtime.sglang.endpoints import Endpoint, EndpointLookup, Endpoints

_MAX_LINE_BYTES = 64 * 1024 * 1024
_EXIT_TIMEOUT_S = 30.0
_CHUNK_BYTES = 65_536
_STDERR_TAIL_CHARACTERS = 2_000
"""The kept part of a worker's last error output, for the message when it ends."""
_MAX_DETAIL_CHARACTERS = 300
Line = Mapping[str, Any]
"""One JSON line to or from a worker."""


@dataclass(slots=True)
class OfflineEngine:
    """The worker process for one server of the runtime file, on one event loop; started by the first question, and again after a crash."""

    label: str
    command: Sequence[str]
    environment: Mapping[str, str]
    start_s: float
    slots: int = 1
    """Concurrent questions; the number that the worker reports once it has started."""
    _process: Process | None = None
    _reader_task: asyncio.Task[None] | None = None
    _start_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _pending: dict[str, asyncio.Future[Line]] = field(default_factory=dict[str, asyncio.Future[Line]])
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _stderr_tail: str = ""

    async def ask(self, question: Line) -> Line:
        """The answer line to one question; raises RuntimeUnreachableError where the worker cannot start, or ends before it answers."""
        await self.ready()
        question_id, answer = f"q{next(self._numbers)}/", asyncio.get_running_loop().create_future()
        self._pending[question_id] = answer
        try:
            await self._send({"id": question_id, **question})
            return cast("Line", await answer)
        except BaseException:
            with contextlib.suppress(RuntimeUnreachableError):
                await self._send({"abort": question_id})
            raise
        finally:
            self._pending.pop(question_id, None)

    async def ready(self) -> None:
        """Start the worker where it does not run, and wait until it takes questions."""
        async with self._start_lock:
            if self._process is not None and self._process.returncode is None:
                return
            await self._start()

    async def close(self) -> None:
        """End the worker by closing its standard input."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _EXIT_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._reader_task is not None:
            await asyncio.gather(self._reader_task, return_exceptions=True)

    async def _start(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=dict(self.environment), limit=_MAX_LINE_BYTES
            )
        except OSError as error:
            raise self._exit_error(f"{self.command[0]}: {error.strerror or error}") from error
        self._process, self._stderr_tail = process, ""
        stderr_task = asyncio.create_task(self._collect_stderr(process))
        try:
            async with asyncio.timeout(self.start_s):
                ready = await _read_line(process)
        except TimeoutError:
            process.kill()
            raise self._exit_error(f"not ready within {self.start_s:g} s") from None
        if ready is None or not ready.get("ready"):
            await process.wait()
            await asyncio.gather(stderr_task, return_exceptions=True)
            raise self._exit_error(f"it ended with {process.returncode} while starting")
        self.slots = int(ready["slots"])
        self._reader_task = asyncio.create_task(self._dispatch_answers(process, stderr_task))

    async def _dispatch_answers(self, process: Process, stderr_task: asyncio.Task[None]) -> None:
        """Pass each answer line to the caller that waits for it; when the worker ends, fail the callers that still wait."""
        while (line := await _read_line(process)) is not None:
            answer = self._pending.get(str(line.get("id")))
            if answer is not None and not answer.done():
                answer.set_result(line)
        await process.wait()
        await asyncio.gather(stderr_task, return_exceptions=True)
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self._exit_error(f"it ended with {process.returncode}"))

    async def _collect_stderr(self, process: Process) -> None:
        """Read the worker's error output, and keep its end."""
        while process.stderr is not None and (chunk := await process.stderr.read(_CHUNK_BYTES)):
            self._stderr_tail = (self._stderr_tail + chunk.decode(errors="replace"))[-_STDERR_TAIL_CHARACTERS:]

    async def _send(self, message: Line) -> None:
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise self._exit_error("it does not run")
        process.stdin.write(json.dumps(message).encode() + b"\n")
        with contextlib.suppress(ConnectionError):  # `_dispatch_answers` fails the callers when the worker ends
            await process.stdin.drain()

    def _exit_error(self, reason: str) -> RuntimeUnreachableError:
        stderr_lines = [line for line in self._stderr_tail.splitlines() if line.strip()]
        detail = f" ({stderr_lines[-1].strip()[:_MAX_DETAIL_CHARACTERS]})" if stderr_lines else ""
        return RuntimeUnreachableError(
            f"{self.label}: the engine's process: {reason}{detail}: expected it to answer",
            hint="Check PANDORA_SGLANG_PYTHON, and the server's launch block in runtime.yaml.",
        )


async def _read_line(process: Process) -> Line | None:
    """The worker's next line; None where it has ended, or wrote no JSON."""
    line = await process.stdout.readline() if process.stdout else b""
    try:
        return cast("Line", json.loads(line)) if line else None
    except ValueError:
        return None


WORKER = Path(__file__).with_name("offline_worker.py")
_INITIAL_CAPACITY = 16


class OfflineRuntime(EndpointLookup):
    """`ModelRuntime` over engines, one for each server that has a `launch` block, each started by its first call.

    Models answer without thinking. An instance belongs to one event loop.
    """

    name = "sglang-offline"

    def __init__(self, endpoints: Endpoints, *, python: str, environ: Mapping[str, str]) -> None:
        self.endpoints = endpoints
        self._services = {service.name: service for service in services(endpoints, python=python, program=(str(WORKER),))}
        self._environ = environ
        self._engines: dict[str, OfflineEngine] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._attempts = itertools.count(1)
        if unlaunched := {endpoints[layer].name for layer in ModelLayer} - self._services.keys():
            names = ", ".join(sorted(unlaunched))
            raise ConfigurationError(f"{endpoints.source}: {names}: no launch block: expected one: this runtime starts the models itself")

    def max_concurrent_calls(self) -> int:
        """Concurrent calls over all engines; an engine that has not started counts with _INITIAL_CAPACITY."""
        names = {self.endpoints[layer].name for layer in ModelLayer}
        return sum(self._engines[name].slots if name in self._engines else _INITIAL_CAPACITY for name in names)

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """One answer within `timeout_s` seconds after a slot was free; `on_words` receives it in one piece. Raises ModelError."""
        endpoint, arrived_at = self.endpoints[pack.layer], time.perf_counter()
        if pack.images:
            raise ModelRejectedError(
                f"{endpoint.layer} offline: {pack.recipe}: {len(pack.images)} images: this runtime reads text only",
                hint="Run the recipe on the sglang runtime, on a server whose model reads images (images: true in runtime.yaml).",
            )
        request = completion_request(pack, endpoint, attempt=next(self._attempts))
        engine = self._engine(endpoint)
        await engine.ready()
        async with self._slots.setdefault(endpoint.name, asyncio.Semaphore(engine.slots)):
            started_at = time.perf_counter()
            try:
                async with asyncio.timeout(timeout_s):
                    line = await engine.ask({**_model_input(request), "sampling": _sampling(request)})
            except TimeoutError:
                raise ModelTimeoutError(
                    f"{endpoint}: no complete answer within {timeout_s:g} s: expected one within the recipe's timeout_ms",
                    hint="Raise timeout_ms in the recipe, or lower --max-running-requests among the server's options.",
                ) from None
            latency_ms = (time.perf_counter() - started_at) * 1_000
        reply = complete_reply(
            _reply_text(line, endpoint), line.get("finish_reason"), has_thoughts=False, usage=_usage(line), endpoint=endpoint
        )
        if on_words is not None and reply.text:
            on_words(reply.text)
        usage, queued_ms = reply.usage or Usage(), (started_at - arrived_at) * 1_000
        return ModelAnswer(reply.text, reply.finish_reason, usage, self.name, endpoint.server.model, latency_ms, queued_ms=queued_ms)

    async def count(self, pack: PromptPack) -> int | None:
        """The prompt's tokens as the engine reads it, template and all; None where it cannot count them."""
        endpoint = self.endpoints[pack.layer]
        try:
            line = await self._engine(endpoint).ask({**_model_input(completion_request(pack, endpoint, attempt=0)), "count": True})
        except RuntimeUnreachableError:
            return None
        return cast("int | None", line.get("prompt"))

    async def aclose(self) -> None:
        """End the engines."""
        await asyncio.gather(*(engine.close() for engine in self._engines.values()))
        self._engines.clear()
        self._slots.clear()

    def _engine(self, endpoint: Endpoint) -> OfflineEngine:
        if endpoint.name not in self._engines:
            service = self._services[endpoint.name]
            self._engines[endpoint.name] = _new_engine(service, endpoint, self._environ)
        return self._engines[endpoint.name]


def _new_engine(service: Service, endpoint: Endpoint, environ: Mapping[str, str]) -> OfflineEngine:
    label = f"{endpoint.layer} offline ({service.name})"
    command = full_command(service, service.launch.memory_fraction)
    return OfflineEngine(label, command, server_environment(service, environ), service.launch.start_s)


def _model_input(request: Request) -> dict[str, Any]:
    """The input fields of a question: messages for the model's template, or plain text."""
    if request.chat:
        return {"messages": list(request.messages), "template": {"enable_thinking": False}}
    return {"prompt": request.prompt}


def _sampling(request: Request) -> dict[str, Any]:
    """The sampling parameters of a question; an output schema becomes the engine's grammar."""
    response_format = cast("Mapping[str, Any]", request.fields.get("response_format") or {})
    schema: object = response_format.get("json_schema", {}).get("schema", {"type": "object"}) if response_format else None
    limits = {"temperature": request.fields["temperature"], "max_new_tokens": request.fields["max_tokens"]}
    stops = {"stop": request.fields["stop"]} if "stop" in request.fields else {}
    return {**limits, **stops, **({"json_schema": json.dumps(schema)} if schema is not None else {})}


def _usage(line: Line) -> object:
    """The token counts of an answer line, in the form that a server reports."""
    return {
        "prompt_tokens": line.get("prompt", 0),
        "completion_tokens": line.get("output", 0),
        "prompt_tokens_details": {"cached_tokens": line.get("cached", 0)},
    }


def _reply_text(line: Line, endpoint: Endpoint) -> str:
    """The text of an answer line; raises ModelRejectedError where it reports an error."""
    if (error := line.get("error")) is not None:
        raise ModelRejectedError(
            f"{endpoint}: the engine refused the request: {str(error)[:_MAX_DETAIL_CHARACTERS]}: expected it to be taken",
            hint="Look at the recipe's output_schema and at the model's context length.",
        )
    return str(line.get("text", ""))
