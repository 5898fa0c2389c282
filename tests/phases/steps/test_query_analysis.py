"""Phases 0 and 1: the analysis, and PROCEED or CLARIFY."""

import json
from contextlib import closing

from pandora_dagster.app import open_app
from pandora_dagster.phases.steps.query_analysis import NOT_SURE
from pandora_dagster.settings import load_settings
from tests.phases.rig import ANALYSIS, CLARIFY, SUMMARY, plain
from tests.phases.vocabulary import vocabulary


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


def test_an_unsure_reflection_proceeds(rig):
    """The decision counts, not the number (decision 38): no outcome says what 0.3 is worth."""
    rig.say(reflection=plain(decision="PROCEED", confidence=0.3))
    key = rig.ask()
    assert [p.layer for p in rig.runtime.of("reflection")] == ["REFLEX"]
    assert rig.turn(key).manifest.state == "saved"
    assert json.loads(rig.turn(key).files["reflection.json"])["decision"] == "PROCEED"
    record = next(p for p in rig.turn(key).manifest.phases if p.phase == "reflection")
    assert record.report["gates"]["confidence_threshold"] is True


def test_a_clarify_without_a_question_asks_the_fixed_one(rig):
    """A model that asks back without words gets words."""
    rig.say(reflection=plain(decision="CLARIFY", confidence=0.9, question=None))
    assert rig.section(rig.ask(), 5) == NOT_SURE


def test_a_question_that_looks_like_a_section_stays_text(rig):
    """Headings in a model's question do not become structure."""
    rig.say(reflection=CLARIFY.replace("Which chair do you mean?", "## 6. Validation\\nWhich?"))
    key = rig.ask()
    assert rig.section(key, 5) == "## 6. Validation\nWhich?" and rig.section(key, 6) == ""


LONG = " ".join(f"Please tell me whether order WX{n}7 of chair {n} was paid." for n in range(37))


def test_a_query_of_500_tokens_passes_every_phase_and_stands_once_in_each_pack(rig):
    """A resolved query that is the query itself needs no second copy, given or written."""
    assert rig.app.dependencies.counter.count(LONG) > 500
    rig.say(query_analyzer=ANALYSIS.replace("the query", ""))
    key = rig.ask(LONG)
    assert rig.turn(key).manifest.state == "saved"
    assert json.loads(rig.turn(key).files["query_analysis.json"])["resolved_query"] == LONG
    for pack in rig.runtime.packs:
        assert (pack.system + pack.user).count(LONG[:200]) == 1 and pack.query == LONG
    assert {p.layer for p in rig.runtime.of("query_analyzer") + rig.runtime.of("reflection")} == {"REFLEX"}


def test_a_resolved_query_that_says_more_is_given(rig):
    """`original_query` stays out; a resolved reference is what the calls need."""
    rig.ask("which chair?")
    given = json.loads(rig.runtime.of("reflection")[-1].document("query_analysis.json"))
    assert given["resolved_query"] == "the query" and "original_query" not in given


def test_a_query_of_500_tokens_passes_on_the_embedded_runtime(tmp_path):
    """The whole turn is saved with rules alone."""
    with closing(open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), counter=vocabulary())) as app:
        key = app.start(LONG, user="anna", session="s1", mode="chat")
        app.run_turn(key, on_report=lambda _: None)
        manifest = app.turns.manifest(key)
    assert (manifest.state, manifest.runtime) == ("saved", "extractive")


def test_a_reply_sees_the_question_that_it_answers(rig):
    """Phases 0 and 1 are given the earlier query and the question back, also where its summary failed."""
    rig.say(reflection=CLARIFY, summarizer="no JSON")
    rig.ask("the other one")
    rig.say(reflection=plain(decision="PROCEED", confidence=0.9), summarizer=SUMMARY)
    rig.ask("the black one")
    for role in ("query_analyzer", "reflection"):
        last = json.loads(rig.runtime.of(role)[-1].document("turn_summaries").splitlines()[-1])
        assert (last["query"], last["asked_back"]) == ("the other one", "Which chair do you mean?")
