"""A unit of a text: what is kept whole or left out."""

import re
from dataclasses import dataclass
from enum import StrEnum


class UnitKind(StrEnum):
    """What a unit is in its text."""

    HEADING = "heading"
    SPEAKER = "speaker"
    HEADER = "header"
    SENTENCE = "sentence"
    ITEM = "item"
    QUOTE = "quote"
    ROW = "row"
    LOG = "log"
    CODE = "code"
    HUNK = "hunk"
    CALL = "call"
    ERROR = "error"


_FIRST_WORD = re.compile(r"[^\W\d_]+")
_CONTEXT = frozenset({UnitKind.HEADING, UnitKind.SPEAKER, UnitKind.HEADER})


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a text that says something by itself, or with the units that it needs."""

    order: int
    """Its position among the units of the text."""
    kind: UnitKind
    text: str
    """What an output shows: hard-wrapped lines joined, a JSON record as a row under its header."""
    start: int
    end: int
    """Its characters in the source."""
    needs: tuple[int, ...]
    """Earlier units, by their order, without which its meaning changes: speaker, headings, table header, label."""
    message: int
    """Number of its message in a talk or mail thread, from 1; 0 outside."""
    speaker: str
    block: int
    """Units of one paragraph, list, table or fence have the same number."""
    level: int
    """Depth of a heading, list item or quote, from 1; 0 for the rest."""
    fence: str = ""
    """The line that opens the fence of Markdown around code, such as "```python"; "" outside."""

    @property
    def is_context(self) -> bool:
        """Whether the unit says whose or what the units are that need it, and little by itself."""
        return self.kind in _CONTEXT

    @property
    def role(self) -> str:
        """The first word of the speaker in lower case, such as `tool` of "tool get_user"; "" where there is none."""
        word = _FIRST_WORD.match(self.speaker)
        return word.group().lower() if word else ""
