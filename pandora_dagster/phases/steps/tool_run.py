"""One run of a tool without the turn's lock, so that readers, an erasure and other commands on the turn never wait for it.

What is about to run is committed first. The result counts only where the turn is still as that commit left it (decision 49,
docs/decisions/49-tools-run-without-the-lock.md).
"""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from threading import Event

from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.ports.tool import Tool, ToolListener, ToolOutcome, ToolProgress, ToolRun
from pandora_dagster.contracts.turns import ToolIntent
from pandora_dagster.errors import DocumentError, StoreError, TurnChangedError, UnknownTurnError
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.phases.core.phase_context import PhaseContext

_GRACE_S = 1.0
"""How long a cancelled tool may take to end; one that ignores the cancellation is abandoned."""
_POLL_S = 0.25
"""How often the turn is looked at while its tool runs."""
_MAX_PROGRESS_CHARACTERS = 200
"""Characters of a progress message that a listener receives."""


async def run_unlocked(ctx: PhaseContext, tool: Tool, run: ToolRun) -> ToolOutcome:
    """The outcome, or an error for a tool that is late or cancelled. Raises what the tool raises.

    Raises TurnChangedError where the turn changed or was erased meanwhile; the tool is cancelled then. A cancellation of the turn cancels
    the tool and is raised again.
    """
    name = tool.spec.name
    with ctx.deps.turns.tool_lease(ctx.turn.key) as lease:
        until = ctx.deps.clock().replace(microsecond=0) + timedelta(seconds=run.deadline_s + 2 * _GRACE_S)
        intent = ToolIntent(phase=ctx.phase, tool=name, holder=lease.holder, lease=lease.number, until=format_timestamp(until))
        ctx.turn = ctx.deps.turns.commit(ctx.turn, phase=None, tool_run=intent)
        if ctx.lock:
            ctx.lock.release()
        task = await _ended_task(ctx, tool, run)
        await _return_to_turn(ctx, name)
    if task is None:
        return tool_error(f"{name}: no result within {run.deadline_s:g} s: the tool was stopped")
    if task.cancelled():
        return tool_error(f"{name}: the tool was cancelled before it had a result")
    return task.result()


def tool_error(message: str) -> ToolOutcome:
    """A failed result. The message becomes one line: a quotation in it cannot form a heading or a source of section 4."""
    line = " ".join(message.split())
    return ToolOutcome(False, f"**Error:** {line}", json.dumps({"error": line}, ensure_ascii=False))


def progress_callback(listener: AnswerListener | None, tool: str, cancelled: Event) -> Callable[[str, float | None], None]:
    """Forwards progress to a listener that receives it, until the run is over."""

    def report(message: str, done: float | None = None) -> None:
        if isinstance(listener, ToolListener) and not cancelled.is_set():
            listener.on_tool_progress(ToolProgress(tool, " ".join(message.split())[:_MAX_PROGRESS_CHARACTERS], done))

    return report


async def _ended_task(ctx: PhaseContext, tool: Tool, run: ToolRun) -> "asyncio.Future[ToolOutcome] | None":
    """The ended run of a tool; None where it was stopped: at its deadline, or because the turn changed."""
    task = asyncio.ensure_future(tool.run(run))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + run.deadline_s
    try:
        while not task.done() and (seconds := deadline - loop.time()) > 0 and _is_unchanged(ctx):
            await asyncio.wait({task}, timeout=min(seconds, _POLL_S))
        return task if task.done() else None
    finally:
        run.cancelled.set()
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE_S)
            task.add_done_callback(_discard_result)


async def _return_to_turn(ctx: PhaseContext, tool: str) -> None:
    """Take the turn's lock again; raises TurnChangedError where the turn is no longer as the tool's run found it."""
    cause: StoreError | UnknownTurnError | None = None
    try:
        if ctx.lock:
            await ctx.lock.retake()
        if _is_unchanged(ctx):
            return
    except (StoreError, UnknownTurnError) as error:
        cause = error
    reason = f"the turn cannot be taken up again: {cause}" if isinstance(cause, StoreError) else "the turn was changed or erased meanwhile"
    raise TurnChangedError(f"{ctx.turn.key}: {tool}: its result is dropped: {reason}", hint="pandora turns lists what is stored") from cause


def _is_unchanged(ctx: PhaseContext) -> bool:
    """Whether the turn is as the last commit of this run left it."""
    try:
        return ctx.deps.turns.manifest(ctx.turn.key) == ctx.turn.manifest
    except (UnknownTurnError, DocumentError):
        return False


def _discard_result(task: "asyncio.Future[ToolOutcome]") -> None:
    """Retrieve the exception of an abandoned tool, so that the event loop does not report it."""
    if not task.cancelled():
        task.exception()
