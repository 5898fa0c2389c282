"""The tool results that section 4 reports: which tool, whether it succeeded, under which source it is cited."""

import re
from dataclasses import dataclass

from pandora_dagster.documents.citations import cited_labels

_RESULT_HEAD = re.compile(r"^### Result (\d+): *`?([\w.]+)`?[^\n]*$", re.MULTILINE)
_FAILED_STATUS = re.compile(r"^\W*(?:\*\*)?(?:status:?(?:\*\*)? *:? *(?:\*\*)?)?(?:failed|failure|error)\b", re.IGNORECASE | re.MULTILINE)


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
    ends = [*(h.start() for h in heads[1:]), len(section)][: len(heads)]
    return [_read_result(h.group(2), section[h.end() : end].strip()) for h, end in zip(heads, ends, strict=True)]


def _read_result(tool: str, body: str) -> ToolResult:
    status = body.split("\n", 1)[0]
    labels = cited_labels(status)
    return ToolResult(tool, not _FAILED_STATUS.match(body), next(iter(labels), None), labels[0] if len(labels) == 1 else None)
