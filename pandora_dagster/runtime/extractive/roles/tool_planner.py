"""Roles `planner`, `executor`, `coordinator`: whether a tool is needed, which task is next, and the call itself.

Only the user's words, the task list and the registered tools decide; no document that was retrieved chooses a tool.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import ExecutorStep, PlannedTask, TaskPlan, ToolCall
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.citations import source_references
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.asked_facts import is_asked_known
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.header_lines import as_mapping, json_object
from pandora_dagster.runtime.extractive.evidence.passage_ranking import Vocabulary
from pandora_dagster.runtime.extractive.evidence.questions import read_question
from pandora_dagster.runtime.extractive.evidence.section_reader import SectionReader
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage
from pandora_dagster.runtime.extractive.evidence.tool_results import read_results
from pandora_dagster.runtime.extractive.output_budget import Draft, render_draft
from pandora_dagster.runtime.extractive.queries.content_words import content_words
from pandora_dagster.runtime.extractive.queries.query_intent import (
    asks_advice,
    asks_past,
    asks_preference,
    asks_present,
    is_greeting,
    is_question,
    speaks_of_self,
    states_preference,
)
from pandora_dagster.runtime.extractive.queries.query_pronouns import find_pointer
from pandora_dagster.runtime.extractive.queries.user_statements import acknowledge, retracted_stems
from pandora_dagster.runtime.extractive.roles.tool_arguments import RESEARCH, OfferedTool, fill_arguments, read_tools, split_statements

_TASK_LINE = re.compile(r"^[^\S\n]*\d{1,3}[.)]\s+(.+(?:\n(?![^\S\n]*\d{1,3}[.)]\s|\n|#).+)*)", re.MULTILINE)
_CALL = re.compile(r"\(`([\w.]+)` (?=\{)")
_DOTTED_NAME = re.compile(r"\b[a-z_]+\.[a-z_]+\b")
_MIN_EVIDENCE_SHARE = 0.5
"""Passages that hold this share of the question's weight answers it."""
_MAX_FAILURES = 2
_MAX_PAGES = 5
_VISIT_PATH = re.compile(r"webpage_cache/(visit_[a-z0-9_-]+)\.json")
_MAX_COMMAND_CHARACTERS = 500


