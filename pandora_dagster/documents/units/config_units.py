"""Units of YAML, front matter and INI files: each entry with the keys above it and the first line of its list element."""

import re
from collections.abc import Sequence

from pandora_dagster.documents.units.source_lines import Line
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_builder import UnitBuilder

_KEY = re.compile(r"\s*(?:- +)*[\"']?[A-Za-z_$@/][\w.$@/ -]{0,60}[\"']?\s?:(?P<value>\s+\S.*|\s*)$")
_SETTING = re.compile(r"\s*[A-Za-z_][\w.-]{0,60}\s?=\s?\S")
_SECTION = re.compile(r"\s*\[{1,2}[\w .:\"'/-]{1,80}\]{1,2}\s*$")
_ELEMENT = re.compile(r"\s*- ")
_COMMENT = re.compile(r"\s*[#;]")
_MARKS = ("---", "+++", "...")
_FEWEST, _LONGEST_COMMENT = 4, 40
"""Keys of a configuration at least; lines of a comment before the first one at most."""
_LEAST_SHARE = 0.5
_SHORT_LIST = 5
"""Lines of a key with its plain values that are one unit."""


def config_end(lines: Sequence[Line], at: int, *, is_first: bool) -> tuple[int, bool]:
    """Where the lines end that may be a configuration, and whether they are one."""
    mark = lines[at].text.rstrip()
    if is_first and mark in ("---", "+++"):
        closing = next((i for i in range(at + 1, min(len(lines), at + 80)) if lines[i].text.rstrip() == mark), at)
        return closing + 1, closing > at
    first = at
    while first < len(lines) and first - at < _LONGEST_COMMENT and _COMMENT.match(lines[first].text):
        first += 1
    if first < len(lines) and (_KEY.match(lines[first].text) or _SECTION.match(lines[first].text) or mark == "---"):
        return _run_end(lines, at)
    return at, False


def _run_end(lines: Sequence[Line], at: int) -> tuple[int, bool]:
    end = last = at
    keys = settings = opened = nested = sections = comments = filled = 0
    depth = -1
    while end < len(lines):
        text = lines[end].text
        if not lines[end].is_blank:
            key = _KEY.match(text)
            if _COMMENT.match(text):
                comments += 1
            elif key:
                keys += 1
                nested += depth >= 0 and lines[end].indent > depth
                depth = -1 if key["value"].strip() else lines[end].indent
                opened += depth >= 0
            elif _SETTING.match(text):
                settings += 1
            elif _SECTION.match(text):
                sections += 1
            elif _ELEMENT.match(text):
                nested += depth >= 0
            elif not (text.startswith("  ") or text.rstrip() in _MARKS):
                break
            filled += 1
            last = end + 1
        end += 1
    is_yaml = opened > 0 and nested > 1 and keys >= max(_FEWEST, _LEAST_SHARE * (filled - comments))
    is_ini = sections > 0 and settings > 1 and settings + sections >= _LEAST_SHARE * (filled - comments)
    return last, is_yaml or is_ini


def add_config(builder: UnitBuilder, lines: Sequence[Line]) -> None:
    """Add the units of a configuration."""
    above: list[tuple[int, int]] = []  # column, unit
    comment: list[Line] = []

    def close() -> None:
        if comment:
            builder.add_sentences(UnitKind.SENTENCE, [line.after(line.indent + 1) for line in comment], [unit for _, unit in above])
            comment.clear()

    ahead = 0
    for place, line in enumerate(lines):
        text = line.text
        if place < ahead:
            continue
        if line.is_blank or text.strip() in _MARKS or not text.strip(" #;"):
            close()
            continue
        if _COMMENT.match(text):
            comment.append(line)
            continue
        column = line.indent + (1 if _ELEMENT.match(text) else 0)
        if _SECTION.match(text):
            column, above = -1, []
        above = [(depth, unit) for depth, unit in above if depth < column]
        close()
        key = _KEY.match(text)
        opens = bool(_SECTION.match(text)) or (bool(key) and not (key and key["value"].strip()))
        is_first = bool(_ELEMENT.match(text)) and bool(key)
        needs = [unit for _, unit in above]
        if opens and (ahead := _short_list_end(lines, place)) > place:
            unit = builder.add_lines(UnitKind.ROW, lines[place:ahead], needs)
            opens = False
        else:
            unit = builder.add_line(UnitKind.HEADER if opens else UnitKind.ROW, line, needs)
        if opens or is_first:
            above.append((column, unit))
    close()


def _short_list_end(lines: Sequence[Line], place: int) -> int:
    """Where the few plain values end that a key opens, as in `matchers:`; `place` where more follows below it."""
    end = place + 1
    while end < len(lines) and _ELEMENT.match(lines[end].text) and not _KEY.match(lines[end].text):
        end += 1
    goes_on = end < len(lines) and not lines[end].is_blank and lines[end].indent > lines[place].indent + 2
    return end if 1 < end - place <= _SHORT_LIST and not goes_on else place
