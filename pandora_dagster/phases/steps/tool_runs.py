"""One run of a tool: permission, arguments, deadline, cancellation and size. Whatever goes wrong is a result, never a crash of the turn."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event

import jsonschema

from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.phase_outputs import ToolCall
from pandora_dagster.contracts.ports.tool import Tool, ToolListener, ToolOutcome, ToolProgress, ToolRun, ToolSpec
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.core.phase_context import PhaseContext

NO_SOURCE = "no source given"
_GRACE_S = 1.0
"""How long a cancelled tool may take to end; one that ignores the cancellation is abandoned."""
_MAX_PROGRESS = 200
"""Characters of a progress message that a listener receives."""


async def run_tool(ctx: PhaseContext, call: ToolCall, offered: Sequence[Tool]) -> ToolOutcome:
    """Run the tool that `call` names, if it is offered and its arguments fit its schema."""
    tool = next((t for t in offered if t.spec.name == call.tool), None)
    if tool is None:
        return _refusal(ctx, call, offered)
    spec = tool.spec
    faults = jsonschema.Draft202012Validator(spec.parameters).iter_errors(dict(call.arguments))  # pyright: ignore[reportUnknownMemberType] - jsonschema is untyped here
    if (first := next(iter(faults), None)) is not None:
        return tool_error(f"{call.tool}: {first.json_path}: {first.message}")
    cancelled = Event()
    run = ToolRun(call.arguments, ctx.turn.key, spec.deadline_s, cancelled, _progress_callback(ctx.deps.listener, spec.name, cancelled))
    try:
        outcome = await _run_within_deadline(tool, run)
    except Exception as error:  # a tool is foreign code: its exceptions are results
        kind = "" if isinstance(error, PandoraError) else f"{type(error).__name__}: "
        return tool_error(f"{call.tool}: {kind}{error}")
    return _checked_outcome(spec, outcome)


def tool_error(message: str) -> ToolOutcome:
    """A failed result. The message becomes one line: a quotation in it cannot form a heading or a source of section 4."""
    line = " ".join(message.split())
    return ToolOutcome(False, f"**Error:** {line}", json.dumps({"error": line}, ensure_ascii=False))


def _refusal(ctx: PhaseContext, call: ToolCall, offered: Sequence[Tool]) -> ToolOutcome:
    """Why a tool that is not offered cannot run: its permissions are not granted, or there is no such tool."""
    known = ctx.deps.tools.get(call.tool)
    missing = sorted(known.spec.permissions - ctx.deps.tool_permissions) if known else []
    if missing:
        granted = ", ".join(sorted(ctx.deps.tool_permissions)) or "none"
        return tool_error(f"{call.tool}: refused: it needs the permission {', '.join(missing)}; granted are {granted}")
    return tool_error(f"{call.tool}: no such tool here; expected one of {', '.join(t.spec.name for t in offered) or 'none'}")


async def _run_within_deadline(tool: Tool, run: ToolRun) -> ToolOutcome:
    """The outcome, or an error for a tool that is late or cancelled. A cancellation of the turn ends the tool and is raised again."""
    name = tool.spec.name
    task = asyncio.ensure_future(tool.run(run))
    try:
        await asyncio.wait({task}, timeout=run.deadline_s)
        if task.cancelled():
            return tool_error(f"{name}: the tool was cancelled before it had a result")
        if task.done():
            return task.result()
    finally:
        run.cancelled.set()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE_S)
            task.add_done_callback(_discard_result)
    return tool_error(f"{name}: no result within {run.deadline_s:g} s: the tool was stopped")


def _discard_result(task: asyncio.Future[ToolOutcome]) -> None:
    """Retrieve the exception of an abandoned tool, so that the event loop does not report it."""
    if not task.cancelled():
        task.exception()


def _progress_callback(listener: AnswerListener | None, tool: str, cancelled: Event) -> Callable[[str, float | None], None]:
    """Forwards progress to a listener that receives it, until the run is over."""

    def report(message: str, done: float | None = None) -> None:
        if isinstance(listener, ToolListener) and not cancelled.is_set():
            listener.on_tool_progress(ToolProgress(tool, " ".join(message.split())[:_MAX_PROGRESS], done))

    return report


def _checked_outcome(spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
    """The outcome, or an error where it is too large, or found something without a source to cite (DECISIONS 12)."""
    if outcome.size > spec.max_result_bytes:
        return tool_error(f"{spec.name}: the result has {outcome.size:,} bytes: expected at most {spec.max_result_bytes:,}")
    if not outcome.ok or outcome.sources or not outcome.text.strip():
        return outcome
    return replace(tool_error(f"{spec.name}: {NO_SOURCE}; the raw result is in toolresults.md"), raw=outcome.raw)
