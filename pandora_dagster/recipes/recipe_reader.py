"""Reads one recipe file with its prompts into a LoadedRecipe, or reports all its faults at once (specification 000, section 18).

The YAML is parsed with the line of each field (`plain_yaml`), checked by the `Recipe` model and, for its output schema, by
`output_schema`. The version of a recipe is the hash of its fields and texts.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.recipe_schema import ASSERTIONS, LoadedRecipe, PromptFile, PromptFrames, Recipe, RecipeTest
from pandora_dagster.documents.plain_yaml import SourceFault, YamlSource, dotted_path, read_yaml_mapping
from pandora_dagster.errors import RecipeValidationError
from pandora_dagster.recipes.output_schema import schema_faults
from pandora_dagster.recipes.recipe_paths import FRAMES, POLICY_PROMPT
from pandora_dagster.recipes.static_prompts import variables_in
from pandora_dagster.recipes.text_files import read_text
from pandora_dagster.shipped import shipped_folder

INLINE_PROMPT = "prompts/inline/system_prompt.md"
"""The path in LoadedRecipe.prompts of a recipe's own `system_prompt`; no such file exists."""
_FRAME_VARIABLES = {"answer_shape": "shape", "retry": "error"}
"""Frame -> the variable that it must contain; the others contain none."""
_PROMPT_CHOICE = "expected exactly one of system_prompt and prompt_files"
_INPUT_CHOICE = "expected input_docs, input_sections or input_images"
_MAX_QUOTED_CHARACTERS = 60
"""Characters of a value that a fault quotes."""
_TESTS_BLOCK = re.compile(r"^tests:.*?(?=^[^\s#-]|\Z)", re.MULTILINE | re.DOTALL)
"""The block `tests:` of a recipe, up to the next field."""
_YAML_TYPE_NAMES = {
    "tuple_type": "a list",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "string_type": "a string",
}
"""Error type of pydantic -> the YAML type that was expected."""


def read_recipe(file: Path, prompts: Path, *, path: str, display_path: str, with_tests: bool = True) -> LoadedRecipe:
    """Load one recipe; raises RecipeValidationError with every fault as `file:line: field: what: what was expected`.

    `path` names the recipe in records, `display_path` its file in faults; `prompts` is the folder of prompts. Without tests a recipe is
    read in half the time, and a faulty test stops no call.
    """
    text = read_text(file)
    if not with_tests and not isinstance(text, SourceFault):
        text = _TESTS_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    source, recipe, faults = (YamlSource(None, (text,)), None, ()) if isinstance(text, SourceFault) else _parse_recipe(text)
    references = _prompt_references(source.fields)
    texts = {name: read_prompt(prompts, name) for name in references}
    policy = read_prompt(prompts, POLICY_PROMPT)
    prompt_faults = [
        SourceFault(source.line(references[name]), f"{dotted_path(references[name])}: {text.text}")
        for name, text in texts.items()
        if isinstance(text, SourceFault)
    ]
    frames, frame_faults = read_frames(prompts, recipe.output_format) if recipe else (None, ())
    all_faults = [*source.faults, *faults, *prompt_faults, *frame_faults, *([policy] if isinstance(policy, SourceFault) else [])]
    if all_faults or recipe is None or frames is None or isinstance(policy, SourceFault):
        raise RecipeValidationError([f"{display_path}:{f.line}: {f.text}" for f in sorted(all_faults, key=lambda f: f.line)])
    return _build_recipe(recipe, path, {name: text for name, text in texts.items() if isinstance(text, str)}, policy, frames)


def read_prompt(prompts: Path, name: str) -> str | SourceFault:
    """The text of `prompts/...`, without the blank lines around it."""
    text = read_text(prompts / name.removeprefix("prompts/"))
    if isinstance(text, SourceFault):
        return SourceFault(1, f"{name}: {text.text}")
    return text.strip()


def frame_files(output_format: OutputFormat) -> dict[str, str]:
    """Field of PromptFrames -> its file, for recipes of this output format."""
    names = {name: name for name in PromptFrames.model_fields} | {"answer_format": f"{output_format}_answer"}
    return {field: f"{FRAMES}{name}.md" for field, name in names.items()}


def read_frames(prompts: Path, output_format: OutputFormat) -> tuple[PromptFrames | None, tuple[SourceFault, ...]]:
    """The frames of a folder of prompts, and their faults; None with faults. A frame that the folder does not have is the shipped one."""
    texts: dict[str, str] = {}
    faults: list[SourceFault] = []
    for field, name in frame_files(output_format).items():
        folder = prompts if (prompts / name.removeprefix("prompts/")).is_file() else shipped_folder() / "prompts"
        text = read_prompt(folder, name)
        expected = (_FRAME_VARIABLES[field],) if field in _FRAME_VARIABLES else ()
        if isinstance(text, SourceFault):
            faults.append(text)
        elif variables_in(text) != expected:
            shown = ", ".join(f"{{{{{variable}}}}}" for variable in expected) or "none"
            faults.append(SourceFault(1, f"{name}: variables {', '.join(variables_in(text)) or 'none'}: expected {shown}"))
        else:
            texts[field] = text
    return (None if faults else PromptFrames(**texts)), tuple(faults)


