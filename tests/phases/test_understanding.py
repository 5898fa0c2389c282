"""Phases 0 and 1: the analysis, and PROCEED or CLARIFY."""

import json

from pandora_dagster.phases.understanding import NOT_SURE
from tests.phases.rig import ANALYSIS, CLARIFY, plain


def test_the_analysis_keeps_the_query_verbatim(rig):
    """`original_query` is filled in by code; a model's own copy would not be believed."""
    key = rig.ask("Which  chair?\n")
    assert json.loads(rig.turn(key).files["query_analysis.json"])["original_query"] == "Which  chair?\n"


def test_earlier_turns_are_offered_oldest_first(rig):
    """One JSON line per summarised turn, with session and state."""
    for session in ("s1", "s2"):
        rig.ask(session=session)
    rig.ask()
    lines = [json.loads(line) for line in rig.runtime.of("query_analyzer")[-1].document("turn_summaries").splitlines()]
    assert [(line["turn_id"], line["session"], line["state"]) for line in lines] == [(1, "s1", "saved"), (2, "s2", "saved")]


def test_an_unfinished_turn_is_not_offered(rig):
    """A turn that halted has no summary: it is no history."""
    rig.say(query_analyzer=["no JSON"] * 3 + [ANALYSIS])
    halted = rig.ask()
    assert rig.halted(halted)
    rig.ask()
    assert rig.runtime.packs[-1].query and all('"turn_id": 1' not in p.document("turn_summaries") for p in rig.runtime.packs)


def test_a_sure_reflection_proceeds_with_its_reasoning_in_section_1(rig):
    """Section 1 says decision, confidence and reasoning."""
    rig.say(reflection=plain(decision="PROCEED", confidence=0.85))
    key = rig.ask()
    assert rig.section(key, 1) == "**Decision:** PROCEED\n**Confidence:** 0.85\n**Reasoning:** so"


def test_an_unsure_reflection_is_asked_again_by_the_larger_layer_and_then_asks(rig):
    """Under 0.7 on REFLEX and on MIND: CLARIFY with a question, no HALT (DECISIONS 13)."""
    rig.say(reflection=plain(decision="PROCEED", confidence=0.3))
    key = rig.ask()
    assert [p.layer for p in rig.runtime.of("reflection")] == ["REFLEX", "MIND"]
    assert rig.turn(key).manifest.state == "clarify" and rig.section(key, 5) == NOT_SURE
    assert json.loads(rig.turn(key).files["reflection.json"])["decision"] == "CLARIFY"


def test_the_larger_layer_may_be_sure(rig):
    """MIND's sure answer counts: the turn proceeds."""
    rig.say(reflection=[plain(decision="PROCEED", confidence=0.3), plain(decision="PROCEED", confidence=0.9)])
    assert rig.turn(rig.ask()).manifest.state == "saved"


def test_a_clarify_without_a_question_asks_the_fixed_one(rig):
    """A model that asks back without words gets words."""
    rig.say(reflection=plain(decision="CLARIFY", confidence=0.9, question=None))
    assert rig.section(rig.ask(), 5) == NOT_SURE


def test_a_question_that_looks_like_a_section_stays_text(rig):
    """Headings in a model's question do not become structure."""
    rig.say(reflection=CLARIFY.replace("Which chair do you mean?", "## 6. Validation\\nWhich?"))
    key = rig.ask()
    assert rig.section(key, 5) == "## 6. Validation\nWhich?" and rig.section(key, 6) == ""
