"""What is judged of a tool call before it is made: its arguments, and whether it repeats an earlier one.

Code compares with the schema and finds equal calls; a recipe is asked about the rest.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import jsonschema

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.phase_outputs import FilledArguments, RepeatedCall, ToolCall
from pandora_dagster.contracts.ports.tool import Tool, ToolSpec
from pandora_dagster.phases.core.phase_context import PhaseContext, json_line
from pandora_dagster.phases.steps.task_plan import tools_document
from pandora_dagster.phases.steps.tool_recipes import ARGUMENT_FILLER, LOOP_DETECTOR, recipe_asker

_FRUITLESS_CALLS = 2
"""Calls of one tool in a row that found nothing new, after which the next one is judged."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was made in this turn."""

    call: ToolCall
    is_ok: bool
    is_new: bool
    """Whether it found a source that was not known before it."""


def argument_fault(spec: ToolSpec, call: ToolCall) -> str:
    """The first place at which the arguments do not fit the tool's schema, and why; "" where they fit."""
    faults = jsonschema.Draft202012Validator(spec.parameters).iter_errors(dict(call.arguments))  # pyright: ignore[reportUnknownMemberType] - jsonschema is untyped here
    first = next(iter(faults), None)
    return f"{first.json_path}: {first.message}" if first is not None else ""


async def fit_arguments(ctx: PhaseContext, call: ToolCall, offered: Sequence[Tool]) -> ToolCall:
    """The call with arguments that fit its tool's schema; unchanged where they do, or where the one call of the recipe does not help."""
    tool = next((t for t in offered if t.spec.name == call.tool), None)
    fault = argument_fault(tool.spec, call) if tool else ""
    if tool is None or not fault:
        return call
    documents = (tools_document([tool]), InputDocument("call", json_line(call.arguments)), InputDocument("fault", fault))
    answer = await recipe_asker(ctx)(ARGUMENT_FILLER, documents, FilledArguments)
    filled = call.model_copy(update={"arguments": answer.arguments})
    return call if argument_fault(tool.spec, filled) else filled


def find_same_call(call: ToolCall, made: Sequence[MadeCall]) -> int | None:
    """The number of the result, from 1, of a successful call of the same tool with the same arguments; None where there is none."""
    return next((n for n, m in enumerate(made, 1) if m.is_ok and _identity(m.call) == _identity(call)), None)


async def is_loop(ctx: PhaseContext, call: ToolCall, made: Sequence[MadeCall], offered: Sequence[Tool]) -> bool:
    """Whether the call asks again what the last calls of its tool did not find; asked where these found nothing new. A tool that writes
    finds nothing, and is not judged."""
    if any(t.spec.name == call.tool and t.spec.writes for t in offered):
        return False
    last = [m for m in made if m.call.tool == call.tool][-_FRUITLESS_CALLS:]
    if len(last) < _FRUITLESS_CALLS or any(m.is_new for m in last):
        return False
    calls = "\n".join(json_line({"number": n, "arguments": dict(m.call.arguments)}) for n, m in enumerate(last, 1))
    documents = (InputDocument("calls", calls), InputDocument("next_call", json_line({"arguments": dict(call.arguments)})))
    return (await recipe_asker(ctx)(LOOP_DETECTOR, documents, RepeatedCall)).repeats


def _identity(call: ToolCall) -> str:
    return json.dumps([call.tool, dict(call.arguments)], sort_keys=True)
