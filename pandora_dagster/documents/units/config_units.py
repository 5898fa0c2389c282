"""Units of YAML, front matter and INI files: each entry with the keys above it and the first line of its list element."""

import re
from collections.abc import Sequence

from pandora_dagster.documents.units.source_lines import Line
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_builder import UnitBuilder

_KEY = re.compile(r"\s*(?:- +)*[\"']?[A-Za-z_$@/][\w.$@/ -]{0,60}[\"']?\s?:(?P<value>\s+\S.*|\s*)$")
_SETTING = re.compile(r"\s*[A-Za-z_][\w.-]{0,60}\s?=\s?\S")
_SECTION = re.compile(r"\s*\[{1,2}[\w .:\"'/-]{1,80}\]{1,2}\s*$")
_ELEMENT = re.compile(r"\s*- (?!\*\*)")
"""Of a list; emphasis in it is Markdown."""
_COMMENT = re.compile(r"\s*[#;]")
_MARKS = ("---", "+++", "...")
_MIN_KEYS, _MAX_COMMENT_LINES, _MAX_FRONT_MATTER_LINES = 4, 40, 80
"""Keys of a configuration; lines of a comment before the first one; lines of front matter."""
_MIN_KEY_SHARE = 0.5
"""Share of the lines, comments aside, that are keys or settings in a configuration."""
_MAX_LIST_LINES = 5
"""Lines up to which a key with its plain values is one unit."""


def config_end(lines: Sequence[Line], at: int, *, is_first: bool) -> tuple[int, bool]:
    """Where the lines end that may be a configuration, and whether they are one."""
    mark = lines[at].text.rstrip()
    if is_first and mark in ("---", "+++"):
        closing = next((i for i in range(at + 1, min(len(lines), at + _MAX_FRONT_MATTER_LINES)) if lines[i].text.rstrip() == mark), at)
        return closing + 1, closing > at
    first = at
    while first < len(lines) and first - at < _MAX_COMMENT_LINES and _COMMENT.match(lines[first].text):
        first += 1
    if first < len(lines) and (_KEY.match(lines[first].text) or _SECTION.match(lines[first].text) or mark == "---"):
        return _run_end(lines, at)
    return at, False


def _run_end(lines: Sequence[Line], at: int) -> tuple[int, bool]:
    end = last = at
    keys = settings = opened = nested = sections = comments = filled = 0
    open_indent = -1  # of the key above that has no value
    while end < len(lines):
        text = lines[end].text
        if not lines[end].is_blank:
            key = _KEY.match(text)
            if _COMMENT.match(text):
                comments += 1
            elif key:
                keys += 1
                nested += open_indent >= 0 and lines[end].indent > open_indent
                open_indent = -1 if key["value"].strip() else lines[end].indent
                opened += open_indent >= 0
            elif _SETTING.match(text):
                settings += 1
            elif _SECTION.match(text):
                sections += 1
            elif _ELEMENT.match(text):
                nested += open_indent >= 0
            elif not (text.startswith("  ") or text.rstrip() in _MARKS):
                break
            filled += 1
            last = end + 1
        end += 1
    is_yaml = opened > 0 and nested > 1 and keys >= max(_MIN_KEYS, _MIN_KEY_SHARE * (filled - comments))
    is_ini = sections > 0 and settings > 1 and settings + sections >= _MIN_KEY_SHARE * (filled - comments)
    return last, is_yaml or is_ini


def add_config(builder: UnitBuilder, lines: Sequence[Line]) -> None:
    """Add the units of a configuration."""
    above: list[tuple[int, int]] = []  # column, unit
    comment: list[Line] = []

    def add_comment() -> None:
        if comment:
            builder.add_sentences(UnitKind.SENTENCE, [line.after(line.indent + 1) for line in comment], [unit for _, unit in above])
            comment.clear()

    read_until = 0
    for number, line in enumerate(lines):
        text = line.text
        if number < read_until:
            continue
        if line.is_blank or text.strip() in _MARKS or not text.strip(" #;"):
            add_comment()
            continue
        if _COMMENT.match(text):
            comment.append(line)
            continue
        column = line.indent + (1 if _ELEMENT.match(text) else 0)
        if _SECTION.match(text):
            column, above = -1, []
        above = [(depth, unit) for depth, unit in above if depth < column]
        add_comment()
        key = _KEY.match(text)
        opens = bool(_SECTION.match(text)) or bool(key and not key["value"].strip())
        begins_element = bool(_ELEMENT.match(text) and key)
        needs = [unit for _, unit in above]
        if opens and (read_until := _short_list_end(lines, number)) > number:
            unit = builder.add_lines(UnitKind.ROW, lines[number:read_until], needs)
            opens = False
        else:
            unit = builder.add_line(UnitKind.HEADER if opens else UnitKind.ROW, line, needs)
        if opens or begins_element:
            above.append((column, unit))
    add_comment()


def _short_list_end(lines: Sequence[Line], start: int) -> int:
    """Where the few plain values of the key in line `start` end, as in `matchers:`; `start` where more follows below it."""
    end = start + 1
    while end < len(lines) and _ELEMENT.match(lines[end].text) and not _KEY.match(lines[end].text):
        end += 1
    goes_on = end < len(lines) and not lines[end].is_blank and lines[end].indent > lines[start].indent + 2
    return end if 1 < end - start <= _MAX_LIST_LINES and not goes_on else start
