"""Phase 4: the bounded loop of tactical step, tool choice, tool run and section 4 (specification 000, sections 7 and 26).

A tool runs without the turn's lock, and its permission, arguments, deadline, cancellation and size are checked. Whatever goes wrong is a
result, never a crash.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Literal

from pandora_dagster.contracts.compression_results import CompressionInput, GateVerdict
from pandora_dagster.contracts.enums import SECTION_BUDGETS, ContentType
from pandora_dagster.contracts.model_calls import InputDocument, Source
from pandora_dagster.contracts.phase_outputs import ExecutorStep, TaskPlan, ToolCall
from pandora_dagster.contracts.ports.tool import Tool, ToolCost, ToolOutcome, ToolRun, ToolSpec
from pandora_dagster.documents.citations import label_source_marks, reference_list, source_references
from pandora_dagster.documents.markdown import code_fence
from pandora_dagster.documents.sections import escape_subheadings
from pandora_dagster.errors import HaltError, PandoraError, TurnChangedError
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, parsed_answer
from pandora_dagster.phases.steps.call_judgements import MadeCall, argument_fault, find_same_call, fit_arguments, is_loop
from pandora_dagster.phases.steps.manual_pages import decided_pages, page_files, page_halt
from pandora_dagster.phases.steps.task_plan import offered_tools, tools_document
from pandora_dagster.phases.steps.tool_costs import ToolMeter, cost_row, count_cost
from pandora_dagster.phases.steps.tool_findings import artifact_files, finding_files
from pandora_dagster.phases.steps.tool_recipes import recipe_asker
from pandora_dagster.phases.steps.tool_run import progress_callback, run_unlocked, tool_error
from pandora_dagster.phases.steps.write_approval import approval_files, is_approved

EXECUTOR = "pipeline/phase4_executor"
COORDINATOR = "pipeline/phase4_coordinator"
MAX_TOOL_CALLS = 5
"""Tool calls of one turn at most; fewer where section 4 is full before (specification 000, section 11.3)."""
NO_TOOLS = "No tools were needed."
NOTHING_FOUND = "Nothing was found."
NO_SOURCE = "no source given"
_REFUSED = "the user refused this call"
_Stopped = Literal["complete", "blocked", "bound", "loop"]


@dataclass(frozen=True, slots=True)
class _ToolCallResult:
    """One tool result: what was called, what came back, under which labels it is cited."""

    number: int
    call: ToolCall
    outcome: ToolOutcome
    sources: tuple[Source, ...]
    body: str = ""
    """Its form in section 4: its text, or a compression; the whole is in toolresults.md."""
    is_new: bool = True
    """Whether it found a source that was not known before it."""
    cost: ToolCost | None = None
    """None where the call was not made."""


async def tool_results(ctx: PhaseContext) -> PhaseOutput:
    """Section 4 and `toolresults.md`. Where the Planner went straight to synthesis, both say so."""
    plan = ctx.read("task_plan.json", TaskPlan)
    done: list[_ToolCallResult] = []
    stopped: _Stopped = "complete"
    if plan.next_step == "coordinator":
        stopped = await _run_rounds(ctx, done)
    body = _section4(done)
    facts = {"tool_calls": len(done), "tool_errors": sum(not r.outcome.ok for r in done), "stopped": stopped}
    outcomes = [(r.call.tool, r.outcome) for r in done if r.outcome.ok]
    files = (
        approval_files(ctx)
        | page_files(ctx.turn)
        | finding_files(ctx, outcomes)
        | {name: text for r in done if r.outcome.ok for name, text in _artifacts(r).items()}
    )
    facts |= _tables(done)
    facts |= {"tool_costs": costs} if (costs := [cost_row(r.call.tool, r.cost) for r in done if r.cost]) else {}
    verdicts = (_evidence_verdict(done), *(verdict for r in done for verdict in r.outcome.verdicts))
    return PhaseOutput(sections={4: body}, files={"toolresults.md": _raw_results(done), **files}, facts=facts, verdicts=verdicts)


def _tables(done: Sequence[_ToolCallResult]) -> dict[str, Any]:
    """The rows of all results, by table."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for result in done:
        for name, rows in result.outcome.tables.items():
            tables.setdefault(name, []).extend(rows)
    return {name: rows for name, rows in tables.items() if rows}


