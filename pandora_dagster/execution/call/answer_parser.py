"""Parser of model answers by output format (000 section 13.1), with repair of common format errors. Schemas are checked elsewhere.

An answer that is empty, truncated, refused or in another format raises BadAnswerError with a message that the model can act on.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import yaml

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.documents.model_json import FENCED, read_json
from pandora_dagster.errors import BadAnswerError
from pandora_dagster.recipes.micro_tags import read_tagged

_WRAPPED = re.compile(r"\A```(?:markdown|md)[ \t]*\n(.*)\n```\Z", re.DOTALL | re.IGNORECASE)
_FENCE_LINE = re.compile(r"^[ \t]*```[ \t]*(\S*)", re.MULTILINE)
_NOT = r"(?:can(?:no|['’])t|can not|am (?:not able|unable) to|won['’]t|will not)"
_LOOKED = r"(?! (?:find|see|locate|tell|say|determine|confirm|verify)\b)"
_REFUSAL = re.compile(
    rf"\A(?:(?:I['’]?m|I am|we['’]?re)? ?(?:very |so |truly )?(?:sorry|afraid)\b[^.\n]{{0,20}}?\bI {_NOT}{_LOOKED}"
    rf"|(?:unfortunately, |sorry, )?I {_NOT} (?:help|assist|comply|fulfil|fulfill|do that|discuss|engage|continue|process|generate)\b"
    r"|as an? (?:AI|artificial intelligence|(?:large )?language model)\b)",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 600
_CUT_REASONS = {"length": "it ran into the output limit", "abort": "the server aborted it"}


def read_answer(text: str, output_format: OutputFormat, *, finish_reason: str = "stop", mapping: bool = True) -> Any:
    """The value of a raw answer: a dict for json and yaml (any value where `mapping` is False), the text for markdown and text, the parts
    of `micro_tags.TaggedAnswer` for tagged.

    Raises BadAnswerError. A repaired JSON answer still has to pass its schema: repair guesses.
    """
    if finish_reason in _CUT_REASONS:
        raise BadAnswerError(f"answer: cut off after {len(text)} characters, {_CUT_REASONS[finish_reason]}: expected a complete answer")
    plain = text.strip()
    if not plain:
        raise BadAnswerError("answer: empty: expected " + _expected(output_format, mapping))
    if output_format is OutputFormat.TAGGED:
        return _read_tagged(plain)
    if is_refusal(plain):
        raise BadAnswerError("answer: a refusal: expected " + _expected(output_format, mapping))
    if output_format in (OutputFormat.MARKDOWN, OutputFormat.TEXT):
        return _unwrapped(plain) if output_format is OutputFormat.MARKDOWN else plain
    value = read_json(plain) if output_format is OutputFormat.JSON else _read_yaml(plain)
    if mapping and not isinstance(value, dict):
        raise BadAnswerError(f"answer: {type(value).__name__} instead of an object: expected {_expected(output_format, mapping)}")
    return cast("Any", value)


def is_refusal(text: str) -> bool:
    """Whether a short answer without citations begins like a refusal; "I cannot find it in the documents" is not a refusal."""
    return len(text) <= _LONGEST_REFUSAL and bool(_REFUSAL.match(text)) and not cited_labels(text)


def strings(value: object) -> Iterator[str]:
    """Every string in a parsed answer, at any depth, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        children = cast("dict[object, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for child in children:
            yield from strings(child)


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader with the types of JSON only: a date stays text."""


_PlainLoader.yaml_implicit_resolvers = {
    sign: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read_yaml(text: str) -> object:
    fenced = next((body for language, body in FENCED.findall(text) if language.lower() in ("", "yaml", "yml")), text)
    try:
        if _has_aliases(fenced):
            raise BadAnswerError("answer: YAML with anchors or aliases: expected plain YAML")
        return cast("object", yaml.load(fenced, Loader=_PlainLoader))  # noqa: S506 - a SafeLoader with one resolver less
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadAnswerError(f"answer: not YAML ({str(error).splitlines()[0][:120]}): expected one YAML mapping") from error


def _has_aliases(text: str) -> bool:
    """Whether the text has aliases, by which a short answer can expand without limit; no recipe needs them."""
    tokens = cast("Iterator[yaml.Token]", yaml.scan(text, Loader=_PlainLoader))  # pyright: ignore[reportUnknownMemberType]
    return any(isinstance(token, (yaml.AliasToken, yaml.AnchorToken)) for token in tokens)


def _read_tagged(text: str) -> dict[str, Any]:
    parts = read_tagged(text)
    if not parts.text:
        raise BadAnswerError("answer: no text for the user, only tags: expected the answer after them")
    if is_refusal(parts.text):
        raise BadAnswerError("answer: a refusal: expected " + _expected(OutputFormat.TAGGED, mapping=True))
    return parts.as_parsed()


def _unwrapped(text: str) -> str:
    """Markdown without a fence around the whole of it, which some models add; fences within must open with a language."""
    wrapped = _WRAPPED.match(text)
    within: list[str] = _FENCE_LINE.findall(wrapped.group(1)) if wrapped else []
    if not wrapped or len(within) % 2 or not all(within[::2]) or any(within[1::2]):
        return text
    inner = wrapped.group(1).strip()
    if not inner:
        raise BadAnswerError("answer: an empty code fence: expected Markdown")
    return inner


def _expected(output_format: OutputFormat, mapping: bool) -> str:
    shape = {OutputFormat.JSON: "JSON object", OutputFormat.YAML: "YAML mapping"}.get(output_format)
    if shape:
        return f"one {shape if mapping else shape.split()[0] + ' value'}"
    return "plain text" if output_format is OutputFormat.TEXT else "Markdown"
