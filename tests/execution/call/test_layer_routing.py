"""Which of two layers takes a call, by a declared score; and that nothing is routed where nothing is declared."""

from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.execution.call.layer_routing import Routing, choose_layer
from tests.execution.conftest import request

POLICY = Routing.model_validate(
    {
        "recipes": ["pipeline/plan"],
        "larger": "MIND",
        "smaller": "REFLEX",
        "threshold": 4,
        "factors": [
            {"name": "a preference", "score": 4, "intents": ["preference"]},
            {"name": "ambiguous", "score": 2, "ambiguous": True},
            {"name": "long", "score": 1, "query_over": 500},
            {"name": "about a purchase", "score": 1, "intents": ["commerce"], "mode": "chat"},
            {"name": "mechanical", "score": -1, "words": ["draft", "Rewrite"]},
        ],
    }
)
CASES: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({}, "REFLEX", ("score 0 < 4: REFLEX",)),
    ({"intent": "preference"}, "MIND", ("a preference +4", "score 4 >= 4: MIND")),
    ({"intent": "preference", "query": "please rewrite it"}, "REFLEX", ("a preference +4", "mechanical -1", "score 3 < 4: REFLEX")),
    ({"query": "redrafted"}, "REFLEX", ("score 0 < 4: REFLEX",)),
    (
        {"ambiguous": True, "query": "x" * 501, "intent": "commerce"},
        "MIND",
        ("ambiguous +2", "long +1", "about a purchase +1", "score 4 >= 4: MIND"),
    ),
    (
        {"ambiguous": True, "query": "x" * 500, "intent": "commerce"},
        "REFLEX",
        ("ambiguous +2", "about a purchase +1", "score 3 < 4: REFLEX"),
    ),
]


@pytest.mark.parametrize(("fields", "layer", "reasons"), CASES)
def test_the_score_chooses_and_says_why(fields: dict[str, Any], layer: str, reasons: tuple[str, ...]) -> None:
    """Every factor that holds is named with its score, then the sum against the threshold."""
    assert choose_layer(POLICY, request(**fields), "pipeline/plan", ModelLayer.VOICE) == (ModelLayer(layer), reasons)


def test_without_a_policy_the_recipe_decides() -> None:
    """So does it for recipes that the policy does not name; a caller's own choice stands over both."""
    assert choose_layer(None, request(), "pipeline/plan", ModelLayer.VOICE) == (ModelLayer.VOICE, ())
    assert choose_layer(POLICY, request(), "pipeline/other", ModelLayer.VOICE) == (ModelLayer.VOICE, ())
    assert choose_layer(POLICY, request(layer=ModelLayer.EYES), "pipeline/plan", ModelLayer.VOICE) == (ModelLayer.EYES, ())


def test_the_record_says_which_way_a_call_went_and_why(rig: Any) -> None:
    """The pack goes to the chosen layer."""
    made = rig(routing=POLICY)
    record = made.call(intent="preference").record
    assert made.runtime.packs[0].layer is record.model_layer is ModelLayer.MIND
    assert record.routed == ("a preference +4", "score 4 >= 4: MIND")
    smaller = rig(routing=POLICY).call().record
    assert (smaller.model_layer, smaller.grouping_layer) == (ModelLayer.REFLEX, ModelLayer.MIND)
    assert rig().call().record.routed == ()
