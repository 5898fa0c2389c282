"""Condenses context.md by its sections: section 0 stays byte for byte, the latest whole where it fits, the others by size.

Knows sections and budgets; how a section's body shrinks is given as a function.
"""

from collections.abc import Callable

from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.text.sections import ContextDocument

_LATEST_SHARE = 0.6
_HEADING_TOKENS = 2


def condense_context(text: str, target: int, counter: CountsTokens, shrink: Callable[[str, int], str]) -> str:
    """context.md in at most `target` tokens. All headings stay; "" where section 0 and the headings alone exceed the target."""
    document = ContextDocument.parse(text)
    fixed = "".join(s.text if s.number == 0 else s.heading for s in document.sections)
    room = target - counter.count(fixed) - _HEADING_TOKENS * len(document.sections)
    if room < 0:
        return ""
    bodies = _bodies(document, room, counter, shrink)
    while (over := counter.count(made := _composed(document, bodies)) - target) > 0:
        longest = max(bodies, key=lambda place: counter.count(bodies[place]), default=None)
        if longest is None or not bodies[longest]:
            return ""
        left = counter.count(bodies[longest]) - over - 4
        bodies[longest] = _framed(shrink(bodies[longest], left), bodies[longest]) if left > 0 else ""
    return made


def _bodies(document: ContextDocument, room: int, counter: CountsTokens, shrink: Callable[[str, int], str]) -> dict[int, str]:
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
        body = whole[place] if sizes[place] <= share else _framed(shrink(whole[place], max(share - 2, 1)), whole[place])
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
        parts.append(section.text if section.number == 0 else section.heading + bodies[place])
    return "".join(parts)
