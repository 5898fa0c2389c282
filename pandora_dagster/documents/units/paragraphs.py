"""Hard-wrapped lines joined to paragraphs, and lines that are titles of what follows."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from pandora_dagster.documents.units.source_lines import Line, LineLayout
from pandora_dagster.language.stop_words import stop_words

_MIN_WIDTH, _MAX_WIDTH, _MIN_WRAPPED_LINE = 55, 130, 25
"""Width of a block from which and up to which its lines may be hard-wrapped, and length of a line that goes on in the next one."""
_SLACK = 6
"""Characters by which a line may miss the width and still be wrapped."""
_MIN_BROKEN_OFF = 40
"""Characters from which a line that ends in a stop word goes on in the next."""
_BRACKET_REACH = 400
"""Characters at the end of a line in which an open bracket is looked for."""
_LOWER_CASE_START = re.compile(r"\s*(?:[a-zà-öø-ÿ]|[(`\"„“][a-zà-öø-ÿ])")
_ENDS = (".", "!", "?", ":", ";", "。", "！", "？")
_ITEM_START = re.compile(r"\s*(?:[-*•+#]+\s|[|{}]|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s|\[[\d/:., -]{4,30}\]|\d{4}-\d\d-\d\d|\.\. |::|@@)")
_LABELED = re.compile(r"\s*(?P<label>[^\W\d_][^\s:]{0,40}(?: [^\s:]{1,30}){0,4}) ?(?::\s+|：\s*)\S")
_COLUMNS = re.compile(r"(?<=[^\s.!?:])[ \t]{2,}(?=\S)")
_UNDERLINE = re.compile(r"\s{0,3}([=\-~^\"'`#*+.:_])\1{2,}\s*")
_PROSE_START = re.compile(r"\s*[\w\"'“„«»(\[{`*_<$€£¥§&–—-]")
"""How a line of prose begins, unlike a path or a sign of a list."""
_MAX_TITLE_CHARACTERS = 72
_MAX_LABELED_CHARACTERS = 240
_TITLE_START = re.compile(r"\s*(?:#\d|§|\d|[^\W\d_a-zà-öø-ÿ])")


def unwrapped(lines: Sequence[Line], layout: LineLayout, language: str) -> list[list[Line]]:
    """The lines in groups, each of which is one paragraph.

    A line goes on where the first word of the next one would not have fitted or begins with a lower-case letter, where a bracket is open,
    or after a word such as `the`, which ends no sentence, unless it is below an item, not indented, and begins with a capital letter.
    """
    groups = [[lines[0]]]
    stops = _stops(language)
    for before, line in pairwise(lines):
        ended = before.text.rstrip()
        breaks_off = len(ended) >= _MIN_BROKEN_OFF and ended.rsplit(maxsplit=1)[-1].lower() in stops
        is_below_item = bool(_ITEM_START.match(before.text)) and line.indent <= before.indent and line.text.lstrip()[:1].isupper()
        if (breaks_off and not is_below_item) or _continues(ended, line.text, layout.width(line)):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


@cache
def _stops(language: str) -> frozenset[str]:
    return stop_words(language) | stop_words("en")


def _continues(before: str, text: str, width: int) -> bool:
    if _is_open(before):
        return True
    if _ITEM_START.match(text) or len(_COLUMNS.findall(text)) > 1:
        return False
    if text.startswith(":") or (_LABELED.match(before) and _indent(text) > _indent(before)):
        return True
    first = (text.split(maxsplit=1)[:1] or [""])[0]
    if not _PROSE_START.match(text) or (first[:1].isdigit() and before[-1:].isdigit()):
        return False
    is_long = len(before) > max(width // 3, _MIN_WRAPPED_LINE)
    wraps = _MIN_WIDTH <= width <= _MAX_WIDTH and is_long and len(before) + 1 + len(first) > width - _SLACK
    continues_sentence = bool(_LOWER_CASE_START.match(text)) and not before.endswith(_ENDS)
    if _LABELED.match(text) and not (wraps and continues_sentence):
        return False
    return wraps or (continues_sentence and len(before) >= _MIN_WRAPPED_LINE)


def _is_open(text: str) -> bool:
    """Whether a bracket of the line is not closed in it."""
    end = text[-_BRACKET_REACH:]
    return end.count("[") > end.count("]") or end.count("(") > end.count(")")


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def is_title(line: Line) -> bool:
    """Whether a line may be a title: short, without punctuation at its end, beginning with a capital letter, a digit or §."""
    text = line.text.strip()
    return (
        1 < len(text) <= _MAX_TITLE_CHARACTERS
        and bool(_TITLE_START.match(text))
        and text[-1] not in ".!?:;,。！？；，…"
        and not _LABELED.match(text)
    )


def is_labeled(group: Sequence[Line]) -> bool:
    """Whether a paragraph is one line `label: value`, which is kept as one."""
    return len(group) == 1 and len(group[0].text) <= _MAX_LABELED_CHARACTERS and bool(_LABELED.match(group[0].text))


def underlined_headings(lines: Sequence[Line]) -> Iterator[tuple[int, int, str]]:
    """Each title that is underlined with signs, perhaps overlined too: first line, number of lines, and the sign, twice if overlined."""
    at = 0
    fenced = False
    while at + 1 < len(lines):
        title, below = lines[at].text.rstrip(), lines[at + 1].text
        if title.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        underline = None if fenced or not any(map(str.isalnum, title)) or _UNDERLINE.fullmatch(title) else _UNDERLINE.fullmatch(below)
        begins_block = at == 0 or lines[at - 1].is_blank or bool(_UNDERLINE.fullmatch(lines[at - 1].text))
        if underline and begins_block and abs(len(below.rstrip()) - len(title)) <= max(2, len(title) // 4) and "|" not in title:
            overlined = at > 0 and bool(found := _UNDERLINE.fullmatch(lines[at - 1].text)) and found[1] == underline[1]
            yield at - overlined, 2 + overlined, underline[1] * (1 + overlined)
            at += 2
        else:
            at += 1
