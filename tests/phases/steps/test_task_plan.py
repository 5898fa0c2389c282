"""Phase 3: the plan as users read it, and the tools that the Planner sees."""

import json
from dataclasses import replace

from pandora_dagster.phases.gather import context_gatherer
from tests.phases.rig import plain, plan


def test_section_3_says_step_reason_and_tasks(rig):
    """The next step, the reasoning and a numbered list; ticket.md holds the same."""
    tasks = [{"description": "Look\nit up", "tool": "doc.search", "arguments": {"query": "ü"}}, {"description": "Answer"}]
    rig.say(planner=plain(next_step="synthesis", confidence=0.8, tasks=tasks))
    key = rig.ask()
    body = rig.section(key, 3)
    assert body.startswith("**Next step:** synthesis\n**Confidence:** 0.80\n**Reasoning:** so\n")
    assert body.endswith('1. Look it up (`doc.search` {"query": "ü"})\n2. Answer')
    assert rig.turn(key).files["ticket.md"] == f"# Ticket {key.turn_id}\n\n{body}\n"


def test_the_planner_sees_the_tools_that_exist_only(rig):
    """A recipe may name `internet.research`; what is not registered is not offered (DECISIONS 23)."""
    rig.ask()
    tools = [json.loads(line)["name"] for line in rig.runtime.of("planner")[-1].document("tools").splitlines()]
    assert set(tools) == {"doc.search", "memory.query", "memory.create", "memory.forget"}


def test_straight_to_synthesis_needs_no_tools(rig):
    """Section 4 and toolresults.md say that no tools were needed; no tool step was asked."""
    rig.say(planner=plan("synthesis"))
    key = rig.ask()
    assert rig.section(key, 4) == "No tools were needed." and "No tools were needed." in rig.turn(key).files["toolresults.md"]
    assert "executor" not in rig.runtime.calls()


def test_a_section_2_that_does_not_read_back_halts_before_any_plan(rig, monkeypatch):
    """004 section 5.3: the Planner's data are parsed first; what is no YAML is a corrupt document, and no call is made over it."""
    made = context_gatherer.fit_section2

    def broken(*arguments, **options):
        section = made(*arguments, **options)
        return replace(section, text=section.text.replace("type: assessment", "type: [assessment"))

    monkeypatch.setattr(context_gatherer, "fit_section2", broken)
    intervention = rig.halted(rig.ask())
    assert (intervention.type, intervention.phase) == ("corrupt_document", "task_plan") and rig.runtime.calls()["planner"] == 0
    assert intervention.message.startswith("context.md: section 2: _meta block:3: not YAML") and "ask again" in intervention.hint
