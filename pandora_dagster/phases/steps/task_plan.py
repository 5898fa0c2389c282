"""Phase 3: the Planner reads sections 0 to 2 and decides the next step (specifications 000, section 16.2, and 004, section 8)."""

from collections.abc import Iterable
from typing import Any

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.phase_outputs import TaskPlan
from pandora_dagster.contracts.ports.tool import Tool
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, json_line, parsed_answer

PLANNER = "pipeline/phase3_planner"
_GATHER_AGAIN_HINT = "ask again: section 2 is then gathered again; this turn's own stays readable (`pandora show TURN --section 2`)"
RESEARCH_TITLE, ASSESSMENT_TITLE = "Cached Research Intelligence", "Context Assessment"
"""Titles of subsections of section 2."""


async def task_plan(ctx: PhaseContext) -> PhaseOutput:
    """Section 3 and `ticket.md`: the next step and the tasks."""
    planning_values = section2_meta(ctx.context_document.body(2))
    result = await ctx.ask(PLANNER, [tools_document(offered_tools(ctx, PLANNER))])
    plan = parsed_answer(result, TaskPlan)
    body = render_plan(plan)
    ticket = f"# Ticket {ctx.turn.key.turn_id}\n\n{body}\n"
    return PhaseOutput(
        sections={3: body},
        files={"task_plan.json": as_json(plan), "ticket.md": ticket},
        facts={"next_step": plan.next_step, "tasks": len(plan.tasks), **planning_values},
    )


def section2_meta(section2: str) -> dict[str, Any]:
    """Section 2's `_meta` blocks for the Planner (specification 004, section 5.3): quality and age of cached research, gaps,
    quality of the section.

    The Planner reads these blocks in its section 2; they are parsed before its call, so that it never plans on data
    that cannot be parsed: raises DocumentError.
    """
    try:
        blocks = subsection_metas(section2)
    except DocumentError as error:
        raise DocumentError(f"context.md: section 2: {error}", hint=_GATHER_AGAIN_HINT) from error
    research_meta, assessment = blocks.get(RESEARCH_TITLE, {}), blocks.get(ASSESSMENT_TITLE, {})
    planning_values = {name: research_meta.get(name) for name in ("quality_score", "age_hours")}
    planning_values |= {name: assessment.get(name) for name in ("context_quality", "gaps_identified", "recommendations")}
    return {name: value for name, value in planning_values.items() if value not in (None, [])}


def offered_tools(ctx: PhaseContext, stem: str) -> tuple[Tool, ...]:
    """The tools of the recipe and of the settings that exist and whose permissions are granted: decision 23
    (docs/decisions/23-tools-that-do-not-exist.md)."""
    listed = ctx.deps.recipes.get(stem, ctx.mode).recipe.tools_available
    names = (*listed, *(name for name in ctx.deps.named_tools if name not in listed)) if listed else ()
    existing = (ctx.deps.tools[name] for name in names if name in ctx.deps.tools)
    return tuple(tool for tool in existing if tool.spec.permissions <= ctx.deps.tool_permissions)


def tools_document(tools: Iterable[Tool]) -> InputDocument:
    """The document `tools`: one JSON line per tool."""
    specs = [tool.spec for tool in tools]
    lines = [json_line({"name": s.name, "description": s.description, "parameters": dict(s.parameters), "writes": s.writes}) for s in specs]
    return InputDocument("tools", "\n".join(lines))


def render_plan(plan: TaskPlan) -> str:
    """Section 3 as users and later phases read it."""
    lines = [f"**Next step:** {plan.next_step}", f"**Confidence:** {plan.confidence:.2f}"]
    if plan.reasoning:
        lines.append(f"**Reasoning:** {plan.reasoning}")
    if plan.question:
        lines.append(f"**Question:** {plan.question}")
    tasks = [
        f"{n}. {' '.join(t.description.split())}" + (f" (`{t.tool}` {json_line(t.arguments)})" if t.tool else "")
        for n, t in enumerate(plan.tasks, 1)
    ]
    return "\n".join(lines) + ("\n\n" + "\n".join(tasks) if tasks else "")
