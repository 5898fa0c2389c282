"""Whether sources say what an answer says, judged by a model pair by pair."""

import json

from tests.phases.rig import APPROVE, Rig, retrieval

FACT = "Ordered: the desk Lofta 140, order ORD-77120, for the office of Ada."
QUERY = "Which desk did Ada order?"


def gathered(turn: int) -> str:
    prior = [{"turn": turn, "relevance": "high", "summary": FACT, "key_facts": []}]
    return json.dumps({"session_preferences": {}, "prior_turns": prior, "source_references": []})


def meaning(*verdicts: str) -> str:
    entries = [{"number": n, "reason": "who paid, is not said", "verdict": v} for n, v in enumerate(verdicts, 1)]
    return json.dumps({"verdicts": entries})


def ask(rig: Rig, *answers: str, judged: list[str]):
    """A turn whose section 2 quotes FACT under [1]."""
    first = rig.ask()
    rig.say(retrieval=retrieval(first.number), context_synthesis=gathered(first.number), synthesizer=list(answers), validator=APPROVE)
    rig.say(meaning_checker=judged)
    return rig.ask(QUERY)


def test_a_statement_that_a_model_finds_unsupported_is_a_revision(rig: Rig) -> None:
    """The model sees the statement beside its passage; the issue names both and reaches the next writing."""
    key = ask(rig, "Ada paid for the ordered desk Lofta 140 [1].", f"{FACT} [1]", judged=[meaning("changed")])
    rounds = json.loads(rig.turn(key).files["validation.json"])["rounds"]
    assert [r["decision"] for r in rounds] == ["REVISE", "APPROVE"]
    assert "who paid, is not said; [1] says:" in rounds[0]["issues"][0] and FACT in rounds[0]["issues"][0]
    (pack,) = rig.runtime.of("meaning_checker")  # the second answer is verbatim
    assert FACT in pack.document("pairs") and "statement: Ada paid for the ordered desk Lofta 140." in pack.document("pairs")
    assert "who paid" in rig.runtime.of("synthesizer")[-1].user and pack.query == ""


def test_an_undecided_statement_is_kept(rig: Rig) -> None:
    """`unclear` and `same` revise nothing."""
    key = ask(rig, "Ada ordered the desk Lofta 140 [1].", judged=[meaning("unclear")])
    assert rig.turn(key).manifest.state == "saved" and "**Revisions:** 0" in rig.section(key, 6)


def test_pairs_are_asked_in_batches_within_the_budget(rig: Rig) -> None:
    """At most eight pairs a call, each call within the recipe's input."""
    answer = "\n\n".join(f"Ada ordered desk number Lofta 140 for the office, {word} [1]." for word in "abcdefghijklmnopqrst")
    key = ask(rig, answer, judged=[meaning(*["same"] * 8), meaning(*["same"] * 8), meaning(*["same"] * 4)])
    packs = rig.runtime.of("meaning_checker")
    assert rig.turn(key).manifest.state == "saved" and [p.document("pairs").count("] source: ") for p in packs] == [8, 8, 4]
