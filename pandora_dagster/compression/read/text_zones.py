"""A text as zones: who speaks in each, and by what policy its facts are ranked. Knows structure; finds no facts."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pandora_dagster.compression.read.json_parts import json_parts
from pandora_dagster.compression.read.transcript_messages import heads, is_transcript
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.sections import ContextDocument


class ZoneKind(StrEnum):
    """Who or what speaks in a zone."""

    QUERY = "query"
    PERSON = "person"
    ASSISTANT = "assistant"
    TOOL = "tool"
    CALL = "call"
    LATEST = "latest"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Zone:
    """Characters `start` to `end` of a text; `is_json` where they hold one JSON value."""

    kind: ZoneKind
    start: int
    end: int
    is_json: bool = False
    rule: str = ""


_ROLES = {"user": ZoneKind.PERSON, "assistant": ZoneKind.ASSISTANT, "tool": ZoneKind.TOOL, "system": ZoneKind.TEXT}


def zones(text: str, content_type: ContentType) -> Iterator[Zone]:
    """The zones of a text, in order, without overlap."""
    if content_type is ContentType.CONTEXT_DOC:
        found = _sections(text)
    elif is_transcript(text):
        found = _messages(text)
    else:
        whole = ZoneKind.TOOL if content_type in (ContentType.TOOL_RESULT, ContentType.PAGE_DOC) else ZoneKind.TEXT
        found = iter((Zone(whole, 0, len(text)),))
    for zone in found:
        yield from [zone] if zone.kind is ZoneKind.QUERY else _parts(text, zone)


def _sections(text: str) -> Iterator[Zone]:
    """Section 0 is the query, the highest section the latest (000 section 23, rules 1 and 2)."""
    document = ContextDocument.parse(text)
    at = len(document.preamble)
    last = max((s.number for s in document.sections), default=0)
    if at:
        yield Zone(ZoneKind.TEXT, 0, at)
    for section in document.sections:
        kind = ZoneKind.QUERY if section.number == 0 else ZoneKind.LATEST if section.number == last else ZoneKind.TEXT
        yield Zone(kind, at, at + len(section.text))
        at += len(section.text)


def _messages(text: str) -> Iterator[Zone]:
    found = heads(text)
    if found[0].start:
        yield Zone(ZoneKind.TEXT, 0, found[0].start)
    ends = [h.start for h in found[1:]] + [len(text)]
    for head, end in zip(found, ends, strict=True):
        yield Zone(_ROLES[head.role], head.end, end)


def _parts(text: str, zone: Zone) -> Iterator[Zone]:
    """A zone's prose and its JSON values; a value that is a call, or a list of calls, is a zone of its own kind."""
    body = text[zone.start : zone.end]
    at = 0
    for part in json_parts(body):
        if part.value is None:
            continue
        if part.start > at:
            yield Zone(zone.kind, zone.start + at, zone.start + part.start)
        at = part.start + len(part.text)
        is_call = '"arguments"' in part.text[:4_000] and '"name"' in part.text[:4_000]
        kind = ZoneKind.CALL if is_call else ZoneKind.TOOL if zone.kind is not ZoneKind.PERSON else zone.kind
        yield Zone(kind, zone.start + part.start, zone.start + at, is_json=True)
    if at < len(body):
        yield Zone(zone.kind, zone.start + at, zone.end)
