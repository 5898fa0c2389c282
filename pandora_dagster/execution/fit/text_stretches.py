"""Division of a text into stretches that stay verbatim and stretches that may be shortened.

In context.md these stay verbatim: section 0, the headings of sections and of their `###` parts, `_meta` blocks, and the list of sources
that citations lead to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.documents.citations import REFERENCES_TITLE
from pandora_dagster.documents.sections import ContextDocument

_META_BLOCK = r"^`{3,}yaml\n_meta:.*?^`{3,}[ \t]*(?:\n|\Z)"
_FIXED_IN_TEXT = re.compile(_META_BLOCK, re.MULTILINE | re.DOTALL)
_FIXED_IN_SECTION = re.compile(
    rf"^### {REFERENCES_TITLE}[ \t]*\n.*?(?=^### |\Z)|{_META_BLOCK}|^### [^\n]*(?:\n|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class TextStretch:
    """A stretch of a text; joined in order, the stretches are the text."""

    text: str
    is_fixed: bool


def text_stretches(text: str) -> tuple[TextStretch, ...]:
    """The stretches of any text, in order; in a text without sections of context.md only `_meta` blocks are fixed."""
    document = ContextDocument.parse(text)
    stretches = [*_divide(document.preamble, _FIXED_IN_TEXT)]
    for section in document.sections:
        if section.number == 0:
            stretches.append(TextStretch(section.text, True))
        else:
            stretches += [TextStretch(section.heading, True), *section_stretches(section.body)]
    return tuple(stretch for stretch in stretches if stretch.text)


def section_stretches(body: str) -> tuple[TextStretch, ...]:
    """The stretches of a section's body, in order; blank stretches count as fixed."""
    return tuple(stretch for stretch in _divide(body, _FIXED_IN_SECTION) if stretch.text)


def _divide(text: str, fixed: re.Pattern[str]) -> Iterator[TextStretch]:
    """The matches of `fixed` as fixed stretches, and the texts between them."""
    position = 0
    for match in fixed.finditer(text):
        yield _loose_stretch(text[position : match.start()])
        yield TextStretch(match.group(), True)
        position = match.end()
    yield _loose_stretch(text[position:])


def _loose_stretch(text: str) -> TextStretch:
    """A stretch that may be shortened, unless it is blank."""
    return TextStretch(text, not text.strip())
