"""Counted marks of what an output leaves out: `[3 left out]: ` before the unit that follows, at the end alone on its line.

The first mark of a text says it in words, the others are short: `[…12]: `, since marks take tokens from the units.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from pandora_dagster.documents.units.unit import Unit, UnitKind

_NOUNS = {UnitKind.ROW: "row", UnitKind.LOG: "line"}
_MARK = re.compile(r"\[(?:…(\d{1,9})|(\d{1,9}) (?:(row|line)s? )?left out)\](?:: ?)?")
_OWN_LINE = re.compile(r"(?:^|\n)[ \t]*$")


@dataclass(frozen=True, slots=True)
class Omission:
    """Units that an earlier compression left out, before character `start` of the text without marks."""

    start: int
    count: int
    kind: UnitKind


def omission_mark(count: int, kind: UnitKind, *, is_first: bool) -> str:
    """The mark for so many units."""
    noun = _NOUNS.get(kind, "")
    return f"[{count} {noun + 's' * (count > 1) + ' ' if noun else ''}left out]" if is_first else f"[…{count}]"


def without_marks(text: str) -> tuple[str, tuple[Omission, ...]]:
    """A text without its marks, and what they count."""
    parts: list[str] = []
    found: list[Omission] = []
    at = length = 0
    for match in _MARK.finditer(text):
        before = text[at : match.start()]
        end = match.end()
        if _OWN_LINE.search(text[: match.start()][-200:]) and text[end : end + 1] == "\n":
            end += 1
        parts.append(before)
        length += len(before)
        kind = {"row": UnitKind.ROW, "line": UnitKind.LOG}.get(match[3], UnitKind.SENTENCE)
        found.append(Omission(length, int(match[1] or match[2]), kind))
        at = end
    return ("".join([*parts, text[at:]]), tuple(found)) if found else (text, ())


def omissions_by_unit(units: tuple[Unit, ...], found: tuple[Omission, ...]) -> dict[int, list[Omission]]:
    """The omissions before each unit; those after the last one under the number of units."""
    starts = [u.start for u in units]
    places: dict[int, list[Omission]] = {}
    for one in found:
        places.setdefault(bisect_left(starts, one.start), []).append(one)
    return places
