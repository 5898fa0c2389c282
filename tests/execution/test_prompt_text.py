"""Prompt blocks, names and the form of the answer."""

from typing import Any

import pytest

from pandora_dagster.contracts.recipes import PromptFile
from pandora_dagster.execution.prompt_text import fill, io_schema, select_prompts, variables_in


@pytest.mark.parametrize(
    ("mode", "intent", "policy", "chosen"),
    [
        ("chat", "", "assistant", "ad"),
        ("code", "", "assistant", "abd"),
        ("code", "query", "mediation", "abc"),
        ("chat", "recall", "x", "a"),
    ],
)
def test_blocks_apply_where_all_their_conditions_hold(mode: str, intent: str, policy: str, chosen: str, make_recipe: Any) -> None:
    """Mode, intent and policy are all asked; a block without conditions is always there."""
    whens = {"a": None, "b": {"mode": "code"}, "c": {"intent": ["query"], "policy": ["mediation"]}, "d": {"policy": ["assistant"]}}
    prompts = tuple((PromptFile(path=f"prompts/p/{name}.md", when=when), name) for name, when in whens.items())
    assert "".join(select_prompts(make_recipe(prompts=prompts), mode=mode, intent=intent, policy=policy)) == chosen


def test_names_are_filled_once() -> None:
    """Each name once in order; a value that looks like a name stays as it is; an unknown name is an error."""
    assert variables_in("{{a}} {{ b_2 }} {{a}} {{ not this }} {c}") == ("a", "b_2")
    assert fill("{{a}}-{{ b }}", {"a": "{{b}}", "b": "x"}) == "{{b}}-x"
    with pytest.raises(KeyError, match="c"):
        fill("{{c}}", {})


@pytest.mark.parametrize(
    ("output_format", "word"), [("json", "JSON object"), ("yaml", "YAML"), ("markdown", "Markdown"), ("text", "plain")]
)
def test_the_form_of_the_answer_is_said(output_format: str, word: str, make_recipe: Any) -> None:
    """The format in a sentence; the schema only where there is one."""
    with_schema, without = make_recipe(output_format=output_format), make_recipe(output_format=output_format, output_schema=None)
    assert word in io_schema(without.recipe) and "next_step" not in io_schema(without.recipe)
    assert "next_step" in io_schema(with_schema.recipe)
