"""Text of sources within token limits: headers for RETRIEVAL, values for SYNTHESIS, cells for section 2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import InputDocument, Item
from pandora_dagster.contracts.ports.context_source import SourceHeaders, SourceQuery
from pandora_dagster.documents.citations import escape_citations
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import json_line

MAX_OFFERED_HEADERS = 20
"""Headers of one source that RETRIEVAL sees."""
UNLINKED = "(unlinked)"
"""Marks what was gathered without a loaded record behind it."""
_RELEVANT_PRIORITY = 1e7
"""Headers that share words with the query take precedence over turn summaries; the others fill what these leave."""
_HIGH_QUALITY, _MEDIUM_QUALITY = 0.8, 0.5
"""Least qualities, from 0 to 1, that section 2 calls high and medium."""


@dataclass(frozen=True, slots=True)
class Header:
    """One record as RETRIEVAL sees it: the values of its JSON line."""

    name: str
    values: Mapping[str, Any]
    score: float


def fit_headers(query: SourceQuery, document: str, headers: Sequence[Header], tokens: int, notices: tuple[str, ...] = ()) -> SourceHeaders:
    """At most `MAX_OFFERED_HEADERS` whole headers within `tokens`, the best first, shown in the given order."""
    remaining_tokens, chosen, omitted = tokens, set[int](), list[str]()
    for index in sorted(range(len(headers)), key=lambda i: (-headers[i].score, i)):
        cost = query.counter.count(json_line(headers[index].values) + "\n")
        if cost <= remaining_tokens and len(chosen) < MAX_OFFERED_HEADERS:
            remaining_tokens -= cost
            chosen.add(index)
        else:
            omitted.append(headers[index].name)
    chosen_headers = [header for i, header in enumerate(headers) if i in chosen]
    items = tuple(Item(json_line(h.values), (_RELEVANT_PRIORITY if h.score > 0 else 0.0) + h.score, h.name) for h in chosen_headers)
    return SourceHeaders(InputDocument(document, items=items), tuple(omitted), notices)


def search_text(query: SourceQuery) -> str:
    """What headers are ranked by: the user's words, their meaning, the entities and the title that the query refers to."""
    return " ".join((query.text, query.resolved, *query.entities, query.reference.title if query.reference else ""))


def passage_text(query: SourceQuery) -> str:
    """What passages are ranked by: a passage may share the user's own words or the resolved ones."""
    return f"{query.text} {query.resolved}"


async def compress_text(query: SourceQuery, text: str, name: str, content_type: ContentType, target: int) -> str:
    """A text within `target` tokens where a sound compression fits it, else unchanged."""
    if query.compress is None:
        return text
    return await query.compress(CompressionInput(text, name, content_type, query=query.resolved), target)


def plan_error(field: str, error: DocumentError) -> DocumentError:
    """The fault of a record that the plan names in `field`."""
    return DocumentError(f"retrieval_plan.json: {field}: {error}", missing=error.missing, hint=error.hint)


def plain_words(name: str) -> str:
    """Letters and digits of a name or an address, separated by blanks."""
    return " ".join("".join(c if c.isalnum() else " " for c in name).split())


def one_line(value: object) -> str:
    """A gathered value as one line that begins no heading, table row or list of sources and cites nothing."""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any list prints
    return escape_citations(" ".join(text.split()))


def quality_word(share: float) -> str:
    """A quality from 0 to 1 as a word."""
    return "High" if share >= _HIGH_QUALITY else "Medium" if share >= _MEDIUM_QUALITY else "Low"
