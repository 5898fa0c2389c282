"""Sources beside turns and memory (specification 004, section 3): cached research, visited pages, notes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from pandora_dagster.contracts.strict_model import StrictModel

_TOPIC_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}(?:\.[a-z0-9][a-z0-9_-]{0,59}){0,3}")
_VISIT_ID_PATTERN = re.compile(r"visit_[a-z0-9][a-z0-9_-]{0,63}")


def _parse_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _require_time(text: str) -> str:
    try:
        _parse_time(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("expected a time such as 2026-01-04T13:15:00Z") from None
    return text


def _require_topic(text: str) -> str:
    if not _TOPIC_PATTERN.fullmatch(text):
        raise ValueError("expected category.subcategory in lower-case letters, digits, '_' and '-', e.g. commerce.laptop")
    return text


def _require_visit_id(text: str) -> str:
    if not _VISIT_ID_PATTERN.fullmatch(text):
        raise ValueError("expected visit_ and up to 64 lower-case letters, digits, '_' or '-', e.g. visit_abc123")
    return text


def _require_line(text: str) -> str:
    if not text.strip() or any(not c.isprintable() for c in text):
        raise ValueError("expected one line of text")
    return text


def _require_url(text: str) -> str:
    if not re.fullmatch(r"(?:https?://|file:///)[^\s`<>\"]+", text):
        raise ValueError("expected an http, https or file address without blanks")
    return text


Time = Annotated[str, AfterValidator(_require_time)]
Topic = Annotated[str, Field(max_length=120), AfterValidator(_require_topic)]
VisitId = Annotated[str, AfterValidator(_require_visit_id)]
Line = Annotated[str, Field(max_length=2_000), AfterValidator(_require_line)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]


class Provenance(StrictModel):
    """Who stored a record, when, and from which turn."""

    added_at: Time
    by: Line
    """A tool's name, or the command."""
    source_turn: Annotated[int, Field(gt=0)] | None = None


PageAddress = Annotated[
    str, Field(max_length=2_000, description="an http or https address, or file:/// and a path"), AfterValidator(_require_url)
]


class ClaimEvidence(StrictModel):
    """Where a claim is written: verbatim words of a page that was read."""

    value: Annotated[str, Field(max_length=2_000)]
    """What was asked, as `quote` has it."""
    quote: Annotated[str, Field(min_length=1, max_length=2_000)]
    url: PageAddress
    visit_id: VisitId
    """The stored visit of the page."""


class Claim(StrictModel):
    """One finding of a research, with the site it comes from."""

    claim: Annotated[Line, Field(description='one line, such as "Lenovo LOQ 15 @ $697"')]
    source: Annotated[Line, Field(description='the site it comes from, such as "bestbuy.com"')]
    confidence: Annotated[Share, Field(description="a number from 0 to 1, such as 0.92")]
    evidence: Annotated[ClaimEvidence | None, Field(description="an object with value, quote, url and visit_id")] = None


class Research(StrictModel):
    """Cached research on one topic (specification 004, section 3.5). The store fills in `provenance`. Field descriptions say what is
    expected in a user's record."""

    topic: Annotated[Topic, Field(description='category.subcategory in small letters, such as "commerce.laptop"')]
    cache_key: Annotated[Line, Field(description='one line that names the search, such as "nvidia_laptop_budget"')]
    created_at: Annotated[Time, Field(description='a time such as "2026-01-04T13:15:00Z"')]
    expires_at: Annotated[Time, Field(description='a time after created_at, such as "2026-01-04T19:15:00Z"')]
    quality_score: Annotated[Share, Field(description="a number from 0 to 1, such as 0.88")]
    summary: Annotated[str, Field(max_length=20_000, description='a text, such as "Found 12 laptops from 5 vendors"')]
    claims: Annotated[tuple[Claim, ...], Field(description="a list of objects with claim, source and confidence")] = ()
    webpage_cache: Annotated[tuple[VisitId, ...], Field(description='a list of visit ids, such as ["visit_abc123"]')] = ()
    contradicted: Annotated[bool | None, Field(description="true where claims of different sites cannot both hold")] = None
    provenance: Provenance | None = None

    @model_validator(mode="after")
    def _require_expiry_after_creation(self) -> "Research":
        if _parse_time(self.expires_at) <= _parse_time(self.created_at):
            raise ValueError(f"expires_at {self.expires_at}: expected a time after created_at {self.created_at}")
        return self

    @property
    def logical_id(self) -> str:
        return research_logical_id(self.topic)


