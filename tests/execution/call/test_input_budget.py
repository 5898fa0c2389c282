"""What a call does where its input does not fit: shrinks, compresses, or halts with by how much."""

from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import InputDocument, Item
from pandora_dagster.contracts.ports.recipe_execution import FittedDocuments
from pandora_dagster.errors import BudgetError, HaltError

GOOD = '{"next_step": "synthesis", "confidence": 0.9}'


def test_input_over_its_budget_says_by_how_much(rig: Any, make_recipe: Any) -> None:
    """Fixed input that does not fit halts, with the part and the tokens in the message, and no model is asked."""
    made = rig(GOOD, recipe=make_recipe(token_budget={"total": 700, "prompt": 500, "input": 30, "output": 100}))
    with pytest.raises(HaltError, match=r"input: \d+ tokens \(context\.md \d+, query \d+\) are \d+ over: expected at most 30"):
        made.call()
    assert made.stores.opened[0].type == "budget_exceeded" and not made.runtime.packs


def test_a_prompt_over_its_budget_says_by_how_much(rig: Any, make_recipe: Any) -> None:
    """The shared parts have a budget of their own."""
    made = rig(GOOD, recipe=make_recipe(token_budget={"total": 700, "prompt": 10, "input": 500, "output": 100}))
    with pytest.raises(HaltError, match=r"prompt: \d+ tokens are \d+ over: expected at most 10"):
        made.call()
    assert made.stores.opened[0].type == "budget_exceeded"


class Shrinker:
    """A Fitter that shortens context.md to a sentence, or cannot."""

    def __init__(self, *, able: bool = True) -> None:
        self.able, self.rooms = able, []

    async def fit(self, documents: Any, *, budget_tokens: int, recipe: Any, request: Any) -> FittedDocuments:
        self.rooms.append(budget_tokens)
        if not self.able:
            raise BudgetError("context.md: 12 tokens over", over=12)
        return FittedDocuments(tuple(InputDocument(d.name, "short") for d in documents), 30)


def test_compression_makes_fixed_input_fit(rig: Any, make_recipe: Any) -> None:
    """With a Fitter the same call goes through and says what compression saved."""
    recipe = make_recipe(token_budget={"total": 700, "prompt": 500, "input": 30, "output": 100})
    made = rig(GOOD, recipe=recipe, fitter=Shrinker())
    record = made.call().record
    assert record.compression_applied and record.compression_savings == 30
    assert made.runtime.packs[0].document("context.md") == "short"


class Halting:
    """A Fitter whose own model call stopped."""

    async def fit(self, documents: Any, *, budget_tokens: int, recipe: Any, request: Any) -> FittedDocuments:
        raise HaltError("compress_context: no answer", intervention_id="iv_9")


def test_a_halt_inside_compression_is_the_halt_of_the_call(rig: Any, make_recipe: Any) -> None:
    """The inner intervention stands; the outer call is recorded as failed and opens no second one."""
    made = rig(GOOD, recipe=make_recipe(token_budget={"total": 700, "prompt": 500, "input": 30, "output": 100}), fitter=Halting())
    with pytest.raises(HaltError) as halted:
        made.call()
    assert halted.value.intervention_id == "iv_9" and not made.stores.opened
    assert "compress_context" in made.stores.records[0].error


def test_compression_that_cannot_halts(rig: Any, make_recipe: Any) -> None:
    """A Fitter that fails, and compression that the recipe forbids, both end in budget_exceeded."""
    budget = {"total": 700, "prompt": 500, "input": 30, "output": 100}
    unable, unasked = Shrinker(able=False), Shrinker()
    for fitter, fields in ((unable, {}), (unasked, {"compression": {"enabled": False}})):
        made = rig(GOOD, recipe=make_recipe(token_budget=budget, **fields))
        made.executor.use_fitter(fitter)
        with pytest.raises(HaltError):
            made.call()
        assert made.stores.opened[0].type == "budget_exceeded"
    assert len(unable.rooms) == 1 and not unasked.rooms


def test_a_smaller_served_context_shrinks_the_input(rig: Any, make_recipe: Any) -> None:
    """Items leave first and are recorded; only what is fixed can halt the call."""
    items = tuple(Item(f"turn {n}: " + "word " * 40, priority=n, name=f"t{n}") for n in range(6))
    recipe = make_recipe(input_docs=("prior_turns",))
    documents = (InputDocument("context.md", "## 0. User Query\n\nhi\n\n"), InputDocument("prior_turns", items=items))
    assert not rig(GOOD, recipe=recipe).call(documents=documents).record.left_out
    made = rig(GOOD, recipe=recipe, limits={ModelLayer.MIND: 700})
    left_out = made.call(documents=documents).record.left_out
    assert left_out and left_out == tuple(f"t{n}" for n in range(len(left_out)))
    assert "turn 5" in made.runtime.packs[0].document("prior_turns") and "turn 0" not in made.runtime.packs[0].document("prior_turns")
    made = rig(GOOD, recipe=recipe, limits={ModelLayer.MIND: 350})
    with pytest.raises(HaltError, match="over"):
        made.call(documents=documents)


def test_served_counts_correct_the_plan(rig: Any, make_recipe: Any) -> None:
    """A tokenizer that counts 1.5 times as many leaves less room for the next call."""
    items = tuple(Item(f"turn {n}: " + "word " * 40, priority=n, name=f"t{n}") for n in range(10))
    recipe = make_recipe(input_docs=("prior_turns",))
    documents = (InputDocument("context.md", "## 0. User Query\n\nhi\n\n"), InputDocument("prior_turns", items=items))
    made = rig(GOOD, recipe=recipe, limits={ModelLayer.MIND: 800}, served=900)
    first, second = made.call(documents=documents).record, made.call(documents=documents).record
    assert len(second.left_out) > len(first.left_out) > 0
