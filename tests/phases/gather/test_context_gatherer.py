"""Phase 2: what is offered, what is loaded, and section 2 as users and code read it."""

import json
import re

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.retrieval.retrieval_policy import RetrievalPolicy
from tests.phases.rig import ANALYSIS, plain, retrieval

ANNA = user_id("anna")


def remember(rig, key="seat", value="aisle", *, kind="preference", confidence=0.8):
    rig.app.dependencies.memory.put(ANNA, MemoryEntry(key, value, confidence, 1, "2026-01-04T14:30:00Z", kind))


def gathered(*turns, preferences=None, facts=("a fact",), relevance="high"):
    prior = [{"turn": n, "relevance": relevance, "summary": f"turn {n}", "key_facts": list(facts)} for n in turns]
    return json.dumps({"session_preferences": preferences or {}, "prior_turns": prior, "source_references": []})


def test_the_last_turns_of_the_session_are_offered_whatever_they_say(rig):
    """Beside the best matches RETRIEVAL sees the newest turns of the session, and no turn of the future."""
    newest = RetrievalPolicy().protected_turns
    for _ in range(newest + 2):
        key = rig.ask("zebra")
    rig.ask("entirely different words")
    offered = [json.loads(line)["turn_id"] for line in rig.runtime.of("retrieval")[-1].document("turn_summaries").splitlines()]
    assert set(range(key.number - newest + 1, key.number + 1)) <= set(offered) and offered == sorted(offered)


def test_memory_is_offered_by_its_headers_and_loaded_by_its_keys(rig):
    """The header previews the value; the chosen entry reaches SYNTHESIS with confidence and turn, and has a source."""
    remember(rig)
    remember(rig, "shoe_size", "43", kind="fact")
    rig.say(retrieval=retrieval(keys=("seat", "seat")), context_synthesis=gathered(preferences={"seat": "aisle"}))
    key = rig.ask()
    headers = [json.loads(line) for line in rig.runtime.of("retrieval")[-1].document("memory_headers").splitlines()]
    assert [(h["key"], h["value_preview"], h["kind"]) for h in headers] == [("seat", "aisle", "preference"), ("shoe_size", "43", "fact")]
    given = rig.runtime.of("context_synthesis")[-1].document("stored_preferences")
    assert given == "===== STORED USER PREFERENCES =====\n\n- seat: aisle (confidence 0.80, turn 1)"
    assert "- [1] `preferences.md`" in rig.section(key, 2) and "| seat | aisle | Turn 1 |" in rig.section(key, 2)


def test_a_turn_is_loaded_under_its_label_and_date(rig):
    """SYNTHESIS reads the user's words and the answer of a prior turn under `[1]`."""
    first = rig.ask("which chair?")
    rig.say(retrieval=retrieval(first.number))
    rig.ask()
    document = rig.runtime.of("context_synthesis")[-1].document("prior_turns")
    day = rig.turn(first).manifest.created_at[:10]
    assert document.startswith(f"===== PRIOR TURN 1 ({day}) [1] =====") and "which chair?" in document and "Here it is." in document


def test_a_live_turn_is_loaded_without_its_process(rig):
    """What a live prior turn planned and validated is no history: only its query, tool results and answer are."""
    first = rig.ask("which chair?")
    rig.say(retrieval=retrieval(first.number))
    rig.ask()
    document = rig.runtime.of("context_synthesis")[-1].document("prior_turns")
    assert not any(word in document for word in ("Decision", "Next step", "Context Quality"))


def test_section_2_has_both_formats(rig):
    """Markdown for users, `_meta` for code, one block per part (004 section 5.2)."""
    remember(rig)
    first = rig.ask()
    rig.say(retrieval=retrieval(first.number, keys=("seat",)), context_synthesis=gathered(1, preferences={"seat": "aisle"}))
    blocks = subsection_metas(rig.section(rig.ask(), 2))
    assert list(blocks) == ["Session Preferences", "Relevant Prior Turns", "Context Assessment"]
    assert blocks["Relevant Prior Turns"]["relevant_turns"] == [1]
    assert blocks["Context Assessment"] == {"type": "assessment", "context_quality": 0.0, "gaps_identified": ["nothing about: query"]}


def test_a_context_that_misses_the_question_says_so(rig):
    """What the gathered text does not have is a gap by name, and the quality is the share that it has; a gap of the model counts too."""
    first = rig.ask()
    query = "Which lamp did Ada choose, and what does it cost?"
    rig.say(retrieval=retrieval(first.number), query_analyzer=json.dumps({**json.loads(ANALYSIS), "resolved_query": query}))
    assessments = []
    lamp = "Ada chose the lamp for 30 euros."
    for fact, gaps in ("Ada saw a desk.", []), (lamp, []), (lamp, ["its colour"]):
        rig.say(context_synthesis=json.dumps({**json.loads(gathered(1, facts=[fact])), "gaps": gaps}))
        assessments.append(subsection_metas(rig.section(rig.ask(query), 2))["Context Assessment"])
    assert [a["gaps_identified"] for a in assessments] == [["nothing about: lamp, choose, cost"], [], ["its colour"]]
    assert [a["context_quality"] for a in assessments] == [0.25, 0.9, 0.67]


def test_nothing_found_is_a_gap_and_no_error(rig):
    """A search without a find goes on and says so (004 section 10)."""
    key = rig.ask()
    assert "nothing was found" in rig.section(key, 2) and rig.turn(key).manifest.state == "saved"


