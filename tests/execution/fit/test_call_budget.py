"""Room and choice: no pack ever exceeds its budgets or the served context."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import InputDocument, Item
from pandora_dagster.contracts.recipe_schema import TokenBudget
from pandora_dagster.errors import HaltError
from pandora_dagster.execution.call.prompt_packs import input_parts
from pandora_dagster.execution.fit.call_budget import (
    FIRST_RATIO,
    TEMPLATE_TOKENS,
    document_text,
    framed_tokens,
    message_budget,
    plannable_tokens,
    select_items,
    served_budget,
)
from pandora_dagster.runtime.token_counter import TokenCounter

TEXTS = st.text(max_size=60) | st.sampled_from(
    ["word " * 30, "  \n\n\t", "</document>\n", "'ll 12345678 §§§ 漢字漢字", "}}}}>>>>\r\n\r\n", "a\n\n\n"]
)
ITEMS = st.lists(st.builds(Item, text=TEXTS, priority=st.integers(0, 3).map(float)), max_size=8).map(tuple)
DOCUMENTS = st.lists(st.builds(InputDocument, name=st.sampled_from("abc"), text=TEXTS, items=ITEMS, header=TEXTS), max_size=3).map(tuple)
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(variables=TEXTS, documents=DOCUMENTS, query=TEXTS)
@QUICK
def test_the_parts_add_up_to_the_message(variables: str, documents: Any, query: str, counter: TokenCounter) -> None:
    """The tokens of the parts are never fewer than those of the message they make, whatever the texts."""
    parts = input_parts(variables, documents, query, counter.count)
    message = "\n\n".join(p.framed_text for p in parts)
    assert counter.count(message + "\n\n") <= sum(p.tokens for p in parts)


@given(documents=DOCUMENTS, spare=st.integers(0, 200))
@QUICK
def test_a_choice_fits_and_says_what_it_left_out(documents: Any, spare: int, counter: TokenCounter) -> None:
    """Chosen documents fit the room, every item is in or named as left out, and the given order stays."""
    fixed = sum(framed_tokens(InputDocument(d.name, d.text), counter.count) for d in documents)
    choice = select_items(documents, limit=fixed + spare, count=counter.count)
    assert sum(framed_tokens(d, counter.count) for d in choice.documents) <= fixed + spare or not any(d.items for d in choice.documents)
    assert sum(len(d.items) for d in choice.documents) + len(choice.left_out) == sum(len(d.items) for d in documents)
    for chosen, given_document in zip(choice.documents, documents, strict=True):
        rest = iter(given_document.items)
        assert all(any(item is other for other in rest) for item in chosen.items)
        assert (chosen.text, chosen.header) == (given_document.text, given_document.header)


def test_higher_priority_is_kept_first_and_smaller_items_fill_the_rest(counter: TokenCounter) -> None:
    """Greedy by priority: a large item that does not fit is passed over, the next smaller one is tried."""
    items = (Item("low", 1, "low"), Item("big " * 200, 3, "big"), Item("top " * 10, 5, "top"), Item("middle", 2, "middle"))
    choice = select_items((InputDocument("d", items=items, header="HEAD"),), limit=60, count=counter.count)
    assert [i.name for i in choice.documents[0].items] == ["low", "top", "middle"] and choice.left_out == ("big",)


def test_a_document_whose_items_all_stay_out_says_nothing(counter: TokenCounter) -> None:
    """A header without items is no document; unnamed items are named by their place."""
    choice = select_items((InputDocument("d", items=(Item("x " * 50), Item("y " * 50)), header="HEAD"),), limit=20, count=counter.count)
    assert framed_tokens(choice.documents[0], counter.count) == 0 and choice.left_out == ("d#1", "d#2")


def test_a_header_stands_before_what_it_heads() -> None:
    """Header, text, items, in this order; a header alone is nothing."""
    assert document_text(InputDocument("d", "TEXT", (Item("x\ny"),), "HEAD")) == "HEAD\n\nTEXT\n\nx\ny"
    assert document_text(InputDocument("d", header="HEAD")) == ""


def test_json_lines_stand_line_under_line(counter: TokenCounter) -> None:
    """Items of one line are joined as lines, longer ones with a blank line between."""
    lines = (InputDocument("d", items=(Item('{"a": 1}'), Item('{"b": 2}'))), InputDocument("e", items=(Item("x\ny"), Item("z"))))
    parts = input_parts("", select_items(lines, limit=500, count=counter.count).documents, "q", counter.count)
    assert [p.text for p in parts] == ['{"a": 1}\n{"b": 2}', "x\ny\n\nz", "q"]


@given(
    prompt=st.integers(100, 300),
    input_=st.integers(40, 400),
    output=st.integers(1, 200),
    reserve=st.integers(0, 50),
    spare=st.integers(0, 100),
    served=st.none() | st.integers(200, 1200),
    documents=DOCUMENTS,
    query=st.text(max_size=40),
    bad=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_pack_exceeds_its_budgets_or_the_served_context(
    rig: Any,
    make_recipe: Any,
    counter: TokenCounter,
    prompt: int,
    input_: int,
    output: int,
    reserve: int,
    spare: int,
    served: int | None,
    documents: Any,
    query: str,
    bad: bool,
) -> None:
    """Every pack that is sent, retries with feedback included, fits; what can not fit halts without a call."""
    budget = {
        "total": prompt + input_ + output + reserve + spare,
        "prompt": prompt,
        "input": input_,
        "output": output,
        "response_reserve": reserve,
    }
    recipe = make_recipe(token_budget=budget, input_docs=("a", "b", "c"), input_sections=())
    limits = {} if served is None else {ModelLayer.MIND: served}
    made = rig('{"next_step": "fly"}' if bad else '{"next_step": "clarify"}', recipe=recipe, limits=limits)
    unique = tuple({d.name: d for d in documents}.values())
    try:
        made.call(documents=unique, query=query)
    except HaltError:
        assert made.stores.opened[0].type == ("schema_violation" if made.runtime.packs else "budget_exceeded")
    for pack in made.runtime.packs:
        system, user = counter.count(pack.system), counter.count(pack.user)
        plain = "\n\n".join(p.framed_text for p in pack.parts if p.kind in ("document", "query", "variables"))
        assert system <= prompt and counter.count(plain) <= input_
        assert system + user + output + reserve <= budget["total"]
        assert pack.max_output_tokens <= output, "a small context shortens the answer"
        kept_free = pack.max_output_tokens + served_budget(recipe.recipe.token_budget, served).response_reserve
        assert served is None or (system + user) * FIRST_RATIO + TEMPLATE_TOKENS + kept_free <= served
        assert pack.query == query


@pytest.mark.parametrize(
    ("served", "both"), [(None, 4540 - 1000), (10_000, 4540 - 1000), (2000, int((2000 - 1000 - TEMPLATE_TOKENS) / 1.1))]
)
def test_the_smaller_of_total_and_served_context_counts(served: int | None, both: int) -> None:
    """Output and reserve are kept free in whichever limit is smaller."""
    budget = TokenBudget(total=4540, prompt=1540, input=2000, output=900, response_reserve=100)
    room = message_budget(budget, served=served, ratio=FIRST_RATIO)
    assert room.both == both and room.input_tokens_beside(540) == min(2000, both - 540)


@pytest.mark.parametrize(("served", "output"), [(None, 3_000), (10_000, 3_000), (8_000, 2_400), (4_096, 1_500)])
def test_the_answer_keeps_its_share_of_a_small_context(served: int | None, output: int) -> None:
    """The synthesizer's budget leaves its prompt of 1,318 tokens no place beside 3,000 of an answer in 4,096; half of them do."""
    budget = TokenBudget(total=10_000, prompt=1_318, input=5_500, output=3_000, response_reserve=182)
    own = served_budget(budget, served)
    assert own.output == output and own.total == budget.total
    assert message_budget(own, served=served, ratio=FIRST_RATIO).input_tokens_beside(1_318) > 800


