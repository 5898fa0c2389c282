"""`_meta` blocks, fenced YAML inside Markdown: data for code beside text for users (specification 004, section 5)."""

import re
from collections.abc import Mapping
from typing import Any, cast

import yaml

from pandora_dagster.errors import DocumentError

_BLOCK = re.compile(r"^```yaml\n(_meta:[ \t\n].*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_YAML_LINE_ENDS = re.compile("[\x85\u2028\u2029\ufeff]")
_MAX_LINE_CHARACTERS = 10_000
"""So long that no value is wrapped."""
_SUBSECTION = re.compile(r"^### (.+?)[ \t]*$", re.MULTILINE)


class _BlockMapping(dict[str, Any]):
    """A mapping that is always written with one key a line, as in specification 004, section 5.2."""


class _Dumper(yaml.SafeDumper):
    """SafeDumper for `_BlockMapping` that repeats a value instead of writing an alias, for readability."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    _BlockMapping, lambda dumper, values: dumper.represent_mapping("tag:yaml.org,2002:map", values.items(), flow_style=False)
)


def _represent_text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Unquoted, the line ends of YAML 1.1 (NEL, LS, PS) would be folded into blanks by the reader.
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"' if _YAML_LINE_ENDS.search(text) else None)


_Dumper.add_representer(str, _represent_text)


def meta_block(values: Mapping[str, Any]) -> str:
    """A fenced YAML block with `values` under `_meta`, in the given order."""
    block = {"_meta": _BlockMapping(values)}
    text = yaml.dump(block, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_MAX_LINE_CHARACTERS)
    return f"```yaml\n{text}```"


def read_meta(text: str) -> dict[str, Any]:
    """The first `_meta` block of `text`, {} without one; raises DocumentError where it is not YAML."""
    match = _BLOCK.search(text)
    if not match:
        return {}
    try:
        value = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        raise DocumentError(f"_meta block: not YAML: {str(error).splitlines()[0]}") from error
    meta = cast("dict[str, object]", value).get("_meta") if isinstance(value, dict) else None
    if not isinstance(meta, dict):
        raise DocumentError("_meta block: expected a mapping under `_meta:`")
    return cast("dict[str, Any]", meta)


def subsections(body: str) -> dict[str, str]:
    """Title of each `### Title` -> the text under it, in order. Text before the first title is left out."""
    headings = list(_SUBSECTION.finditer(body))
    ends = [heading.start() for heading in headings[1:]] + [len(body)] * bool(headings)
    return {heading[1]: body[heading.end() : end].strip("\n") for heading, end in zip(headings, ends, strict=True)}


def subsection_metas(body: str) -> dict[str, dict[str, Any]]:
    """Subsection title -> its `_meta`, for the subsections that have one (specification 004, section 5.3)."""
    return {title: meta for title, text in subsections(body).items() if (meta := read_meta(text))}
