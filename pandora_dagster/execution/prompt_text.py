"""Prompt texts: which blocks apply, names filled in, the schema shown. Knows `{{name}}`; knows no model."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pandora_dagster.contracts.recipes import LoadedRecipe, PromptFile, PromptWhen

_NAME = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def select_prompts(loaded: LoadedRecipe, *, mode: str, intent: str, policy: str) -> tuple[tuple[PromptFile, str], ...]:
    """The prompt files whose `when:` holds, in their order (DECISIONS 28)."""
    return tuple((file, text) for file, text in loaded.prompts if _holds(file.when, mode, intent, policy))


def _holds(when: PromptWhen | None, mode: str, intent: str, policy: str) -> bool:
    if when is None:
        return True
    return (
        (when.mode is None or when.mode == mode)
        and (when.intent is None or intent in when.intent)
        and (when.policy is None or policy in when.policy)
    )


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Names that the texts ask for as `{{name}}`, each once, in order (000 section 12.3)."""
    return tuple(dict.fromkeys(name for text in texts for name in _NAME.findall(text)))


def fill(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each `{{name}}` replaced; a value is never searched for names again. Raises KeyError for an unknown name."""
    return _NAME.sub(lambda found: variables[found.group(1)], text)


def render_schema(schema: Mapping[str, Any]) -> str:
    """The IO schema as the model reads it (000 section 6)."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
