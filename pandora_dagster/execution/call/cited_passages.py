"""What context.md says under each citation label: the text with which a statement that cites the label is compared."""

import re
from collections import defaultdict

from pandora_dagster.contracts.model_calls import CallRequest
from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels, source_references
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.execution.call_inputs import CONTEXT_DOCUMENT

_SUBHEADING = re.compile(r"^### (.*)$")
_RESULT = re.compile(r"^Result (\d+):")
_RAW_RESULT = re.compile(r"^## (\d+)\. ", re.MULTILINE)
_UNCITED = (REFERENCES_TITLE, "Context Assessment")
"""Subsections that list sources and gaps, and say nothing that may be cited."""


def evidence_texts(request: CallRequest) -> dict[str, str]:
    """Label -> the text that a statement citing it is compared with: context.md under it, its tool result, the source itself."""
    documents = {document.name: "\n".join((document.text, *(item.text for item in document.items))) for document in request.documents}
    texts = cited_passages(ContextDocument.parse(documents.get(CONTEXT_DOCUMENT, "")), documents.get("toolresults.md", ""))
    return texts | {label: f"{texts.get(label, '')}\n\n{text}" for label, text in request.evidence.items()}


def cited_passages(context: ContextDocument, tool_results: str = "") -> dict[str, str]:
    """The text under each label that sections 2 and 4 list. `tool_results`: `toolresults.md`, whose results belong to those of section 4.

    A line belongs to the labels that it cites; one that cites none to those of the line before it, within its subsection. What is under no
    label belongs to the sources that no line of its section cites, e.g. the user's stored preferences.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    raw = _raw_results(tool_results)
    for number in (2, 4):
        body = context.body(number)
        listed = source_references(body)
        for source in listed:
            found[source.label].append(source.description)
        general, cited = _read_lines(body, found, raw)
        for label in {source.label for source in listed} - cited:
            found[label] += general
    return {label: "\n".join(lines) for label, lines in found.items()}


def _read_lines(body: str, found: defaultdict[str, list[str]], raw: dict[str, str]) -> tuple[list[str], set[str]]:
    """Add the lines to their labels; returns the lines under no label, and the labels that any line cites."""
    general, cited = list[str](), set[str]()
    labels: tuple[str, ...] = ()
    is_read, result = True, ""
    for line in body.splitlines():
        if heading := _SUBHEADING.match(line):
            match = _RESULT.match(heading[1])
            labels, is_read, result = (), heading[1].strip() not in _UNCITED, match[1] if match else ""
        if not is_read:
            continue
        own = cited_labels(line)
        labels = own or labels
        cited.update(own)
        general += [] if labels else [line]
        for label in labels:
            found[label].append(line)
        if own and result in raw:
            for label in own:
                found[label].append(raw[result])
            result = ""
    return general, cited


def _raw_results(text: str) -> dict[str, str]:
    """Number -> result of `toolresults.md`."""
    starts = list(_RAW_RESULT.finditer(text))
    ends = [m.start() for m in starts[1:]] + [len(text)]
    return {m[1]: text[m.end() : end] for m, end in zip(starts, ends, strict=False)}
