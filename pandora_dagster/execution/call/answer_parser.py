"""Parser of model answers by output format (specification 000, section 13.1), with repair of common format errors.

An answer that is empty, truncated, refused or in another format raises BadAnswerError with a message that the model can act on.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.documents.delimited_blocks import code_fences
from pandora_dagster.documents.model_json import read_json
from pandora_dagster.documents.plain_yaml import read_yaml
from pandora_dagster.errors import BadAnswerError

_OUTER_FENCE = re.compile(r"\A```(?:markdown|md)[ \t]*\n(.*)\n```\Z", re.DOTALL | re.IGNORECASE)
_FENCE_LINE = re.compile(r"^[ \t]*```[ \t]*(\S*)", re.MULTILINE)
_CANNOT = r"(?:can(?:no|['’])t|can not|am (?:not able|unable) to|won['’]t|will not)"
_NOT_A_SEARCH_RESULT = r"(?! (?:find|see|locate|tell|say|determine|confirm|verify)\b)"
_REFUSAL = re.compile(
    rf"\A(?:(?:I['’]?m|I am|we['’]?re)? ?(?:very |so |truly )?(?:sorry|afraid)\b[^.\n]{{0,20}}?\bI {_CANNOT}{_NOT_A_SEARCH_RESULT}"
    rf"|(?:unfortunately, |sorry, )?I {_CANNOT} (?:help|assist|comply|fulfil|fulfill|do that|discuss|engage|continue|process|generate)\b"
    r"|as an? (?:AI|artificial intelligence|(?:large )?language model)\b)",
    re.IGNORECASE,
)
_MAX_REFUSAL_CHARACTERS = 600
_MAX_ERROR_CHARACTERS = 120
_INCOMPLETE_REASONS = {"length": "it ran into the output limit", "abort": "the server aborted it"}


def read_answer(text: str, output_format: OutputFormat, *, finish_reason: str = "stop", mapping: bool = True) -> Any:
    """The value of a raw answer, by its format.

    json and yaml: a dict, or any value where `mapping` is False; markdown and text: the text.

    Raises BadAnswerError. A repaired JSON answer still has to pass its schema, since repair guesses.
    """
    if finish_reason in _INCOMPLETE_REASONS:
        raise BadAnswerError(
            f"answer: cut off after {len(text)} characters, {_INCOMPLETE_REASONS[finish_reason]}: expected a complete answer"
        )
    answer = text.strip()
    if not answer:
        raise BadAnswerError("answer: empty: expected " + _expected_form(output_format, mapping))
    if is_refusal(answer):
        raise BadAnswerError("answer: a refusal: expected " + _expected_form(output_format, mapping))
    if output_format in (OutputFormat.MARKDOWN, OutputFormat.TEXT):
        return _remove_outer_fence(answer) if output_format is OutputFormat.MARKDOWN else answer
    value = read_json(answer) if output_format is OutputFormat.JSON else _read_yaml(answer)
    if mapping and not isinstance(value, dict):
        raise BadAnswerError(f"answer: {type(value).__name__} instead of an object: expected {_expected_form(output_format, mapping)}")
    return cast("Any", value)


def is_refusal(text: str) -> bool:
    """Whether a short answer without citations begins like a refusal; "I cannot find it in the documents" is not a refusal."""
    return len(text) <= _MAX_REFUSAL_CHARACTERS and bool(_REFUSAL.match(text)) and not cited_labels(text)


def strings(value: object) -> Iterator[str]:
    """Every string in a parsed answer, at any depth, without the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        children = cast("dict[object, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for child in children:
            yield from strings(child)


def _read_yaml(text: str) -> object:
    """The value of the first YAML fence, or of the whole text."""
    yaml_text = next((body for language, body in code_fences(text) if language.lower() in ("", "yaml", "yml")), text)
    source = read_yaml(yaml_text)
    if source.faults:
        fault = source.faults[0]
        raise BadAnswerError(f"answer: line {fault.line}: {fault.text[:_MAX_ERROR_CHARACTERS]}: expected one plain YAML mapping")
    return source.data


def _remove_outer_fence(text: str) -> str:
    """Markdown without a fence around the whole answer, which some models add; fences inside it must open with a language."""
    outer = _OUTER_FENCE.match(text)
    inner_fences: list[str] = _FENCE_LINE.findall(outer.group(1)) if outer else []
    if not outer or len(inner_fences) % 2 or not all(inner_fences[::2]) or any(inner_fences[1::2]):
        return text
    content = outer.group(1).strip()
    if not content:
        raise BadAnswerError("answer: an empty code fence: expected Markdown")
    return content


def _expected_form(output_format: OutputFormat, mapping: bool) -> str:
    """The expected form of an answer, for messages."""
    shape = {OutputFormat.JSON: "JSON object", OutputFormat.YAML: "YAML mapping"}.get(output_format)
    if shape:
        return f"one {shape if mapping else shape.split()[0] + ' value'}"
    return "plain text" if output_format is OutputFormat.TEXT else "Markdown"
