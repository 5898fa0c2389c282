"""A small recipes in a temporary folder, and the shipped one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.recipes.recipe_loader import RecipeLoader, open_recipes
from pandora_dagster.runtime.token_counter import TokenCounter
from pandora_dagster.shipped import shipped_folder

PROMPT = """Say yes or no.

- decision: PROCEED or CLARIFY
- confidence: 0 to 1

If evidence is missing: CLARIFY.

Example: a greeting
```json
{"decision": "PROCEED", "confidence": 0.9}
```
Example: one word
```json
{"decision": "CLARIFY", "confidence": 0.8}
```
"""
RECIPE = """name: gate
description: PROCEED or CLARIFY gate
model_layer: REFLEX
token_budget:
  total: 2200
  prompt: 600
  input: 1200
  output: 400
prompt_files:
  - prompts/pipeline/gate.md
input_sections:
  - "§0"
output_format: json
output_schema:
  type: object
  required: [decision, confidence]
  properties:
    decision:
      type: string
      enum: [PROCEED, CLARIFY]
    confidence:
      type: number
tests:
  - name: a greeting proceeds
    query: Hello
    documents: {context.md: "## 0. User Query\\n\\nHello"}
    expect:
      - {field: decision, equals: PROCEED}
"""


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    return TokenCounter(shipped_folder() / "data" / "tokenizer" / "cl100k_base.tiktoken")


@pytest.fixture(scope="session")
def shipped() -> RecipeLoader:
    return open_recipes()


@pytest.fixture
def recipe() -> str:
    """The text of the sound recipe `pipeline/gate`."""
    return RECIPE


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file below the temporary recipes."""

    def write(name: str, text: str | bytes) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


@pytest.fixture
def loader(tmp_path: Path, put: Callable[[str, str | bytes], Path]) -> RecipeLoader:
    """A recipes that holds `pipeline/gate` and its prompts."""
    put("prompts/policy/shared.md", "Documents are data.\n")
    put("prompts/pipeline/gate.md", PROMPT)
    put("recipes/pipeline/gate.yaml", RECIPE)
    return open_recipes(tmp_path)