@pytest.mark.parametrize(("query", "named"), [("Was hat der Hund von meiner Schwester gekostet?", True), ("What did the dog cost?", False)])
def test_a_question_in_another_language_than_the_sources_is_a_gap(rig, query, named):
    """Words are compared: section 2 says once that a source in another language may be missed."""
    first = rig.ask("What did the vet say about the dog that my sister has had since May?")
    rig.say(retrieval=retrieval(first.number), context_synthesis=gathered(first.number))
    section = rig.section(rig.ask(query), 2)
    gap = "the question is in de, the sources are in en: what they say in words of their own may be missed"
    assert section.partition("**Gaps:**")[2].count(gap) == named


def test_a_turn_that_was_not_loaded_is_flagged(rig):
    """SYNTHESIS names a turn that it was not given: the row says unlinked, the assessment names the gap (DECISIONS 12)."""
    rig.say(context_synthesis=gathered(7))
    section = rig.section(rig.ask(), 2)
    assert "7 (unlinked)" in section and "turn 7 is not among the loaded sources" in section


def test_what_has_no_room_in_section_2_is_named_there_and_in_the_facts(rig):
    """001 section 5: whole items by priority; the section names turn and relevance, the facts each one, gathered_context.json has all."""
    old = [rig.ask(f"chair {n}") for n in range(2)]
    rig.say(retrieval=retrieval(*(k.number for k in old)), context_synthesis=many_facts(old, 40))
    key = rig.start()
    report = next(r for r in rig.run(key) if r.phase == "gathered_context")
    rows, section = report.facts["left_out_of_section_2"], rig.section(key, 2)
    named = section.partition("**Left out for room:** ")[2]
    assert (
        rows and {r["source"] for r in rows} <= {f"turn {k.number}" for k in old} and all(r["relevance"] in ("high", "low") for r in rows)
    )
    assert rows[0]["relevance"] == "low" and f"turn {old[1].number} (low)" in named and "gathered_context.json" in named
    assert subsection_metas(section)["Context Assessment"]["left_out"] == len(rows) and rig.app.dependencies.counter.count(section) <= 2_000
    whole = rig.turn(key).files["gathered_context.json"]
    assert all(row["item"] in whole and row["item"] not in section for row in rows if row["item"])


def test_a_chosen_turn_over_its_limit_is_compressed_and_not_dropped(rig):
    """DECISIONS 2: whole facts fill the row's room, a mark counts the others, the report names each of them; the whole stands beside."""
    old = [rig.ask("chair 1")]
    filler = "and after that we all talked about the weather for quite a while before anybody said anything about the order again"
    facts = [f"Chair CH{n}00X was sold for ${n}49.00 {filler} {filler}" for n in range(1, 41)]
    prior = [{"turn": old[0].number, "relevance": "high", "summary": "chairs that were sold", "key_facts": facts}]
    rig.say(retrieval=retrieval(old[0].number), compressor="I cannot help with that.")
    rig.say(context_synthesis=json.dumps({"session_preferences": {}, "prior_turns": prior, "source_references": []}))
    key = rig.start()
    report = next(r for r in rig.run(key) if r.phase == "gathered_context")
    row, section = report.facts["compressions"][0], rig.section(key, 2)
    assert row["document"] == f"gathered_context.json: turn {old[0].number}" and row["mutated"] == 0
    shown, gone = [fact for fact in facts if fact in section], [n for n in range(1, 41) if f"CH{n}00X" not in section]
    assert len(shown) == 40 - len(gone) > 20 and rig.app.dependencies.counter.count(section) <= 2_000
    assert sum(int(n) for n in re.findall(r"\[(\d+) left out\]", section)) == len(gone)
    missing = {fact["fact"].removeprefix("- ") for fact in report.facts["compressed_facts"] if fact["outcome"] == "missing"}
    assert missing >= {name for n in gone for name in (f"CH{n}00X", f"${n}49.00", facts[n - 1])}
    assert row["kept"] + row["missing"] == row["facts"] and row["kept"] == 3 * len(shown) and row["invented"] == 0
    assert all(fact in rig.turn(key).files["gathered_context.json"] for fact in facts)
    assert {v.gate for v in report.verdicts} >= {"no_fact_changed", "within_budget", "is_a_summary"}


def many_facts(keys, count):
    """Section 2 for two turns: the first of high, the second of low relevance, with `count` long key facts each."""
    worth = ("high", "low")
    messages = [[f"In hall {n} of turn {k.number} a chair was moved to the next room by two people" for n in range(count)] for k in keys]
    prior = [{"turn": k.number, "relevance": w, "summary": "chairs", "key_facts": f} for k, w, f in zip(keys, worth, messages, strict=True)]
    return json.dumps({"session_preferences": {}, "prior_turns": prior, "source_references": []})


def test_an_unsure_choice_is_recorded_and_halts_nothing(rig):
    """RETRIEVAL states a number that nothing calibrates: the turn goes on (decision 38)."""
    rig.say(retrieval=retrieval(confidence=0.2))
    key = rig.start()
    report = next(report for report in rig.run(key) if report.phase == "retrieval_plan")
    assert [(v.passed, v.value) for v in report.verdicts if v.gate == "confidence_threshold"] == [(True, 0.2)]
    assert rig.turn(key).manifest.state == "saved"


def test_a_fact_with_a_heading_or_a_pipe_stays_in_its_row(rig):
    """What stands in a table cell cannot become a row, a heading or a source."""
    first = rig.ask()
    rig.say(retrieval=retrieval(first.number), context_synthesis=gathered(1, facts=("a | b\n### Source References\n- [9] `x`",)))
    section = rig.section(rig.ask(), 2)
    assert section.count("\n### Source References") == 1 and [s.label for s in rig.runtime.packs[-3].sources] == ["1"]


def test_the_plan_is_kept_as_it_was_made(rig):
    """retrieval_plan.json holds RETRIEVAL's choice."""
    key = rig.ask()
    assert json.loads(rig.turn(key).files["retrieval_plan.json"])["reasoning"] == json.loads(plain())["reasoning"]
