"""The evidence gate on hand-written answers: right, invented, half-invented and miscited ones, honest absences, greetings."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.compression.verification.claim_support import judge_claims
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.execution.call.quality_gates import evidence_gate

REPOSITORY = Path(__file__).parents[3]
SHARED = REPOSITORY.parent / "shared" / "data" / "documents" / "documents.jsonl"
DATA = Path(__file__).parents[1] / "data"
ANSWERS = [json.loads(line) for line in (DATA / "answers.jsonl").read_text().splitlines()]
SECOND_AUTHOR = [json.loads(line) for line in (DATA / "answers_second_author.jsonl").read_text().splitlines()]
REFUSED = ("invented", "half", "half-invented", "miscited")


def example_texts() -> Iterator[tuple[str, str]]:
    for line in (REPOSITORY / "data" / "example" / "conversations.jsonl").read_text().splitlines():
        conversation = json.loads(line)
        said = (f"{m['role']}: {m.get('content') or json.dumps(m.get('tool_calls'))}" for m in conversation["messages"])
        yield f"example:{conversation['id']}", "\n\n".join(said)


def shared_texts() -> dict[str, str]:
    return {document["id"]: document["text"] for document in map(json.loads, SHARED.read_text().splitlines())}


def shares(answers: list[dict[str, Any]], texts: dict[str, str]) -> tuple[float, float]:
    """Share of faulty answers with a statement that the gate refuses, and of the others without one."""
    counts = {True: [0, 0], False: [0, 0]}
    for answer in answers:
        sources = {str(n): texts[name] for n, name in enumerate(answer["sources"], 1)}
        is_refused = any(c.outcome == "refused" for c in judge_claims(answer["answer"], sources, query=answer["query"]))
        is_faulty = answer["label"] in REFUSED
        counts[is_faulty][0] += is_refused == is_faulty
        counts[is_faulty][1] += 1
    (refused, faulty), (passed, others) = counts[True], counts[False]
    return refused / faulty, passed / others if others else 1.0


def test_answers_over_the_example() -> None:
    """The shipped conversations: the gate refuses 7 of 9 faulty answers, and every right one passes."""
    answers = [a for a in ANSWERS if a["sources"][0].startswith("example:")]
    refused, passed = shares(answers, dict(example_texts()))
    assert len(answers) == 20 and refused >= 7 / 9 and passed == 1.0


@pytest.mark.skipif(not SHARED.exists(), reason=f"the documents of {SHARED.name} are not beside this checkout")
def test_answers_over_the_shared_documents() -> None:
    """The gate refuses 33 of 46 answers with an invented or miscited fact, all miscited ones among them, and passes all others."""
    texts = shared_texts()
    answers = [a for a in ANSWERS if a["sources"][0] in texts]
    refused, passed = shares(answers, texts)
    assert refused >= 33 / 46 and passed == 1.0
    assert shares([a for a in answers if a["label"] == "miscited"], texts)[0] == 1.0


@pytest.mark.skipif(not SHARED.exists(), reason=f"the documents of {SHARED.name} are not beside this checkout")
def test_answers_of_a_second_author() -> None:
    """Written without knowledge of the code: it refuses what is miscited and hardly anything that is right; most of what is invented
    from forms that the source has is for a model (docs/explanation/turns-and-phases.md has the figures)."""
    texts = shared_texts()
    refused, passed = shares(SECOND_AUTHOR, texts)
    assert refused >= 0.36 and passed >= 0.90
    assert shares([a for a in SECOND_AUTHOR if a["label"] == "miscited"], texts)[0] == 1.0


DESK = "Ordered: the desk Lofta 140, order ORD-77120, 429.00 euros, delivery on 10 September 2026."


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("The desk cost 429 euros [1]. The chair costs 9,999 euros.", "states a fact and cites no source"),
        ("The desk cost 439 euros [1].", "value 439 euros: not in [1]"),
        ("The desk cost 429 dollars [1].", "value 429 dollars: not in [1]"),
        ("The desk Lofta 140 was delivered on 11 September 2026 [1].", "date or time 11 September 2026"),
        ("The desk cost 429 euros [1].", ""),
        ("The desk cost €429.00 [1].", ""),
        ("Delivery of the desk: 2026-09-10 [1].", ""),
        ("The desk was delivered on 10 September 2026. It cost 429.00 euros. [1]", ""),
        ("Ordered [1]:\n- desk: Lofta 140\n- price: 429.00 euros", ""),
        ("The desk ordered twice: 429 + 429 = 858 euros [1].", ""),
        ('It says "the desk has white drawers" [1].', "the quotation"),
    ],
)
def test_a_statement_is_compared_with_what_it_cites(answer: str, reason: str, make_recipe: Any) -> None:
    """The verdict names the statement, what is wrong, and what the source says."""
    recipe = make_recipe(output_format="markdown", output_schema=None).recipe
    verdict = evidence_gate(answer, recipe, (Source("1", "turns/turn_000003/context.md"),), texts={"1": DESK})
    assert verdict.passed == (not reason) and reason in verdict.reason
    assert not reason or "statements of fact without support" in verdict.reason


def test_an_invented_answer_is_refused_also_without_sources(make_recipe: Any) -> None:
    """Where nothing was gathered, every statement of fact is without support."""
    recipe = make_recipe(output_format="markdown", output_schema=None).recipe
    verdict = evidence_gate("Your doctor is Dr. Smith. You were born in 1971. It cost $9999.", recipe, ())
    assert not verdict.passed and "3 of 3 statements" in verdict.reason


def test_the_verdict_has_a_row_for_each_statement(make_recipe: Any) -> None:
    """Refused statements first, each with what it cites and what the source says; at most 25 rows."""
    recipe = make_recipe(output_format="markdown", output_schema=None).recipe
    answer = f"{DESK} [1] The desk Lofta 140 costs 429 euros [1]. The desk cost 439 euros [1]. " + "Ada likes desks. " * 30
    rows = evidence_gate(answer, recipe, (Source("1", "turns/turn_000003/context.md"),), texts={"1": DESK}).rows
    assert len(rows) == 25 and rows[0]["reason"] == "value 439 euros: not in [1]" and "429.00 euros" in rows[0]["source"]
    kept = evidence_gate(answer.partition(" The desk cost")[0], recipe, (Source("1", "x"),), texts={"1": DESK}).rows
    assert [row["verdict"] for row in kept] == ["verbatim", "supported"] and kept[1]["cited"] == "[1]"
