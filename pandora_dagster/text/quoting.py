"""Stored text as a pack quotes it: no line of it can pass for a line that the pack itself writes. Knows these lines; knows no packs."""

import re

from pandora_dagster.contracts.words import SECTION_TITLES

_OWN = re.compile(
    rf"^(?=={{5}}|[^\S\n]*[0-6]\. (?:{'|'.join(SECTION_TITLES.values())}): |Speakers: |\[\d{{1,4}}\] Turn \d+ \()", re.MULTILINE
)
"""Headers of sources, the leads of a turn's pieces, the line that names its speakers, a quoted turn's first line."""


def escape_pack_lines(text: str) -> str:
    """`text` with a backslash before each line that would begin something: a source, a section, a speaker, another turn."""
    return _OWN.sub(r"\\", text)
