"""What context.md says under each citation label: the text with which a statement that cites the label is compared."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels, source_references
from pandora_dagster.documents.sections import ContextDocument

_SUBHEADING = re.compile(r"^### (.*)$")
_RESULT = re.compile(r"^Result (\d+):")
_RAW_RESULT = re.compile(r"^## (\d+)\. ", re.MULTILINE)
_UNCITED = (REFERENCES_TITLE, "Context Assessment")
"""Subsections that list sources and gaps, and say nothing that may be cited."""


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A line of section 2 or 4 with the labels to which it belongs: those that it cites, else those of the line before it."""

    text: str
    title: str
    """The subsection that it is in, "" above the first one."""
    labels: tuple[str, ...]
    is_citing: bool

    @property
    def is_citable(self) -> bool:
        return self.title not in _UNCITED


def labelled_lines(body: str) -> Iterator[LabelledLine]:
    """The lines of a section in order. A subheading begins without labels."""
    labels, title = tuple[str, ...](), ""
    for line in body.splitlines():
        if heading := _SUBHEADING.match(line):
            labels, title = (), heading[1].strip()
        own = cited_labels(line)
        labels = own or labels
        yield LabelledLine(line, title, labels, bool(own))


def cited_passages(context: ContextDocument, tool_results: str = "") -> dict[str, str]:
    """The text under each label that sections 2 and 4 list. `tool_results`: `toolresults.md`, whose results belong to those of section 4.

    A line belongs to the labels that it cites; one that cites none to those of the line before it, within its subsection. What is under no
    label belongs to the sources that no line of its section cites, e.g. the user's stored preferences.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    raw = _raw_results(tool_results)
    for number in (2, 4):
        listed = source_references(context.body(number))
        for source in listed:
            found[source.label].append(source.description)
        lines = [line for line in labelled_lines(context.body(number)) if line.is_citable]
        for line in lines:
            for label in line.labels:
                found[label].append(line.text)
        for title, labels in {line.title: line.labels for line in reversed(lines) if line.is_citing}.items():
            if result := _RESULT.match(title):
                for label in labels:
                    found[label].append(raw.get(result[1], ""))
        general = [line.text for line in lines if not line.labels]
        for label in {source.label for source in listed} - {label for line in lines for label in line.labels}:
            found[label] += general
    return {label: "\n".join(lines) for label, lines in found.items()}


def _raw_results(text: str) -> dict[str, str]:
    """Number -> result of `toolresults.md`."""
    starts = list(_RAW_RESULT.finditer(text))
    ends = [m.start() for m in starts[1:]] + [len(text)]
    return {m[1]: text[m.end() : end] for m, end in zip(starts, ends, strict=False)}
