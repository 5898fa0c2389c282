"""A Markdown note as Obsidian keeps it: front matter, tags, wiki links (004 section 13). Reads text strictly; knows no disk."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any, cast

import yaml

from pandora_dagster.contracts.sources import Note, NoteHeader
from pandora_dagster.errors import DocumentError

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL)
_OPENS = re.compile(r"\A\ufeff?---[ \t]*\r?\n")
_TITLE = re.compile(r"^# +(.+?)[ \t#]*$", re.MULTILINE)
_TAG = re.compile(r"(?<![\w/#&])#([A-Za-z_][\w/-]{0,79})")
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})(?:[#^|][^\[\]\n]*)?\]\]")
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATES = ("updated", "modified", "date", "created")
"""Front matter that dates a note, the telling one first."""
MAX_FRONT_CHARS = 64 * 1024


def read_note(text: str, *, name: str, where: str) -> Note:
    """The note `text` under its name; raises DocumentError with the line where its front matter is broken."""
    front, body = _split(text, where)
    prose = _CODE.sub(" ", body)
    heading = _TITLE.search(prose)
    stem = name.rpartition("/")[2].removesuffix(".md")
    title = _plain_text(front.get("title")) or (heading.group(1) if heading else "") or stem.replace("_", " ")
    header = NoteHeader(
        name=name,
        title=" ".join(title.split())[:200],
        tags=tuple(dict.fromkeys((*_tags(front), *_TAG.findall(prose))))[:40],
        links=tuple(dict.fromkeys(link.strip() for link in _LINK.findall(prose)))[:100],
    )
    return Note(header, body.strip("\r\n"), _day(front))


def _split(text: str, where: str) -> tuple[Mapping[str, Any], str]:
    found = _FRONT.match(text)
    if not found:
        if _OPENS.match(text):
            raise DocumentError(f"{where}:1: front matter without its end: expected a line --- after it")
        return {}, text.removeprefix("\ufeff")
    if len(found.group(1)) > MAX_FRONT_CHARS:
        raise DocumentError(f"{where}:1: front matter of {len(found.group(1)):,} characters: expected at most {MAX_FRONT_CHARS:,}")
    try:
        value: object = yaml.safe_load(found.group(1))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)  # YAML's errors carry a mark where they know the place
        line = int(getattr(mark, "line", 0)) + 2
        raise DocumentError(f"{where}:{line}: front matter: {getattr(error, 'problem', None) or error}: expected YAML") from error
    if value is None:
        return {}, text[found.end() :]
    if not isinstance(value, dict):
        raise DocumentError(f"{where}:2: front matter: {type(value).__name__}: expected a mapping such as `tags: [a, b]`")
    return cast("Mapping[str, Any]", value), text[found.end() :]


def _tags(front: Mapping[str, Any]) -> list[str]:
    """`tags: [a, b]`, `tags: a, b` and `tags: "#a #b"` say the same."""
    given = front.get("tags", front.get("tag"))
    words = cast("list[object]", given) if isinstance(given, list) else re.split(r"[,\s]+", _plain_text(given))
    return [tag for word in words if (tag := _plain_text(word).lstrip("#").strip()[:80])]


def _day(front: Mapping[str, Any]) -> str:
    """The day that the front matter gives the note: when it was last changed, else made. What is no date is none."""
    for name in _DATES:
        if found := _DAY.match(_plain_text(front.get(name)) or str(front.get(name) or "")):
            with suppress(ValueError):
                return date.fromisoformat(found.group()).isoformat()
    return ""


def _plain_text(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
