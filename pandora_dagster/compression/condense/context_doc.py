"""Condenses context.md by its sections: section 0 stays byte for byte, the latest whole where it fits, the others by size.

Knows sections and budgets; how a section's body shrinks is given as a function.
"""

import re
from collections.abc import Callable

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.sections import ContextDocument

_LATEST_SHARE = 0.6
_WHOLE_SHARE = 0.7
"""Of the room that is left: what a section may take to stay whole, smallest first."""
_HEADING_TOKENS = 2
_ROUNDS = 4
_CITATION = re.compile(r"(?<!\w)\[(\d{1,3})\](?![(:])")
_SOURCE = re.compile(r"\s*(?:[-*] )?\[(\d{1,3})\]:?\s")


def condense_context(text: str, target: int, counter: TokenMeasure, shrink: Callable[[str, int], str]) -> str:
    """context.md in at most `target` tokens. All headings stay; section 0 and the last heading
    where not even they fit, "" where that does not.

    Where a citation stands (`[1]`), the line of its source stands too, as far as that is possible."""
    document = ContextDocument.parse(text)
    fixed = "".join(s.text if s.number == 0 else s.heading for s in document.sections)
    room = target - counter.count(fixed) - _HEADING_TOKENS * len(document.sections)
    if room < 0:
        asked = "".join(s.text for s in document.sections if s.number == 0)
        last = document.sections[-1]
        alone = asked if last.number == 0 else f"{asked}{last.heading}"
        return alone.rstrip("\n") if counter.count(alone) <= target else ""
    made, spared = "", 0
    for _ in range(_ROUNDS):
        made, cited = _condensed(document, room - spared, target - spared, counter, shrink)
        if not cited:
            return made
        whole = _with_sources(document, made, cited)
        if (over := counter.count(whole) - target) <= 0:
            return whole
        spared += over
    return made


def _condensed(
    document: ContextDocument, room: int, target: int, counter: TokenMeasure, shrink: Callable[[str, int], str]
) -> tuple[str, tuple[str, ...]]:
    """The document within its target, and the lines of sources that are cited in it and do not stand."""
    if room < 0:
        return "", ()
    bodies = _bodies(document, room, counter, shrink)
    while (over := counter.count(made := _composed(document, bodies)) - target) > 0:
        longest = max(bodies, key=lambda place: counter.count(bodies[place]), default=None)
        if longest is None or not bodies[longest]:
            return "", ()
        left = counter.count(bodies[longest]) - over - 4
        bodies[longest] = _framed(shrink(bodies[longest], left), bodies[longest]) if left > 0 else ""
    standing = set(made.split("\n"))
    cited = set(_CITATION.findall("\n".join(line for line in standing if not _SOURCE.match(line))))
    sources = (line for s in document.sections if s.number != 0 for line in s.body.split("\n"))
    return made, tuple(line for line in sources if (found := _SOURCE.match(line)) and found.group(1) in cited and line not in standing)


def _with_sources(document: ContextDocument, made: str, missing: tuple[str, ...]) -> str:
    """`made` with the lines of sources in their sections: below the source before, else below the heading that stood above them, else
    at the section's end."""
    parts: list[str] = []
    shown = ContextDocument.parse(made)
    for before, now in zip(document.sections, shown.sections, strict=True):
        lines, original = now.body.rstrip("\n").split("\n"), before.body.split("\n")
        for line in missing if before.number != 0 else ():
            if line in original:
                above = [other for other in original[: original.index(line)] if other.strip()]
                at = next((n for n in range(len(above) - 1, -1, -1) if _SOURCE.match(above[n]) or above[n].startswith("#")), -1)
                if at >= 0 and above[at] in lines:
                    lines.insert(lines.index(above[at]) + 1, line)
                else:
                    lines += [*([above[at]] if at >= 0 and above[at].startswith("#") else []), line]
        end = now.body[len(now.body.rstrip("\n")) :]
        parts.append(now.text if before.number == 0 or not missing else now.heading + "\n".join(lines) + end)
    return shown.preamble + "".join(parts)


def _bodies(document: ContextDocument, room: int, counter: TokenMeasure, shrink: Callable[[str, int], str]) -> dict[int, str]:
    """Place of a section -> its body within the room; -1 is what stands before the sections."""
    whole = {-1: document.preamble} | {n: s.body for n, s in enumerate(document.sections) if s.number != 0}
    sizes = {place: counter.count(body) for place, body in whole.items()}
    latest = max(whole)
    result: dict[int, str] = {}
    if sizes[latest] <= room * _LATEST_SHARE or sum(sizes.values()) <= room:
        result[latest] = whole[latest]
        room -= sizes[latest]
    for place in sorted((n for n in whole if n not in result), key=lambda n: sizes[n]):
        share = room // max(len(whole) - len(result), 1)
        body = (
            whole[place]
            if sizes[place] <= max(share, room * _WHOLE_SHARE)
            else _framed(shrink(whole[place], max(share - 2, 1)), whole[place])
        )
        result[place] = body
        room -= counter.count(body)
    return result


def _framed(body: str, original: str) -> str:
    """A condensed body with the blank lines that stood around it."""
    if not body.strip():
        return ""
    return ("\n" if original.startswith("\n") else "") + body.strip("\n") + ("\n\n" if original.endswith("\n") else "")


def _composed(document: ContextDocument, bodies: dict[int, str]) -> str:
    parts = [bodies.get(-1, "")]
    for place, section in enumerate(document.sections):
        parts.append(section.text if section.number == 0 else section.heading + (bodies[place] or "\n"))
    return "".join(parts)
