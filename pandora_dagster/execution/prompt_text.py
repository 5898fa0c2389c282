"""Prompt texts: which blocks apply, names filled in, how to answer. Knows `{{name}}`; counts nothing, calls no model."""

import json
import re
from collections.abc import Mapping

from pandora_dagster.contracts.recipes import LoadedRecipe, PromptWhen, Recipe
from pandora_dagster.contracts.words import OutputFormat

_VARIABLE = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
_FORMATS = {
    OutputFormat.JSON: "Answer with one JSON object and nothing else.",
    OutputFormat.YAML: "Answer with one YAML mapping and nothing else.",
    OutputFormat.MARKDOWN: "Answer in Markdown.",
    OutputFormat.TEXT: "Answer in plain text.",
}


def select_prompts(loaded: LoadedRecipe, *, mode: str, intent: str, policy: str) -> tuple[str, ...]:
    """The texts of the prompt blocks whose `when:` holds, in their order (DECISIONS 28)."""
    return tuple(text for file, text in loaded.prompts if file.when is None or _holds(file.when, mode, intent, policy))


def _holds(when: PromptWhen, mode: str, intent: str, policy: str) -> bool:
    return (
        (when.mode is None or when.mode == mode)
        and (when.intent is None or intent in when.intent)
        and (when.policy is None or policy in when.policy)
    )


def variables_in(text: str) -> tuple[str, ...]:
    """Names that a text asks for as `{{name}}`, each once, in order (000 section 12.3)."""
    return tuple(dict.fromkeys(_VARIABLE.findall(text)))


def fill(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each `{{name}}` replaced; a value is never searched for names again. Raises KeyError for an unknown name."""
    return _VARIABLE.sub(lambda found: variables[found.group(1)], text)


def io_schema(recipe: Recipe) -> str:
    """How to answer: the format, and the schema where the recipe has one (000 section 6)."""
    sentence = _FORMATS[recipe.output_format]
    if recipe.output_schema is None:
        return sentence
    return f"{sentence} It fits this JSON Schema:\n{json.dumps(recipe.output_schema, ensure_ascii=False, separators=(',', ':'))}"
