"""The tool results that section 4 reports: which tool, whether it succeeded, under which source it is cited."""

import re
from dataclasses import dataclass

from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.runtime.extractive.evidence.header_lines import split_at_heads

_RESULT_HEAD = re.compile(r"^### Result (\d+): *`?([\w.]+)`?[^\n]*$", re.MULTILINE)
_FAILED_STATUS = re.compile(r"^\W*(?:status:?(?:\*\*)? *+(?:: *+)?(?:\*\*)?)?(?:failed|failure|error)\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One `### Result N: tool` of section 4."""

    tool: str
    ok: bool
    label: str | None
    """The first citation on its status line."""
    only: str | None = None
    """The same, where the status line names no other."""


def read_results(section: str) -> list[ToolResult]:
    """The tool results of section 4, in order. Only headings that count on are results: found text may hold others."""
    heads: list[re.Match[str]] = []
    for head in _RESULT_HEAD.finditer(section):
        heads += [head] if int(head.group(1)) == len(heads) + 1 else []
    return [_read_result(head[2], body.strip()) for head, body in split_at_heads(heads, section)]


def _read_result(tool: str, body: str) -> ToolResult:
    status = body.split("\n", 1)[0]
    labels = cited_labels(status)
    return ToolResult(tool, not _FAILED_STATUS.match(body), next(iter(labels), None), labels[0] if len(labels) == 1 else None)
