"""The constant beginning of every prompt of a recipe, which servers can cache: policy, role prompt, IO schema."""

import re
from collections.abc import Mapping
from itertools import product

from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptWhen
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.recipes.schema_notation import render_schema

_VARIABLE = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
KNOWN_VARIABLES = frozenset({"mode", "phase", "session_id", "turn_id", "user_id", "intent", "tools"})
"""Variables that every call supplies; a recipe need not declare them (specification 000, section 12.3)."""


def select_prompts(loaded: LoadedRecipe, *, mode: str, intent: str) -> tuple[str, ...]:
    """The texts of the role prompt in this case, in order, without blocks whose `when` does not hold.

    See decision 28 (docs/decisions/28-prompt-blocks-by-case.md).
    """
    return tuple(text for entry, text in loaded.prompts if entry.when is None or _holds(entry.when, mode, intent))


def _holds(when: PromptWhen, mode: str, intent: str) -> bool:
    return (when.mode is None or when.mode == mode) and (when.intent is None or intent in when.intent)


def prompt_cases(loaded: LoadedRecipe) -> tuple[dict[str, str], ...]:
    """Every mode and intent in which the recipe's prompt differs, as arguments for `select_prompts`."""
    whens = [entry.when for entry, _ in loaded.prompts if entry.when]
    modes = [str(loaded.recipe.mode)] if loaded.recipe.mode else ["chat", "code"]
    intents = {"", *(intent for when in whens for intent in when.intent or ())}
    return tuple({"mode": m, "intent": i} for m, i in product(modes, sorted(intents)))


def io_schema(loaded: LoadedRecipe) -> str:
    """How to answer: the format in one sentence and, where the recipe has one, the output schema in short notation (specification 000,
    section 6)."""
    sentence, schema = loaded.frames.answer_format, loaded.recipe.output_schema
    return sentence if schema is None else f"{sentence} {fill_variables(loaded.frames.answer_shape, {'shape': render_schema(schema)})}"


def variables_in(text: str) -> tuple[str, ...]:
    """Names of the `{{variables}}` in a prompt text, each once, in order."""
    return tuple(dict.fromkeys(_VARIABLE.findall(text)))


def fill_variables(text: str, variables: Mapping[str, str], *, where: str = "prompt") -> str:
    """Replace every `{{name}}` in `text`; a `{{name}}` inside a value stays. Raises one ConfigurationError with all missing names.

    Only for texts of recipes and prompts, never for the text of a user or a document (specification 000, section 12.3).
    """
    missing = [name for name in variables_in(text) if name not in variables]
    if missing:
        raise ConfigurationError(f"{where}: no value for {', '.join(missing)}: expected variables {', '.join(variables_in(text))}")
    return _VARIABLE.sub(lambda match: variables[match[1]], text)
