"""Counted marks of what an output leaves out: `[3 left out]: ` before the unit that follows.

The first count of a text says it in words, later ones are short: `[…12]: `. A count is of what is left out since the count before it; an
empty line is at each place where something is. It takes no token, which a mark at every place would. The sum of a text's counts is what it
leaves out. Earlier versions wrote `... ` at a place without a count, which is still read.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from pandora_dagster.documents.units.unit import Unit, UnitKind

_NOUNS = {UnitKind.ROW: "row", UnitKind.LOG: "line"}
_KIND_OF_NOUN = {noun: kind for kind, noun in _NOUNS.items()}
_COUNT = re.compile(r"\[(?:…(\d{1,9})|(\d{1,9}) (?:(row|line)s? )?left out)\](?:: ?)?")
_MARK = re.compile(rf"{_COUNT.pattern}|^\.\.\. ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Omission:
    """Units that an earlier compression left out, before character `start` of its text."""

    start: int
    count: int
    kind: UnitKind


def omission_mark(count: int, kind: UnitKind, *, is_first: bool) -> str:
    """The mark for so many units."""
    noun = _NOUNS.get(kind, "")
    return f"[{count} {noun + 's' * (count > 1) + ' ' if noun else ''}left out]" if is_first else f"[…{count}]"


def without_marks(text: str) -> tuple[str, tuple[Omission, ...]]:
    """A text with white space in place of its marks, so that every other character keeps its place; and what the marks count.

    A mark at the beginning of a line becomes empty lines: blanks would make what follows a part of what is before."""
    if not _COUNT.search(text):
        return text, ()
    omissions: list[Omission] = []

    def blank(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            omissions.append(Omission(match.end(), int(match[1] or match[2]), _KIND_OF_NOUN.get(match[3], UnitKind.SENTENCE)))
        begins_line = match.start() == 0 or text[match.start() - 1] == "\n"
        return ("\n" if begins_line else " ") * len(match[0])

    return _MARK.sub(blank, text), tuple(omissions)


def omissions_by_unit(units: tuple[Unit, ...], omissions: tuple[Omission, ...]) -> dict[int, list[Omission]]:
    """The omissions before each unit; those after the last one under the number of units."""
    starts = [u.start for u in units]
    by_unit: dict[int, list[Omission]] = {}
    for omission in omissions:
        by_unit.setdefault(bisect_left(starts, omission.start), []).append(omission)
    return by_unit
