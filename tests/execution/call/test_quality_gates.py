"""Quality gates on parsed answers."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.recipe_governance import ConfidenceBin, ConfidenceCalibration
from pandora_dagster.execution.call.quality_gates import confidence_gate, confidence_of, evidence_gate, schema_gate, states_only_absence

SOURCES = (Source("1", "turns/turn_000003/context.md"), Source("2", "memory/preferences.md"), Source("10", "x"))
LABELS = {"type": "object", "properties": {"checked_citations": {"type": "array"}, "evidence": {"type": "string"}}}


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        ({"reasoning": "as [1] and [10] say"}, ""),
        ({"a": [{"b": "deep [3]"}]}, "[3]"),
        ({"checked_citations": ["[1]", "2", 10]}, ""),
        ({"checked_citations": ["7"]}, "[7]"),
        ({"checked_citations": ["context.md"]}, "context.md"),
        ({"checked_citations": ["the fare [2]", {"quote": "so [1]"}]}, ""),
        ({"checked_citations": ["the fare [4]"]}, "[4]"),
        ({"checked_citations": [""]}, "''"),
        ({"evidence": "no list: [9]"}, "[9]"),
        ({"note": "the code `rows[7]`"}, ""),
        ({}, ""),
    ],
)
def test_citations_in_json_lead_to_given_sources(answer: Any, unknown: str, make_recipe: Any) -> None:
    """Every `[n]` in a string and every label in a label list must be given; JSON need not cite."""
    verdict = evidence_gate(answer, make_recipe(output_schema=LABELS).recipe, SOURCES)
    assert verdict.passed == (not unknown) and unknown in verdict.reason


@pytest.mark.parametrize(
    ("text", "sources", "passed"),
    [
        ("The chair is red [1].", SOURCES, True),
        ("The chair is red.", SOURCES, False),
        ("The chair is red.", (), False),
        ("The chair is red [1].", (), False),
        ("See [1](http://x).", SOURCES, False),
        ("```py\nx[7]\n```\nas in [2]", SOURCES, True),
    ],
)
def test_a_written_answer_cites_where_it_can(text: str, sources: Any, passed: bool, make_recipe: Any) -> None:
    """A fact cites a source also where there is none to cite; links and code are no citations."""
    assert evidence_gate(text, make_recipe(output_format="markdown", output_schema=None).recipe, sources).passed is passed


@pytest.mark.parametrize(
    ("text", "intent", "passed"),
    [
        ("You are welcome!", "greeting", True),
        ("You are welcome!", "query", True),
        ("Hello! Your order came on 3 May.", "greeting", False),
        ("I found nothing about a refund in our earlier turns.", "query", True),
        ("I did not find that in memory or tools. Should I look in your mails?", "recall", True),
        ("There is no information about the colour.", "query", True),
        ("I don't know who sold it.", "query", True),
        ("I did not find a refund, but the chair cost $412.", "query", False),
        ("I did not find a refund. The order was cancelled by the shop.", "query", False),
        ("I found nothing; see https://shop.example for more.", "query", False),
        ("The chair is red.", "query", False),
        ("It was paid in 2024.", "query", False),
        ("I found nothing. " * 40, "query", True),
    ],
)
def test_only_a_claim_needs_a_citation(text: str, intent: str, passed: bool, make_recipe: Any) -> None:
    """A greeting and an owned gap stand alone; a number, a date, an address or any other claim does not."""
    recipe = make_recipe(output_format="markdown", output_schema=None).recipe
    assert evidence_gate(text, recipe, SOURCES, intent=intent).passed is passed


@pytest.mark.parametrize(
    ("value", "read"), [(0.7, 0.7), (1, 1.0), (0, 0.0), (True, None), ("0.9", None), (None, None), (1.1, None), (float("nan"), None)]
)
def test_confidence_is_a_number_from_0_to_1(value: Any, read: float | None) -> None:
    """Anything else is no confidence."""
    assert confidence_of({"confidence": value}) == read and confidence_of([value]) is None


@pytest.mark.parametrize(
    ("good", "calls", "low", "high"), [(0, 0, 0.0, 1.0), (0, 20, 0.0, 0.161), (20, 20, 0.839, 1.0), (45, 50, 0.786, 0.957)]
)
def test_bounds_of_a_share_are_wilson_s(good: int, calls: int, low: float, high: float) -> None:
    """Compared with the table of Wilson's interval of 95 % in R's `prop.test(correct = FALSE)`."""
    assert ConfidenceBin(calls=calls, good=good).bounds == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize(("stated", "passed", "value"), [(0.95, True, 0.95), (0.9, True, 0.95), (1.0, True, 0.95), (0.89, False, 0.2)])
def test_a_threshold_acts_on_outcomes(stated: float, passed: bool, value: float) -> None:
    """The bin of the stated number decides; the verdict carries the share of good outcomes."""
    bins = [ConfidenceBin()] * 8 + [ConfidenceBin(calls=40, good=8), ConfidenceBin(calls=40, good=38)]
    verdict = confidence_gate({"confidence": stated}, 0.7, ConfidenceCalibration(version="v", model="m", bins=tuple(bins)))
    assert (verdict.passed, verdict.value) == (passed, value)


def test_schema_faults_name_their_place_and_stay_short(make_recipe: Any) -> None:
    """Three faults with their paths, the rest counted, long values shortened."""
    properties = {name: {"type": "integer"} for name in "abcde"}
    validator = Draft202012Validator({"type": "object", "properties": properties})
    verdict = schema_gate({name: "x" * 5_000 for name in "abcde"}, validator, make_recipe().recipe)
    assert not verdict.passed and len(verdict.reason) < 700
    assert "$.a: " in verdict.reason and "$.c: " in verdict.reason and "and 2 more" in verdict.reason and "$.d" not in verdict.reason


def test_a_threshold_makes_confidence_part_of_the_schema(make_recipe: Any) -> None:
    """Without a valid confidence the answer breaks its schema, whatever the schema says."""
    recipe = make_recipe(quality_gates={"confidence_threshold": 0.7}).recipe
    verdict = schema_gate({"confidence": "high"}, None, recipe)
    assert not verdict.passed and "$.confidence: 'high'" in verdict.reason
    assert schema_gate({"confidence": 0.1}, None, recipe).passed


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ('I found nothing that tells this: "Which desk did we order?" I looked at: [1] [3]', True),
        ("I found nothing about this in the documents that I looked at: [1] [2]", True),
        ("I could not find any information about the desk.", True),
        ("The desk cost 429.00 euros [1].", False),
        ("(2026-09-03) Ordered: the desk Lofta 140 [1].", False),
        ("It was cancelled [1]. I found nothing about a refund.", False),
    ],
)
def test_an_answer_that_tells_nothing_of_its_sources(text: str, nothing: bool) -> None:
    """What it cites and quotes beside that tells nothing either."""
    assert states_only_absence(text) is nothing
