"""Citations `[n]` and the `### Source References` that resolve them (specification 004, section 5.2)."""

import re
from collections.abc import Iterable, Sequence

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.documents.meta import subsections

REFERENCES_TITLE = "Source References"
_CITATION = re.compile(r"(?<!^)\[([0-9]{1,4})\](?!\()|^\[([0-9]{1,4})\](?![(:])", re.MULTILINE)
"""`[1]`, also in `[1][2]` and `as [1]: says`; not the link `[1](...)` and not the link definition `[1]: ...` that begins a line."""
_REFERENCE = re.compile(r"^- \[(\d{1,4})\] `([^`\n]+)`(?: - (.*))?$", re.MULTILINE)
_TURN_PATH = re.compile(r"^turns/(turn_\d{6,9})/")
_BRACKETED_NUMBER = re.compile(r"\[(\d{1,4})\]")
_SOURCE_MARK = re.compile(r"(?<!\\)\[source (\d+)\]")
"""A tool's mark for the source of a finding."""
_PAGE_SCHEMES = ("http://", "https://", "file:///")


def label_source_marks(text: str, labels: Sequence[str]) -> str:
    """Replace a tool's marks `[source 1]` by `labels`; a mark without a label is left unchanged."""
    return _SOURCE_MARK.sub(lambda m: f"[{labels[int(m[1]) - 1]}]" if 0 < int(m[1]) <= len(labels) else m[0], text)


def escape_source_marks(text: str) -> str:
    """Escape the marks in stored text that a tool quotes."""
    return _SOURCE_MARK.sub(r"\\\g<0>", text)


def escape_citations(text: str) -> str:
    """Escape every `[n]` in quoted text, so that it is shown and is not a citation."""
    return _BRACKETED_NUMBER.sub(r"\\[\1\\]", text)


def cited_labels(text: str) -> tuple[str, ...]:
    """The labels cited in `text`, each once, in order."""
    return tuple(dict.fromkeys(match[1] or match[2] for match in _CITATION.finditer(text)))


def citation_spans(text: str) -> tuple[tuple[int, int, str], ...]:
    """Start, end and label of each citation `[n]` in `text`."""
    return tuple((*match.span(), match[1] or match[2]) for match in _CITATION.finditer(text))


def page_address(text: str) -> str:
    """The address of a page that a description ends with as `<http://...>`, or a claim as `(http://...)`; "" where it has none."""
    opening = {">": "<", ")": "("}.get(text[-1:], "")
    place = max(text.rfind(f"{opening}{scheme}") for scheme in _PAGE_SCHEMES) if opening else -1
    address = text[place + 1 : -1] if place >= 0 else ""
    return address if not any(c.isspace() for c in address) else ""


def source_references(body: str) -> tuple[Source, ...]:
    """The sources that a section lists under `### Source References`."""
    reference_lines = subsections(body).get(REFERENCES_TITLE, "")
    return tuple(
        Source(label, path, description, turn.group(1) if (turn := _TURN_PATH.match(path)) else None)
        for label, path, description in _REFERENCE.findall(reference_lines)
    )


def reference_list(sources: Iterable[Source]) -> str:
    """The `### Source References` subsection for `sources`."""
    lines = [
        f"- [{s.label}] `{s.path}`" + (f" - {escape_citations(' '.join(s.description.split()))}" if s.description else "") for s in sources
    ]
    return f"### {REFERENCES_TITLE}\n\n" + "\n".join(lines)
