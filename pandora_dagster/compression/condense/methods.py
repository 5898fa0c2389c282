"""Which method condenses which content (000 section 22). Chooses by content type and shape; condenses nothing itself."""

from collections.abc import Callable

from pandora_dagster.compression.condense.context_doc import condense_context
from pandora_dagster.compression.condense.dialogue import Dialogue
from pandora_dagster.compression.condense.prose import Prose
from pandora_dagster.compression.condense.query_focus import condense_for
from pandora_dagster.compression.condense.transcript import condense_transcript
from pandora_dagster.compression.condense.web_pages import condense_page, read_markdown_page
from pandora_dagster.compression.read.dialogue_lines import is_dialogue
from pandora_dagster.compression.read.json_parts import json_parts
from pandora_dagster.compression.read.mail_threads import as_talk
from pandora_dagster.compression.read.packed_text import is_own
from pandora_dagster.compression.read.page_zones import read_page
from pandora_dagster.compression.read.transcript_messages import is_transcript, rendered
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.sections import ContextDocument

_JSON_SHARE = 0.3


Method = Callable[[int], str]
"""Gives a text in at most so many tokens; "" where not even a part of it fits."""


def method(
    text: str,
    content_type: ContentType,
    counter: TokenMeasure,
    *,
    must: frozenset[str] = frozenset(),
    query: str = "",
) -> Method:
    """The method for a text: taken apart once where that is dear, to be condensed to any number of targets."""
    if content_type is ContentType.PAGE_DOC and (page := read_page(text)):
        return lambda target: condense_page(page, target, counter)
    if content_type is ContentType.PAGE_DOC and not query and (written := read_markdown_page(text)):
        return lambda target: written.condensed(target, counter, must)
    if has_sections(text) and content_type in (ContentType.CONTEXT_DOC, ContentType.PRIOR_TURN):
        return lambda target: condense_context(text, target, counter, lambda body, room: by_shape(body, counter, must, query)(room))
    return by_shape(text, counter, must, query)


def by_shape(text: str, counter: TokenMeasure, must: frozenset[str], query: str) -> Method:
    """The method for a text of no declared type: a transcript, talk, an answer to a question, or prose."""
    if is_tool_shaped(text):
        return lambda target: condense_transcript(text, target, counter, must=must, query=query)
    talk = as_talk(text)
    if query:
        return lambda target: condense_for(talk, target, counter, query, must=must)
    if talk is not text or is_dialogue(text):
        return Dialogue(talk, counter, must=must).condensed
    return Prose(text, counter, must=must).condensed


def has_sections(text: str) -> bool:
    """Whether a text has the numbered sections of context.md."""
    return bool(ContextDocument.parse(text).sections)


def is_tool_shaped(text: str) -> bool:
    """Whether a text is a transcript, an earlier compression of one, or mostly JSON."""
    if is_transcript(text) or is_own(text.split("\n", 1)[0]) or rendered(text) is not text:
        return True
    in_json = sum(len(part.text) for part in json_parts(text) if part.value is not None)
    return in_json > _JSON_SHARE * len(text)