class StoredPage(StrictModel):
    """What is stored of a page beside its record: the raw bytes by their content, and how the server described them."""

    raw_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    raw_bytes: Annotated[int, Field(ge=0)]
    status: Annotated[int, Field(ge=100, le=999)]
    final_url: str
    content_type: str = ""
    etag: str = ""
    last_modified: str = ""


class Visit(StrictModel):
    """One visited page and the data read from it (specification 004, section 3.6). The store fills in `provenance` and `page`. Field
    descriptions say what is expected in a user's record."""

    visit_id: Annotated[VisitId, Field(description='visit_ and small letters or digits, such as "visit_abc123"')]
    url: PageAddress
    visited_at: Annotated[Time, Field(description='a time such as "2026-01-04T13:20:00Z"')]
    page_type: Annotated[Line, Field(description='one line, such as "product"')]
    extracted_data: Annotated[Mapping[str, Any], Field(description='an object with what was read, such as {"price": "$697.00"}')]
    extraction_quality: Annotated[Share, Field(description="a number from 0 to 1, such as 0.95")]
    page: StoredPage | None = None
    provenance: Provenance | None = None

    @property
    def logical_id(self) -> str:
        return visit_logical_id(self.visit_id)


def research_logical_id(topic: str) -> str:
    """The logical id of a topic's cached research; an index resolves it (decision 20, docs/decisions/20-files-of-a-user.md)."""
    return f"research_cache/{topic}.json"


def visit_logical_id(visit_id: str) -> str:
    """The logical id of a visit record."""
    return f"webpage_cache/{visit_id}.json"


@dataclass(frozen=True, slots=True)
class ResearchRow:
    """One row of the research index. `file` is the record's name in its folder, `sha` that of its text."""

    user_id: str
    topic: str
    cache_key: str
    created_at: str
    expires_at: str
    quality_score: float
    summary: str
    webpage_cache: tuple[str, ...]
    source_turn: int | None
    file: str
    sha: str


@dataclass(frozen=True, slots=True)
class VisitRow:
    """One row of the index of visits; `fields` are the names of the extracted values."""

    user_id: str
    visit_id: str
    url: str
    visited_at: str
    page_type: str
    title: str
    fields: tuple[str, ...]
    source_turn: int | None
    file: str
    sha: str


@dataclass(frozen=True, slots=True)
class NoteHeader:
    """The header of a note. `name` is its path below the folder, with `/`."""

    name: str
    title: str
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Targets of its wiki links, as written."""


@dataclass(frozen=True, slots=True)
class Note:
    """A loaded note: its header and its Markdown without the front matter."""

    header: NoteHeader
    text: str
    dated: str = ""
    """The day in its front matter, `2026-01-04`; "" without one. The file's own time says only when it was copied."""

    @property
    def logical_id(self) -> str:
        return f"notes/{self.header.name}"


@dataclass(frozen=True, slots=True)
class NoteMatch:
    """A note that matches a query. `score`: over 0, the best has 1; `passage`: the matching part, "" where the header matches."""

    name: str
    score: float
    passage: str = ""


@dataclass(frozen=True, slots=True)
class NoteListing:
    """The readable notes of a folder, a sentence for each unreadable one, and the matches of a query, best first."""

    headers: tuple[NoteHeader, ...] = ()
    notices: tuple[str, ...] = ()
    matches: tuple[NoteMatch, ...] = ()
