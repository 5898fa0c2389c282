"""Whether sources say what an answer says, judged by a model pair by pair."""

import json

from tests.phases.rig import APPROVE, Rig, plain, retrieval

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


def uncited(kind: str) -> str:
    """The validator's APPROVE with the kind of the one statement that cites nothing."""
    return plain(checked_citations=["[1]"], uncited=[{"number": 1, "kind": kind}], issues=[], decision="APPROVE", confidence=0.95)


SEARCH = "Both rounds over everything stored came back alike."


def test_the_validator_says_what_an_uncited_statement_is(rig: Rig) -> None:
    """Its form refused a statement about the turn itself; a model sees that it is no fact, and code takes its word for the kind alone."""
    key = ask(rig, f"{FACT} [1]\n\n{SEARCH}", judged=[])
    assert rig.turn(key).manifest.state == "halted"  # no kind was said: the form decides
    (issue,) = json.loads(rig.turn(key).files["validation.json"])["rounds"][0]["issues"]
    assert issue == f'"{SEARCH}": states a fact and cites no source'
    assert rig.runtime.of("validator")[-1].document("uncited") == f"[1] {SEARCH}"
    rig.say(validator=uncited("turn"), synthesizer=[f"{FACT} [1]\n\n{SEARCH}"])
    key = rig.ask(QUERY)
    assert rig.turn(key).manifest.state == "saved" and "**Revisions:** 0" in rig.section(key, 6)


def test_an_uncited_fact_is_a_revision_though_the_validator_approves(rig: Rig) -> None:
    """A statement that its form takes for none is one where the validator says so."""
    key = ask(rig, f"{FACT} [1]\n\nNobody ever sends a desk back.", f"{FACT} [1]", judged=[])
    rig.say(validator=[uncited("fact"), APPROVE], synthesizer=[f"{FACT} [1]\n\nNobody ever sends a desk back.", f"{FACT} [1]"])
    key = rig.ask(QUERY)
    rounds = json.loads(rig.turn(key).files["validation.json"])["rounds"]
    assert [r["decision"] for r in rounds] == ["REVISE", "APPROVE"]
    assert rounds[0]["issues"] == ['"Nobody ever sends a desk back.": states a fact and cites no source']


def test_a_value_without_a_source_is_refused_whatever_the_validator_says(rig: Rig) -> None:
    """Code knows that it is a claim: the gate refuses it before validation."""
    rig.say(validator=uncited("turn"))
    ask(rig, f"{FACT} [1]\n\nIt cost 999 euros.", f"{FACT} [1]", judged=[])
    assert all("999" not in pack.document("context.md").rpartition("## 5.")[2] for pack in rig.runtime.of("validator"))
