"""Lineage: which document was made from which, by which recipe, with the verdicts on its facts.

A *document id* permanently names one text of one user:

| id | text |
|---|---|
| `ben:turn_000004/context.md` | a document in the folder of the turn, newest; with `@2`, of that revision: `ben:turn_000004@2/...` |
| `ben:turn_000004/context.md#5` | section 5 of it |
| `ben:turn_000004/cold/context.md` | its original, in the turn's cold object |
| `ben:turn_000004/summary` | the turn's entry of level L1: day, topics and summary, as `documents.turn_entry` makes it from the manifest |
| `ben:session/conv-1` | the narrative of a session (level L2) |
| `ben:digest` | the digest of a user (level L3) |
| `ben:research_cache/...`, `ben:webpage_cache/...`, `ben:notes/...`, `ben:preferences.md`, `ben:facts.md` | a source that answers cite |
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from pandora_dagster.contracts.ids import TurnKey, UserId, session_id, turn_number, user_id
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.errors import BadIdError

SUMMARY = "summary"
"""The document of a turn that is made from its manifest only."""
DIGEST = "digest"
"""The path of a user's digest in a document id."""
_SESSION_PREFIX = "session/"
_FILE_NAME = r"(?:webpage_cache/[a-z0-9][a-z0-9_-]{0,99}/)?[a-z0-9][a-z0-9_-]{0,99}\.(?:md|json|jsonl|txt|html)"
_TURN_PATH = re.compile(
    rf"(?P<turn>turn_[0-9]{{6,9}})(?:@(?P<revision>[0-9]{{1,6}}))?/(?:summary|(?P<cold>cold/)?(?P<name>{_FILE_NAME})(?:#(?P<section>[0-6]))?)"
)
_SOURCE_PATH = re.compile(r"(?:research_cache|webpage_cache)/[a-z0-9][a-z0-9_.-]{0,199}\.json|preferences\.md|facts\.md|notes/.{1,400}")
_EXPECTED = "expected one such as ben:turn_000004/context.md, ben:session/conv-1 or ben:digest"


@dataclass(frozen=True, slots=True)
class TurnDocument:
    """A document of a turn. `revision` None: the newest. `cold`: its original, not the document in the folder."""

    key: TurnKey
    name: str
    revision: int | None = None
    cold: bool = False
    section: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentId:
    """A parsed document id: its user, and its path."""

    user: UserId
    path: str
    turn: TurnDocument | None = None
    """None for a document that belongs to no turn."""

    def __str__(self) -> str:
        return f"{self.user}:{self.path}"

    @property
    def owner(self) -> str:
        """The key by which its rows are replaced and removed: its turn, or itself."""
        return str(self.turn.key) if self.turn else str(self)

    @classmethod
    def parse(cls, text: str) -> "DocumentId":
        """Parse an id; raises BadIdError for one that could not safely name a text."""
        user, colon, path = text.partition(":")
        if not colon:
            raise BadIdError(f"document {text[:80]!r}: {_EXPECTED}")
        owner = user_id(user)
        if match := _TURN_PATH.fullmatch(path):
            key = TurnKey(owner, turn_number(match["turn"]))
            revision = None if match["revision"] is None else int(match["revision"])
            section = None if match["section"] is None else int(match["section"])
            return cls(owner, path, TurnDocument(key, match["name"] or SUMMARY, revision, bool(match["cold"]), section))
        if path.startswith(_SESSION_PREFIX):
            session_id(path.removeprefix(_SESSION_PREFIX))
        elif path != DIGEST and not (_SOURCE_PATH.fullmatch(path) and ".." not in path and path.isprintable()):
            raise BadIdError(f"document {text[:80]!r}: {_EXPECTED}")
        return cls(owner, path)

    @classmethod
    def of_source(cls, user: str, path: str) -> "DocumentId | None":
        """The document of `user` that a source's path leads to; None for a path that names none."""
        try:
            return cls.parse(f"{user}:{path.removeprefix('turns/')}")
        except BadIdError:
            return None


def document_id(key: TurnKey, name: str, *, cold: bool = False, section: int | None = None) -> str:
    """The id of a turn's document, newest revision."""
    return f"{key}/{'cold/' if cold else ''}{name}{'' if section is None else f'#{section}'}"


def session_document(user: str, session: str) -> str:
    """The id of a session's narrative."""
    return f"{user}:{_SESSION_PREFIX}{session}"


def digest_document(user: str) -> str:
    """The id of a user's digest."""
    return f"{user}:{DIGEST}"


def is_turn_owner(owner: str) -> bool:
    """Whether `<user>:<owner>` is a turn, and no narrative or digest."""
    return owner.partition(":")[2].startswith("turn_")


class Relation(StrEnum):
    """How the child was made from its parent."""

    COMPRESSED = "compressed"
    """Verified fact by fact; equal hashes where it stays whole."""
    SUMMARIZED = "summarised"
    """A turn's summary from its context.md; a session's narrative from its turns."""
    DIGESTED = "digested"
    """A user's digest from narratives."""
    SECTION = "section"
    """The parent is a section of the child; the span is its position in the child."""
    CITED = "cited"
    """The child names the parent as its source."""


class LineageEdge(StrictModel):
    """One row of the table: `child` was made from `parent`."""

    user_id: str
    """The user of both documents."""
    parent: str
    child: str
    relation: Relation
    parent_sha: str
    """sha256 of the text when the link was made; a text with another hash is not the linked one. "" for a source that its owner may
    change at any time: a note, a page of memory, cached research."""
    child_sha: str
    span: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """Characters of the parent from which the child was made (for a section: its characters in the child); None: all of it."""
    recipe: str = ""
    recipe_version: str = ""
    prompt_hash: str = ""
    runtime: str = ""
    model: str = ""
    parent_tokens: int = 0
    child_tokens: int = 0
    """Tokens of the texts (cl100k); 0 where not counted."""
    verdicts: Mapping[str, int] = {}
    """`total` and a number for each outcome of a fact; empty where no fact was judged."""
    call_id: str = ""
    run_id: str = ""
    """The Dagster run, "" without one."""
    at: str
    """When the child was made, ISO 8601 UTC."""

    @model_validator(mode="after")
    def _require_one_user(self) -> "LineageEdge":
        for document in (self.parent, self.child):
            if (owner := DocumentId.parse(document).user) != self.user_id:
                raise ValueError(f"{document[:120]}: a document of {owner}: expected one of {self.user_id[:80]}")
        return self
