"""Citations `[n]` and the `### Source References` that resolve them (004 section 5.2)."""

import re
from collections.abc import Iterable, Sequence

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.documents.meta import subsections

REFERENCES_TITLE = "Source References"
_CITED = re.compile(r"(?<!^)\[([0-9]{1,4})\](?!\()|^\[([0-9]{1,4})\](?![(:])", re.MULTILINE)
"""`[1]`, also in `[1][2]` and `as [1]: says`; not the link `[1](...)` and not the link definition `[1]: ...` that begins a line."""
_REFERENCE = re.compile(r"^- \[(\d{1,4})\] `([^`\n]+)`(?: - (.*))?$", re.MULTILINE)
_TURN_PATH = re.compile(r"^turns/(turn_\d{6,9})/")


_NUMBER = re.compile(r"\[(\d{1,4})\]")
_MARK = re.compile(r"(?<!\\)\[source (\d+)\]")
"""A tool's mark for the source of a finding."""


def relabel(text: str, labels: Sequence[str]) -> str:
    """Replace a tool's marks `[source 1]` by `labels`; a mark without a label is left unchanged."""
    return _MARK.sub(lambda m: f"[{labels[int(m[1]) - 1]}]" if 0 < int(m[1]) <= len(labels) else m[0], text)


def escape_source_marks(text: str) -> str:
    """Escape the marks in stored text that a tool quotes."""
    return _MARK.sub(r"\\\g<0>", text)


def escape_citations(text: str) -> str:
    """Escape every `[n]` in quoted text, so that it is shown and is not a citation."""
    return _NUMBER.sub(r"\\[\1\\]", text)


def cited_labels(text: str) -> tuple[str, ...]:
    """The labels cited in `text`, each once, in order."""
    return tuple(dict.fromkeys(found.group(1) or found.group(2) for found in _CITED.finditer(text)))


def citation_spans(text: str) -> tuple[tuple[int, int, str], ...]:
    """Begin, end and label of each citation `[n]` in `text`."""
    return tuple((*found.span(), found.group(1) or found.group(2)) for found in _CITED.finditer(text))


def source_references(body: str) -> tuple[Source, ...]:
    """The sources that a section lists under `### Source References`."""
    listed = subsections(body).get(REFERENCES_TITLE, "")
    return tuple(
        Source(label, path, description, turn.group(1) if (turn := _TURN_PATH.match(path)) else None)
        for label, path, description in _REFERENCE.findall(listed)
    )


def reference_list(sources: Iterable[Source]) -> str:
    """The `### Source References` subsection for `sources`."""
    lines = [
        f"- [{s.label}] `{s.path}`" + (f" - {escape_citations(' '.join(s.description.split()))}" if s.description else "") for s in sources
    ]
    return f"### {REFERENCES_TITLE}\n\n" + "\n".join(lines)