@lru_cache(maxsize=128)
def _parse_recipe(text: str) -> tuple[YamlSource, Recipe | None, tuple[SourceFault, ...]]:
    """Parse a recipe text; returns its source, the recipe where it is valid, and the faults. Cached for all loaders of the process."""
    source = read_yaml_mapping(text)
    if source.data is None:
        return source, None, ()
    faults = (*_choice_faults(source), *_output_faults(source))
    try:
        return source, Recipe.model_validate(source.data), faults
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        return source, None, (*faults, *(_fault(source, d) for d in details if d["loc"]))


def _choice_faults(source: YamlSource) -> Iterator[SourceFault]:
    """The faults that the model would report only once every field is valid, so that all are reported at once."""
    data = source.fields
    if (data.get("system_prompt") is None) == (not data.get("prompt_files")):
        has_both = data.get("system_prompt") is not None
        yield SourceFault(
            source.line(("system_prompt",)) if has_both else 1, f"prompt: {'both' if has_both else 'none'} given: {_PROMPT_CHOICE}"
        )
    if not any(data.get(name) for name in ("input_docs", "input_sections", "input_images")):
        yield SourceFault(1, f"input: none given: {_INPUT_CHOICE}")


def _output_faults(source: YamlSource) -> Iterator[SourceFault]:
    schema: Any = source.fields.get("output_schema")
    if isinstance(schema, dict):
        schema = cast("dict[str, Any]", schema)
        for schema_path, text in schema_faults(schema):
            path = ("output_schema", *schema_path)
            yield SourceFault(source.line(path), f"{dotted_path(path)}: {text}")


def _fault(source: YamlSource, detail: ErrorDetails) -> SourceFault:
    """An error of pydantic as a fault at its line."""
    path = detail["loc"]
    line = source.line(path[:-1] if detail["type"] == "missing" else path)
    return SourceFault(line, f"{dotted_path(path)}: {_fault_text(detail)}")


def _fault_text(detail: ErrorDetails) -> str:
    """`what: what was expected`, in the words of this project."""
    if detail["type"] == "missing":
        return "missing: expected this required field"
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown_field_text(detail["loc"])
    if detail["type"] in _YAML_TYPE_NAMES:
        return f"{_quote_value(detail['input'])}: expected {_YAML_TYPE_NAMES[detail['type']]}"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ").replace("String should ", "a string to ")
    if detail["type"] == "value_error":
        return message
    return f"{_quote_value(detail['input'])}: expected {message[0].lower() + message[1:]}"


_REMOVED_FIELDS = {
    "token_budget.thinking": "models answer without thinking",
}
"""Field of earlier recipes -> why it is none any more."""


def _unknown_field_text(path: tuple[int | str, ...]) -> str:
    if reason := _REMOVED_FIELDS.get(".".join(part for part in path if isinstance(part, str))):
        return f"no longer a field: {reason}: expected no such line"
    if path[0] != "tests":
        return "unknown field: expected a field of the recipe schema"
    if "expect" in path[:-1]:
        return f"unknown assertion: expected one of {', '.join(ASSERTIONS)}"
    return f"unknown field: expected one of {', '.join(RecipeTest.model_fields)}"


def _quote_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_QUOTED_CHARACTERS else f"{text[: _MAX_QUOTED_CHARACTERS - 3]}..."


def _prompt_references(data: Mapping[str, Any]) -> dict[str, tuple[str | int, ...]]:
    """Each prompt file that a recipe names in a valid form -> the path of the field that names it."""
    listed: Any = data.get("prompt_files")
    references: dict[str, tuple[str | int, ...]] = {}
    for index, item in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else []):
        try:
            entry = PromptFile.model_validate({"path": item} if isinstance(item, str) else item)
        except ValidationError:
            continue  # reported as a fault of the recipe itself
        references.setdefault(entry.path, ("prompt_files", index))
    return references


def _build_recipe(recipe: Recipe, path: str, texts: Mapping[str, str], policy: str, frames: PromptFrames) -> LoadedRecipe:
    if recipe.system_prompt is not None:
        prompts = ((PromptFile(path=INLINE_PROMPT), recipe.system_prompt.strip()),)
    else:
        prompts = tuple((entry, texts[entry.path]) for entry in recipe.prompt_files)
    all_texts = version_texts(policy, (text for _, text in prompts), frames)
    return LoadedRecipe(
        recipe=recipe,
        path=path,
        version=content_digest([versioned_fields(recipe), all_texts]),
        prompt_version=content_digest(all_texts),
        prompts=prompts,
        policy=policy,
        frames=frames,
    )


def version_texts(policy: str, prompts: Iterable[str], frames: PromptFrames) -> list[str]:
    """The texts of a recipe that its version is the hash of, with its fields."""
    return [policy, *prompts, *frames.texts]


def versioned_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields of a recipe that its version is the hash of, with its texts: all but its tests, which no call sees."""
    later = set[str]() if recipe.input_images else {"input_images"}  # left out at its default: versions from before the field stay
    return recipe.model_dump(mode="json", exclude={"tests", *later})


def content_digest(value: object) -> str:
    """The first 12 hex digits of the sha256 of `value` as canonical JSON."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
