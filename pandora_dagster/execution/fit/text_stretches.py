"""A text as stretches that stay verbatim and stretches that may be shortened. Knows the Markdown of context.md; shortens nothing.

Verbatim are section 0, headings of sections and their `###` parts, `_meta` blocks, and the list of sources that citations lead to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.documents.citations import REFERENCES_TITLE
from pandora_dagster.documents.sections import ContextDocument

_META = r"^`{3,}yaml\n_meta:.*?^`{3,}[ \t]*(?:\n|\Z)"
_FIXED_IN_TEXT = re.compile(_META, re.MULTILINE | re.DOTALL)
_FIXED_IN_SECTION = re.compile(rf"^### {REFERENCES_TITLE}[ \t]*\n.*?(?=^### |\Z)|{_META}|^### [^\n]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextStretch:
    """A stretch of a text; joined in order, the stretches are the text."""

    text: str
    is_fixed: bool


def text_stretches(text: str) -> tuple[TextStretch, ...]:
    """The stretches of any text, in order; a text without sections of context.md is fixed in its `_meta` blocks alone."""
    document = ContextDocument.parse(text)
    found = [*_divided(document.preamble, _FIXED_IN_TEXT)]
    for section in document.sections:
        if section.number == 0:
            found.append(TextStretch(section.text, True))
        else:
            found += [TextStretch(section.heading, True), *section_stretches(section.body)]
    return tuple(stretch for stretch in found if stretch.text)


def section_stretches(body: str) -> tuple[TextStretch, ...]:
    """The stretches of a section's body, in order; blank stretches count as fixed."""
    return tuple(stretch for stretch in _divided(body, _FIXED_IN_SECTION) if stretch.text)


def _divided(text: str, fixed: re.Pattern[str]) -> Iterator[TextStretch]:
    at = 0
    for found in fixed.finditer(text):
        yield _loose_stretch(text[at : found.start()])
        yield TextStretch(found.group(), True)
        at = found.end()
    yield _loose_stretch(text[at:])


def _loose_stretch(text: str) -> TextStretch:
    return TextStretch(text, not text.strip())