async def _run_rounds(ctx: PhaseContext, done: list[_ToolCallResult]) -> _Stopped:
    offered = offered_tools(ctx, COORDINATOR)
    tools = tools_document(offered)
    for _ in range(MAX_TOOL_CALLS):
        context = ctx.context_document.with_section(4, _section4(done)) if done else ctx.context_document
        step = parsed_answer(await ctx.ask(EXECUTOR, [tools], context=context), ExecutorStep)
        if step.action != "COMMAND":
            return "complete" if step.action == "COMPLETE" else "blocked"
        sources = _known_sources(ctx, done)
        choice = await ctx.ask(COORDINATOR, [InputDocument("command", step.command), tools], context=context, sources=sources)
        call = await fit_arguments(ctx, parsed_answer(choice, ToolCall), offered)
        made = [MadeCall(r.call, r.outcome.ok, r.is_new) for r in done]
        if await is_loop(ctx, call, made, offered):
            return "loop"
        same = find_same_call(call, made)
        outcome, cost = (
            (tool_error(f"{call.tool}: the same call as result {same}: expected another"), None)
            if same
            else await _run_measured(ctx, call, offered)
        )
        newest = replace(_numbered_result(len(done) + 1, call, outcome, sources), cost=cost)
        done[:] = await _append_result(ctx, done, newest)
        if _is_section_full(ctx, done):
            break
    return "bound"


async def _run_measured(ctx: PhaseContext, call: ToolCall, offered: Sequence[Tool]) -> tuple[ToolOutcome, ToolCost]:
    """The outcome of a run, with its cost, which is added to the metrics."""
    meter = ToolMeter(ctx)
    outcome = await run_tool(ctx, call, offered)
    cost = meter.cost(outcome)
    if ctx.deps.metrics and call.tool in ctx.deps.tools:  # a label names no tool that a model made up
        count_cost(ctx.deps.metrics, call.tool, cost, is_ok=outcome.ok)
    return outcome, cost


def _is_section_full(ctx: PhaseContext, done: list[_ToolCallResult]) -> bool:
    """Whether section 4 has used its budget up and no compression shortens it."""
    is_final = ctx.deps.summarizer is None or bool(ctx.overflows)
    return is_final and ctx.deps.counter.count(_section4(done)) >= SECTION_BUDGETS[4]


async def _append_result(ctx: PhaseContext, done: Sequence[_ToolCallResult], newest: _ToolCallResult) -> list[_ToolCallResult]:
    """The results with the newest one whole; where section 4 is full, the older ones give way first (specification 000, section 26). An
    error stays."""
    summarizer = ctx.deps.summarizer
    if summarizer is None:
        return [*done, newest]
    fitted = replace(newest, body=ctx.record_compression(await summarizer.fit_newest_result(_result_content(newest), site=ctx.site)))
    older = [r for r in done if r.outcome.ok]
    count = ctx.deps.counter.count
    surrounding_tokens = (count(_section4(list(done))) if done else 0) - sum(count(r.body) for r in older)
    compressed = await summarizer.fit_older_results(
        [_result_content(r) for r in older], _result_markdown(fitted), surrounding_tokens=surrounding_tokens, site=ctx.site
    )
    bodies = {r.number: ctx.record_compression(s) for r, s in zip(older, compressed, strict=True)}
    return [*(replace(r, body=bodies.get(r.number, r.body)) for r in done), fitted]


def _result_content(result: _ToolCallResult) -> CompressionInput:
    """A result as it is reported: its call, status and sources are beside it and stay."""
    kept = tuple(f"[{s.label}]" for s in result.sources)
    return CompressionInput(result.body, "toolresults.md", ContentType.TOOL_RESULT, original=_relabel_sources(result), preserve=kept)


def _numbered_result(number: int, call: ToolCall, outcome: ToolOutcome, known: tuple[Source, ...]) -> _ToolCallResult:
    """Number the outcome's sources behind those known; one that is known keeps its label."""
    labels = {s.path: s.label for s in known}
    highest_label = max((int(s.label) for s in known), default=0)
    sources: list[Source] = []
    for source in outcome.sources:
        if source.path not in labels:
            highest_label += 1
            labels[source.path] = str(highest_label)
        sources.append(replace(source, label=labels[source.path]))
    is_new = outcome.ok and not {s.path for s in sources} <= {s.path for s in known}
    result = _ToolCallResult(number, call, outcome, tuple(sources), is_new=is_new)
    return replace(result, body=_relabel_sources(result))


def _known_sources(ctx: PhaseContext, done: list[_ToolCallResult]) -> tuple[Source, ...]:
    sources = {s.path: s for s in source_references(ctx.context_document.body(2))}
    for result in done:
        sources.update({s.path: s for s in result.sources})
    return tuple(sources.values())


def _section4(done: list[_ToolCallResult]) -> str:
    if not done:
        return NO_TOOLS
    parts = [_result_markdown(r) for r in done]
    sources = {s.path: s for r in done for s in r.sources}
    return "\n\n".join([*parts, reference_list(sources.values())] if sources else parts)


def _artifacts(result: _ToolCallResult) -> dict[str, str]:
    return artifact_files(result.number, result.call.tool, result.outcome.artifacts)


def _result_markdown(result: _ToolCallResult) -> str:
    cited = " ".join(f"[{s.label}]" for s in result.sources)
    status = "success" if result.outcome.ok else "error"
    head = f"### Result {result.number}: {result.call.tool}\n\n**Status:** {status} {cited}".rstrip()
    files = "".join(f"\n**File:** `{name}`" for name in _artifacts(result))
    return f"{head}\n**Arguments:** `{_arguments(result.call.arguments)}`{files}\n\n{result.body}"


