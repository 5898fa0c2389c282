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
_FEWEST = 4
_LEAST_SHARE = 0.5


def config_end(lines: Sequence[Line], at: int, *, is_first: bool) -> int:
    """Where the configuration that begins at line `at` ends; `at` where none begins."""
    mark = lines[at].text.rstrip()
    if is_first and mark in ("---", "+++"):
        closing = next((i for i in range(at + 1, min(len(lines), at + 80)) if lines[i].text.rstrip() == mark), at)
        return closing + 1 if closing > at else at
    if not (_KEY.match(lines[at].text) or _SECTION.match(lines[at].text) or _COMMENT.match(lines[at].text) or mark == "---"):
        return at
    return _run_end(lines, at)


def _run_end(lines: Sequence[Line], at: int) -> int:
    end = last = at
    keys = settings = opened = nested = sections = 0
    depth = -1
    while end < len(lines):
        text = lines[end].text
        key = _KEY.match(text)
        if text.strip():
            if key:
                keys += 1
                nested += depth >= 0 and lines[end].indent > depth
                depth = lines[end].indent if not key["value"].strip() else -1
                opened += depth >= 0
            elif _SETTING.match(text):
                settings += 1
            elif _SECTION.match(text):
                sections += 1
            elif _ELEMENT.match(text):
                nested += depth >= 0
            elif not (_COMMENT.match(text) or text.startswith("  ") or text.rstrip() in _MARKS):
                break
            last = end + 1
        end += 1
    filled = sum(not line.is_blank for line in lines[at:last])
    is_yaml = (
        opened > 0
        and nested > 1
        and keys >= max(_FEWEST, _LEAST_SHARE * sum(not _COMMENT.match(x.text) and not x.is_blank for x in lines[at:last]))
    )
    is_ini = sections > 0 and settings > 1 and settings + sections >= _LEAST_SHARE * filled
    return last if is_yaml or is_ini else at


def add_config(builder: UnitBuilder, lines: Sequence[Line]) -> None:
    """Add the units of a configuration."""
    above: list[tuple[int, int]] = []  # column, unit
    comment: list[Line] = []

    def close() -> None:
        if comment:
            builder.add_sentences(UnitKind.SENTENCE, [line.after(line.indent + 1) for line in comment], [unit for _, unit in above])
            comment.clear()

    for line in lines:
        text = line.text
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
        unit = builder.add_line(UnitKind.HEADER if opens else UnitKind.ROW, line, [unit for _, unit in above])
        if opens or is_first:
            above.append((column, unit))
    close()