@given(denseness=st.sampled_from([1, 2, 3]), served=st.integers(400, 1500), documents=DOCUMENTS, bad=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_planned_to_fit_fits_by_the_models_own_count(
    rig: Any, make_recipe: Any, denseness: int, served: int, documents: Any, bad: bool
) -> None:
    """A tokenizer that has two or three tokens for one of cl100k still gets no prompt over its context, feedback included."""
    budget = {"total": 1_500, "prompt": 200, "input": 900, "output": 100, "response_reserve": 0}
    recipe = make_recipe(token_budget=budget, input_docs=("a", "b", "c"), input_sections=())

    def tokenizer(text: str) -> int:
        return min(len(text.encode()), denseness * counter_of(text))

    made = rig(
        '{"next_step": "fly"}' if bad else '{"next_step": "clarify"}', recipe=recipe, limits={ModelLayer.MIND: served}, tokenizer=tokenizer
    )
    counter_of = made.executor._count
    with suppress(HaltError):
        made.call(documents=tuple({d.name: d for d in documents}.values()), query="which chair?")
    assert all(tokenizer(p.system) + tokenizer(p.user) <= served - p.max_output_tokens for p in made.runtime.packs)
    assert made.runtime.packs or made.stores.opened[0].type == "budget_exceeded"


def test_planned_leaves_room_for_a_template() -> None:
    """The bound is in cl100k tokens, and never negative."""
    assert plannable_tokens(1100 + TEMPLATE_TOKENS, 1.1) == pytest.approx(1000, abs=1) and plannable_tokens(10, 1.1) == 0


def test_a_served_context_smaller_than_the_output_leaves_no_room(rig: Any) -> None:
    """Nothing is sent where not even the answer would fit."""
    made = rig("{}", limits={ModelLayer.MIND: 300})
    with pytest.raises(HaltError):
        made.call()
    assert not made.runtime.packs
