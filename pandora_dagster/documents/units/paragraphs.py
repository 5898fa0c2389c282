"""Hard-wrapped lines joined to paragraphs, and headings that are underlined."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pandora_dagster.documents.units.source_lines import Line

_NARROWEST = 45
"""Width of a paragraph from which its lines may be hard-wrapped."""
_SLACK = 6
_SMALL_START = re.compile(r"\s*[^\W\d_A-Z\u00c0-\u00de]|\s*[(`]")
_ENDS = (".", "!", "?", ":", "。", "！", "？")
_UNDERLINE = re.compile(r"\s{0,3}([=\-~^\"'`#*+.:_])\1{2,}\s*")


def unwrapped(lines: Sequence[Line]) -> list[list[Line]]:
    """Groups of lines that are one paragraph: a line goes on where the first word of the next one would not have fitted."""
    width = max(len(line.text.rstrip()) for line in lines)
    groups = [[lines[0]]]
    for before, line in pairwise(lines):
        ended = before.text.rstrip()
        first = line.text.split(maxsplit=1)[:1] or [""]
        wraps = width >= _NARROWEST and len(ended) + 1 + len(first[0]) > width - _SLACK
        goes_on = bool(_SMALL_START.match(line.text)) and not ended.endswith(_ENDS)
        if wraps or goes_on:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def underlined_headings(lines: Sequence[Line]) -> Iterator[tuple[int, int, str]]:
    """First line, number of lines and sign of each title that has a line of signs as long as itself below, perhaps above too."""
    at = 0
    fenced = False
    while at + 1 < len(lines):
        title, below = lines[at].text.rstrip(), lines[at + 1].text
        if title.lstrip().startswith("```"):
            fenced = not fenced
        line = None if fenced or not title or _UNDERLINE.fullmatch(title) else _UNDERLINE.fullmatch(below)
        alone = at == 0 or lines[at - 1].is_blank or bool(_UNDERLINE.fullmatch(lines[at - 1].text))
        if line and alone and abs(len(below.rstrip()) - len(title)) <= max(2, len(title) // 4) and "|" not in title:
            above = at > 0 and bool(found := _UNDERLINE.fullmatch(lines[at - 1].text)) and found[1] == line[1]
            yield at - above, 2 + above, line[1] * (1 + above)
            at += 2
        else:
            at += 1
