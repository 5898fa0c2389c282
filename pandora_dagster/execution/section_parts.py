"""A section's body as what must stand verbatim and what may be shortened. Knows Markdown of context.md; shortens nothing.

Verbatim: `###` headings, `_meta` blocks, and the list of sources that citations lead to.
"""

import re
from dataclasses import dataclass

from pandora_dagster.text.citations import REFERENCES_TITLE

_FIXED = re.compile(
    rf"^### {REFERENCES_TITLE}[ \t]*\n.*?(?=^### |\Z)|^`{{3,}}yaml\n_meta:.*?^`{{3,}}[ \t]*(?:\n|\Z)|^### [^\n]*(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SectionPart:
    """A stretch of a body; joined in order, the parts are the body."""

    text: str
    is_fixed: bool


def section_parts(body: str) -> tuple[SectionPart, ...]:
    """The parts of a section's body, in order; blank stretches count as fixed."""
    parts: list[SectionPart] = []
    at = 0
    for found in _FIXED.finditer(body):
        parts += [_compressible_part(body[at : found.start()]), SectionPart(found.group(), True)]
        at = found.end()
    return tuple(part for part in (*parts, _compressible_part(body[at:])) if part.text)


def _compressible_part(text: str) -> SectionPart:
    return SectionPart(text, not text.strip())
