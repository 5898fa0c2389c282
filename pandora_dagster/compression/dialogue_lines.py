"""Lines of talk between named people: who speaks in each. Knows `Name: text` lines and the legend of short names."""

import re
from dataclasses import dataclass

from pandora_dagster.compression.normal import key

SPEAKER_LINE = re.compile(r"^([^\W\d_][\w .'\-]{0,30}?): *(?=\S)")
ALSO = "also: "
"""Begins a line that puts back what a condensed text had lost."""
_LEGEND = re.compile(r"\w{1,31}=[^;=\n]+(?:; \w{1,31}=[^;=\n]+)*")
_LOOKED_AT = 400


@dataclass(frozen=True, slots=True)
class Line:
    """A line of talk; `speaker` is "" where nobody is named."""

    number: int
    speaker: str
    text: str


def is_dialogue(text: str) -> bool:
    """Whether most lines of a text name a speaker, and speakers speak again."""
    lines = [line for line in text[:200_000].split("\n", _LOOKED_AT)[:_LOOKED_AT] if line.strip()]
    speakers = [found.group(1) for line in lines if (found := SPEAKER_LINE.match(line))]
    return len(speakers) >= 3 and len(speakers) * 2 > len(lines) and len(set(speakers)) * 2 <= len(speakers)


def speakers_of(text: str) -> frozenset[str]:
    """Keys of the speakers' names and of their parts."""
    names = {line.speaker for line in read_lines(text) if line.speaker}
    return frozenset(k for name in names for k in (key(name), *key(name).split()))


def read_lines(text: str) -> list[Line]:
    """Lines with their speakers; short names of a legend become whole names again."""
    rows = text.split("\n")
    legend: dict[str, str] = {}
    if _LEGEND.fullmatch(rows[0]):
        legend = dict(pair.split("=", 1) for pair in rows[0].split("; "))
        rows = rows[1:]
    found: list[Line] = []
    for number, row in enumerate(rows):
        match = None if row.startswith(ALSO) else SPEAKER_LINE.match(row)
        speaker = match.group(1) if match else ""
        body = row[match.end() :] if match else row
        if body.strip():
            found.append(Line(number, legend.get(speaker, speaker), body.strip()))
    return found