def plan(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 000, section 16.2: a tool where one can get what section 2 lacks, else synthesis."""
    query, tools = pack.query, read_tools(pack.document("tools"))
    if not is_greeting(query):
        for tool_name, reason, task in _useful_tools(query, pack, tools):
            tool = tools.get(tool_name)
            for parts in dict.fromkeys((split_statements(query) if tool and tool.writes else (query.strip(),), (query.strip(),))):
                further = {"visits": list(visits)} if tool_name == RESEARCH and (visits := _pages_to_verify(query, pack)) else {}
                filled_arguments = [fill_arguments(tool, part, most=pack.max_output_tokens) | further for part in parts] if tool else []
                if tool and all(map(tool.accepts, filled_arguments)):
                    planned = [_plan_task(tool, TEMPLATES[task], *pair) for pair in zip(parts, filled_arguments, strict=True)]
                    return _fit_plan(pack, counter, planned, reason)
    is_asked = not (is_greeting(query) or acknowledge(query))
    reason = "nothing_asked" if not is_asked else "enough" if _is_answered(query, pack) else "no_tool"
    return TaskPlan(next_step="synthesis", confidence=0.7 if reason == "no_tool" else 0.9, reasoning=TEMPLATES[reason])


def _plan_task(tool: OfferedTool, name: str, said: str, filled: Mapping[str, Any]) -> PlannedTask:
    return PlannedTask(description=f"{name} {said}", tool=tool.name, arguments=filled)


def _fit_plan(pack: PromptPack, counter: TokenMeasure, planned: Sequence[PlannedTask], reason: str) -> TaskPlan:
    """The plan; a query too long to be repeated in the tasks' descriptions is in their arguments alone, or not at all."""
    short_tasks = [task.model_copy(update={"description": task.tool or ""}) for task in planned]
    for shown_tasks in (planned, short_tasks, [short_tasks[0].model_copy(update={"arguments": {}})]):
        candidate = TaskPlan(next_step="coordinator", confidence=0.9, tasks=tuple(shown_tasks), reasoning=TEMPLATES[reason])
        if counter.count(render_draft(candidate)) <= pack.max_output_tokens:
            return candidate
    return TaskPlan(next_step="synthesis", confidence=0.7, reasoning=TEMPLATES["no_tool"])


def _useful_tools(query: str, pack: PromptPack, tools: Mapping[str, OfferedTool]) -> list[tuple[str, str, str]]:
    """Tool, reason and task wording that the query calls for, best first."""
    if retracted_stems(query):
        return [("memory.forget", "retraction", "forget_task")]
    if states_preference(query):
        return [("memory.create", "statement", "create_task")]
    if RESEARCH in tools and _asks_of_the_world(query) and _lacks_fresh_evidence(query, pack):
        return [(RESEARCH, "not_fresh", "research_task")]
    if acknowledge(query) or _evidence_share(query, pack) >= _MIN_EVIDENCE_SHARE:
        return []
    memory = [("memory.query", "missing", "query_task")] if asks_preference(query) else []
    searching = [("doc.search", "missing", "search_task")] if content_words(query) else []
    return memory + searching


def _asks_of_the_world(query: str) -> bool:
    """Whether a query asks for something that is no matter of the user's own."""
    return is_question(query) and not (asks_past(query) or speaks_of_self(query) or acknowledge(query)) and bool(content_words(query))


def _lacks_fresh_evidence(query: str, pack: PromptPack) -> bool:
    """Whether section 2 does not answer, answers from research that has expired, or shows pages whose present state the query asks for."""
    metas = subsection_metas(ContextDocument.parse(pack.document("context.md")).body(2))
    is_stale = bool(as_mapping(metas.get("Cached Research Intelligence")).get("stale"))
    return is_stale or bool(_pages_to_verify(query, pack)) or not _is_answered(query, pack)


def _pages_to_verify(query: str, pack: PromptPack) -> tuple[str, ...]:
    """The ids of the visits in section 2, where the query points at them and asks how things are now (specification 004, section 6.1)."""
    if not (find_pointer(query) and asks_present(query)):
        return ()
    sources = source_references(ContextDocument.parse(pack.document("context.md")).body(2))
    return tuple(found[1] for source in sources if (found := _VISIT_PATH.fullmatch(source.path)))[:_MAX_PAGES]


def _is_answered(query: str, pack: PromptPack) -> bool:
    """Whether section 2 holds enough of the query's words, and what it asks of a thing: the name alone is half of a short query."""
    if _evidence_share(query, pack) < _MIN_EVIDENCE_SHARE:
        return False
    return _takes_all(query) or is_asked_known(_gathered(query, pack), query)


def _evidence_share(query: str, pack: PromptPack) -> float:
    """The share of what the query asks that section 2 holds: 0 to 1; of one that takes all of it, all where anything was gathered."""
    passages = _gathered(query, pack)
    vocabulary = Vocabulary(passages, read_question(query).keys())
    return 1.0 if passages and _takes_all(query) else vocabulary.held(frozenset(vocabulary.counts))


def _takes_all(query: str) -> bool:
    """Whether a query points at something shown or asks for advice: all that was gathered is for it."""
    return bool(find_pointer(query)) or asks_advice(query)


def _gathered(query: str, pack: PromptPack) -> list[Passage]:
    body = ContextDocument.parse(pack.document("context.md")).body(2)
    return SectionReader(Labels((*pack.sources, *source_references(body))), read_question(query)).gathered(body)


@dataclass(frozen=True, slots=True)
class Task:
    """A line of section 3's numbered list; `tool` is the dotted name in it, `given` the JSON arguments it shows."""

    text: str
    tool: str | None
    given: Mapping[str, Any]


def read_tasks(section: str) -> list[Task]:
    """The tasks of section 3, in order."""
    return list(map(_read_task, _TASK_LINE.findall(section)))


def _read_task(text: str) -> Task:
    """Written as `description (`tool` {arguments})`; else the first dotted name in the line."""
    line = " ".join(text.split())
    if line.endswith("})") and (call := _CALL.search(line)):
        return Task(line, call[1], json_object(line[call.end() : -1]))
    return Task(line, next(iter(_DOTTED_NAME.findall(line)), None), {})


def step(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The executor: the first task without a result becomes the command; done when none is left."""
    context = ContextDocument.parse(pack.document("context.md"))
    tools = read_tools(pack.document("tools"))
    outcomes = read_results(context.body(4))
    done, failed = [r.tool for r in outcomes if r.ok], [r.tool for r in outcomes if not r.ok]
    for task in read_tasks(context.body(3)):
        if task.tool in done:
            done.remove(task.tool)
        elif task.tool:
            return _next_step(task, task.tool, tools, failed, pack, counter)
    return ExecutorStep(action="COMPLETE", reasoning=TEMPLATES["all_done"])


def _next_step(
    task: Task, tool: str, tools: Mapping[str, OfferedTool], failed: list[str], pack: PromptPack, counter: TokenMeasure
) -> ExecutorStep:
    if tool not in tools:
        return ExecutorStep(action="BLOCKED", reasoning=f"{TEMPLATES['not_registered']} {tool}")
    if failed.count(tool) >= _MAX_FAILURES:
        return ExecutorStep(action="BLOCKED", reasoning=f"{TEMPLATES['failed_twice']} {tool}")
    command = ExecutorStep(action="COMMAND", command=task.text, reasoning=TEMPLATES["next_task"])
    fits = len(task.text) <= _MAX_COMMAND_CHARACTERS and counter.count(render_draft(command)) <= pack.max_output_tokens
    return command if fits else command.model_copy(update={"command": tool})


def coordinate(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """The Coordinator: the tool that the command or its task names, with arguments that hold against its schema."""
    context = ContextDocument.parse(pack.document("context.md"))
    tools = read_tools(pack.document("tools"))
    command_text = " ".join(pack.document("command").split())
    named_task = _read_task(command_text)
    listed_task = next(
        (t for t in read_tasks(context.body(3)) if command_text and (command_text in t.text or command_text == t.tool)), named_task
    )
    tool = tools.get(named_task.tool or listed_task.tool or "")
    if not tool:
        raise ModelRejectedError(
            "coordinator: the tools document: expected a registered tool that the command names",
            hint="register the tool that the task names, or configure the sglang runtime",
        )
    shown_arguments = next((g for g in (named_task.given, listed_task.given) if g and tool.accepts(g)), None)
    return ToolCall(
        tool=tool.name,
        arguments=shown_arguments or fill_arguments(tool, pack.query, most=pack.max_output_tokens),
        reasoning=TEMPLATES["tool_choice"],
    )
