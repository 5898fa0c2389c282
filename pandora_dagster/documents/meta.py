"""`_meta` blocks, fenced YAML inside Markdown: data for code beside text for users (specification 004, section 5)."""

import re
from collections.abc import Mapping
from typing import Any, cast

from pandora_dagster.documents.delimited_blocks import delimited_blocks
from pandora_dagster.documents.plain_yaml import BlockMapping, parse_yaml, render_yaml
from pandora_dagster.errors import DocumentError

_OPENING = re.compile(r"^```yaml\n(?=_meta:[ \t\n])", re.MULTILINE)
_CLOSING = re.compile(r"^```[ \t]*$", re.MULTILINE)
_SUBSECTION = re.compile(r"^### (.+)$", re.MULTILINE)


def meta_block(values: Mapping[str, Any]) -> str:
    """A fenced YAML block with `values` under `_meta`, in the given order."""
    return f"```yaml\n{render_yaml({'_meta': BlockMapping(values)})}```"


def read_meta(text: str) -> dict[str, Any]:
    """The first `_meta` block of `text`, {} without one; raises DocumentError where it is not YAML."""
    block = next(delimited_blocks(text, _OPENING, _CLOSING), None)
    if block is None:
        return {}
    value: object = parse_yaml(block.body, where="_meta block")
    meta = cast("dict[str, object]", value).get("_meta") if isinstance(value, dict) else None
    if not isinstance(meta, dict):
        raise DocumentError("_meta block: expected a mapping under `_meta:`")
    return cast("dict[str, Any]", meta)


def subsections(body: str) -> dict[str, str]:
    """Title of each `### Title` -> the text under it, in order. Text before the first title is left out."""
    headings = list(_SUBSECTION.finditer(body))
    ends = [heading.start() for heading in headings[1:]] + [len(body)] * bool(headings)
    return {
        heading[1][:1] + heading[1][1:].rstrip(" \t"): body[heading.end() : end].strip("\n")
        for heading, end in zip(headings, ends, strict=True)
    }


def subsection_metas(body: str) -> dict[str, dict[str, Any]]:
    """Subsection title -> its `_meta`, for the subsections that have one (specification 004, section 5.3)."""
    return {title: meta for title, text in subsections(body).items() if (meta := read_meta(text))}
