"""Choosing prompt blocks, filling names in, saying how to answer."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.recipes.static_prompts import fill_variables, io_schema, prompt_cases, select_prompts, variables_in

Put = Callable[[str, str | bytes], Path]
BLOCKS = """prompt_files:
  - prompts/pipeline/gate.md
  - path: prompts/pipeline/code.md
    when: {mode: code}
  - path: prompts/pipeline/buy.md
    when: {intent: [commerce, query]}
  - path: prompts/pipeline/mediate.md
    when: {mode: chat, intent: [greeting]}
"""


@pytest.fixture
def blocks(loader: RecipeLoader, put: Put, recipe: str) -> RecipeLoader:
    """A recipe with prompt blocks by mode and intent."""
    for name in ("gate", "code", "buy", "mediate"):
        put(f"prompts/pipeline/{name}.md", name)
    put("recipes/pipeline/gate.yaml", recipe.replace("prompt_files:\n  - prompts/pipeline/gate.md\n", BLOCKS))
    return loader


@pytest.mark.parametrize(
    ("mode", "intent", "chosen"),
    [
        ("chat", "", ("gate",)),
        ("code", "", ("gate", "code")),
        ("chat", "commerce", ("gate", "buy")),
        ("code", "query", ("gate", "code", "buy")),
        ("chat", "greeting", ("gate", "mediate")),
    ],
)
def test_blocks_are_chosen_by_case(blocks: RecipeLoader, mode: str, intent: str, chosen: tuple[str, ...]) -> None:
    """A block is part of the prompt when every condition it names holds (DECISIONS 28)."""
    assert select_prompts(blocks.load("pipeline/gate"), mode=mode, intent=intent) == chosen


def test_cases_cover_every_combination(blocks: RecipeLoader) -> None:
    """Two modes, three intents or none: eight cases, all five prompts among them."""
    loaded = blocks.load("pipeline/gate")
    found = prompt_cases(loaded)
    assert len(found) == 2 * 4
    assert len({select_prompts(loaded, **case) for case in found}) == 5


def test_fill_puts_values_in() -> None:
    """Names in double braces become their values, with or without blanks around."""
    assert fill_variables("{{a}} and {{ b }} and {a}", {"a": "1", "b": "2"}) == "1 and 2 and {a}"


def test_fill_names_all_missing_values() -> None:
    """One error lists every name without a value (000 section 12.3)."""
    with pytest.raises(ConfigurationError, match=r"gate: no value for b, c: expected variables a, b, c"):
        fill_variables("{{a}} {{b}} {{c}} {{b}}", {"a": "1"}, where="gate")


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text(alphabet="{}abc ", max_size=12), min_size=3))
def test_fill_never_reads_a_value(values: dict[str, str]) -> None:
    """A value that looks like a variable stays as it is."""
    assert fill_variables("{{a}}|{{b}}|{{c}}", values) == f"{values['a']}|{values['b']}|{values['c']}"


@given(st.text(alphabet="{}ab_ 1", max_size=30))
def test_fill_with_every_name_given_leaves_no_error(text: str) -> None:
    """The names that a text asks for are the names that fill it."""
    names = variables_in(text)
    filled = fill_variables(text, dict.fromkeys(names, ""))
    assert (filled == text) == (not names)


@pytest.mark.parametrize(
    ("output_format", "sentence"),
    [("json", "one JSON object"), ("yaml", "one YAML mapping"), ("markdown", "Markdown"), ("text", "plain text")],
)
def test_io_schema_says_the_format(loader: RecipeLoader, put: Put, recipe: str, output_format: str, sentence: str) -> None:
    """Every format of 000 section 13.1 has its sentence."""
    put("recipes/pipeline/gate.yaml", recipe.replace("output_format: json", f"output_format: {output_format}"))
    assert sentence in io_schema(loader.load("pipeline/gate"))


def test_io_schema_shows_the_shape(loader: RecipeLoader) -> None:
    """An output schema follows in short notation."""
    shown = io_schema(loader.load("pipeline/gate"))
    assert shown.endswith('{\n"decision": "PROCEED"|"CLARIFY",\n"confidence": number\n}')
