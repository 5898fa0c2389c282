"""Division of a text into stretches that stay verbatim and stretches that may be shortened.

In context.md these stay verbatim: section 0, the headings of sections and of their `###` parts, `_meta` blocks, and the list of sources
that citations lead to. The newest section stays verbatim too where the target has tokens for it (specification 000, section 24).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pandora_dagster.documents.citations import REFERENCES_TITLE
from pandora_dagster.documents.sections import ContextDocument

_META_BLOCK = r"^`{3,}yaml\n_meta:[^\n]*\n(?:(?!```)[^\n]*\n)*+`{3,}[ \t]*(?:\n|\Z)"
_FIXED_IN_TEXT = re.compile(_META_BLOCK, re.MULTILINE)
_FIXED_IN_SECTION = re.compile(rf"^### {REFERENCES_TITLE}[ \t]*\n(?s:.*?)(?=^### |\Z)|{_META_BLOCK}|^### [^\n]*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TextStretch:
    """A stretch of a text; joined in order, the stretches are the text."""

    text: str
    is_fixed: bool


def stretches_within(text: str, target: int, count: Callable[[str], int]) -> tuple[TextStretch, ...]:
    """The stretches of any text that is to be shortened to `target` tokens: the newest section of a context.md is fixed where it fits
    beside everything else that is, and something is left to shorten."""
    stretches = text_stretches(text, is_newest_fixed=True)
    fixed_tokens = sum(count(stretch.text) for stretch in stretches if stretch.is_fixed)
    has_loose = any(not stretch.is_fixed for stretch in stretches)
    return stretches if has_loose and fixed_tokens < target else text_stretches(text)


def text_stretches(text: str, *, is_newest_fixed: bool = False) -> tuple[TextStretch, ...]:
    """The stretches of any text, in order; in a text without sections of context.md only `_meta` blocks are fixed."""
    document = ContextDocument.parse(text)
    newest = document.newest if is_newest_fixed else None
    stretches = [*_divide(document.preamble, _FIXED_IN_TEXT)]
    for section in document.sections:
        if section.number == 0 or section is newest:
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