def _arguments(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False).replace("`", "'")


def _relabel_sources(result: _ToolCallResult) -> str:
    """The tool's text with its own marks `[source 1]` turned into this turn's labels; none of its lines is a heading of section 4."""
    return escape_subheadings(label_source_marks(result.outcome.text or NOTHING_FOUND, [s.label for s in result.sources]))


def _raw_results(done: list[_ToolCallResult]) -> str:
    """`toolresults.md`: the raw bundles, whole (specification 000, section 6)."""
    parts = [
        f"## {r.number}. {r.call.tool}\n\n{code_fence(_arguments(r.call.arguments), 'json')}\n\n{code_fence(r.outcome.raw)}" for r in done
    ]
    return "# Tool results\n\n" + ("\n\n".join(parts) if parts else NO_TOOLS) + "\n"


def _evidence_verdict(done: list[_ToolCallResult]) -> GateVerdict:
    """What a tool found must lead to a source (specification 000, section 14); an empty result, or another error, needs none."""
    unsourced = [r.call.tool for r in done if not r.outcome.ok and NO_SOURCE in r.outcome.text]
    return GateVerdict("evidence_required", not unsourced, f"{NO_SOURCE} by {', '.join(unsourced)}" if unsourced else "")


async def run_tool(ctx: PhaseContext, call: ToolCall, offered: Sequence[Tool]) -> ToolOutcome:
    """Run the tool that `call` names, if it is offered and its arguments fit its schema.

    One that asks first runs again once the user approved what it would do. One that writes runs under a recipe of high risk once the user
    approved it, and one that needs a page which wants a person once the user decided about it; raises HaltError until then.
    """
    tool = next((t for t in offered if t.spec.name == call.tool), None)
    if tool is None:
        return _refusal(ctx, call, offered)
    spec = tool.spec
    if fault := argument_fault(spec, call):
        return tool_error(f"{call.tool}: {fault}")
    asks_first = spec.writes and not spec.asks_first and ctx.deps.recipes.get(COORDINATOR, ctx.mode).recipe.risk_level == "high"
    if asks_first and not is_approved(ctx, call, f"writes, and {ctx.results[-1].record.recipe} is a recipe of high risk"):
        return tool_error(f"{call.tool}: {_REFUSED}")
    cancelled = Event()
    report, pages = progress_callback(ctx.deps.listener, spec.name, cancelled), decided_pages(ctx.turn)
    run = ToolRun(call.arguments, ctx.turn.key, spec.deadline_s, cancelled, report, pages, recipe_asker(ctx, spec))
    try:
        outcome = await run_unlocked(ctx, tool, run)
        if outcome.to_approve:
            if not is_approved(ctx, call.model_copy(update={"arguments": outcome.to_approve}), "changes what is stored of the user"):
                return tool_error(f"{call.tool}: {_REFUSED}")
            outcome = await run_unlocked(ctx, tool, replace(run, cancelled=Event(), approved=outcome.to_approve))
    except (HaltError, TurnChangedError):  # a recipe that the tool calls halted, or there is no turn that could have the result
        raise
    except Exception as error:  # a tool is foreign code: its exceptions are results
        kind = "" if isinstance(error, PandoraError) else f"{type(error).__name__}: "
        return tool_error(f"{call.tool}: {kind}{error}")
    if outcome.person_at and outcome.person_at not in pages:
        raise page_halt(ctx, outcome.person_at)
    return _check_outcome(spec, outcome)


def _refusal(ctx: PhaseContext, call: ToolCall, offered: Sequence[Tool]) -> ToolOutcome:
    """Why a tool that is not offered cannot run: its permissions are not granted, or there is no such tool."""
    tool = ctx.deps.tools.get(call.tool)
    missing = sorted(tool.spec.permissions - ctx.deps.tool_permissions) if tool else []
    if missing:
        granted = ", ".join(sorted(ctx.deps.tool_permissions)) or "none"
        return tool_error(f"{call.tool}: refused: it needs the permission {', '.join(missing)}; granted are {granted}")
    return tool_error(f"{call.tool}: no such tool here; expected one of {', '.join(t.spec.name for t in offered) or 'none'}")


def _check_outcome(spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
    """The outcome, or an error where it is too large, or found something without a source to cite (decision 12,
    docs/decisions/12-halt-or-go-on.md)."""
    if outcome.size > spec.max_result_bytes:
        return tool_error(f"{spec.name}: the result has {outcome.size:,} bytes: expected at most {spec.max_result_bytes:,}")
    if not outcome.ok or outcome.sources or not outcome.text.strip():
        return outcome
    return replace(tool_error(f"{spec.name}: {NO_SOURCE}; the raw result is in toolresults.md"), raw=outcome.raw)
